"""A spider whose requests wait in redis; apart from the others, because scrapy-redis is no dependency of the
tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from scrapy_redis import connection
from scrapy_redis.spiders import RedisSpider

from tests.support.sites.spiders import FollowSpider

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class QueuedSpider(RedisSpider, FollowSpider):
    """Its start URL comes from a list in redis, its requests wait in a priority queue there."""

    name = "redis"
    redis_key = "starts"
    custom_settings = {  # noqa: RUF012 - as Scrapy's manual has it
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.PriorityQueue",
        "SCHEDULER_FLUSH_ON_START": True,
        "MAX_IDLE_TIME_BEFORE_CLOSE": 3,
    }

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        server = connection.from_settings(crawler.settings)
        server.delete(cls.redis_key)
        server.lpush(cls.redis_key, kwargs["start"])
        spider: Self = super().from_crawler(crawler, *args, **kwargs)
        return spider
