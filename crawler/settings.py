"""Settings of the ready-made project. All of Scrapy's own apply: ``scrapy crawl site -s DEPTH_LIMIT=3 …``."""

from __future__ import annotations

BOT_NAME = "neardup"

SPIDER_MODULES = ["crawler.spiders"]
NEWSPIDER_MODULE = "crawler.spiders"

ADDONS = {"neardup.Addon": 500}

USER_AGENT = "neardup/0.1 (near-duplicate detection; Scrapy)"
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 8
DOWNLOAD_DELAY = 0

LOG_LEVEL = "INFO"
LOGSTATS_INTERVAL = 5.0
