"""Settings of crawls in processes of their own, without the add-on: those of Scrapy, as a new project has
them.
"""

from __future__ import annotations

BOT_NAME = "sites"
SPIDER_MODULES = ["tests.support.sites.spiders"]
EXTENSIONS = {"tests.support.sites.processes.StatsFile": 0}
LOG_LEVEL = "WARNING"
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
