"""Settings of the ready-made project. All of Scrapy's own apply: ``scrapy crawl site -s DEPTH_LIMIT=3 …``."""

from __future__ import annotations

BOT_NAME = "neardup"

SPIDER_MODULES = ["crawler.spiders"]
NEWSPIDER_MODULE = "crawler.spiders"

ADDONS = {"neardup.Addon": 500}
NEARDUP_GUARD = True  # no page leads to files of this machine or into its networks, unless a start URL does

# Tell the sites you crawl who you are: put an address of your own here.
USER_AGENT = "neardup/0.1 (+https://crawler.example/contact)"
ROBOTSTXT_OBEY = True

# One request a second to a site; files and servers on this machine are read as fast as they come.
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1
local = {"concurrency": 16, "delay": 0}
DOWNLOAD_SLOTS = {"": local, "localhost": local, "127.0.0.1": local}

FEED_EXPORT_ENCODING = "utf-8"
FEED_EXPORTERS = {"csv": "crawler.exporters.SafeCsvItemExporter"}
LOG_LEVEL = "INFO"
LOGSTATS_INTERVAL = 5.0
