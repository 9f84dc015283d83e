"""Two spiders on one site in one process: ``python -m tests.support.sites.company_together START``, in the
folder of a project.
"""

from __future__ import annotations

import sys

from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.project import get_project_settings

from tests.support.sites.company_spiders import CompanySpider, SecondSpider

if __name__ == "__main__":
    process = AsyncCrawlerProcess(get_project_settings())
    for spider in (CompanySpider, SecondSpider):
        process.crawl(spider, start=sys.argv[1])
    process.start()
