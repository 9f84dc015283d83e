"""A spider whose requests wait in redis, and the queue, which tells what comes out of it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from scrapy_redis.queue import PriorityQueue
from scrapy_redis.spiders import RedisSpider

from neardup.scrapy.links import CLUSTER, DEFERRED, PREDICTED
from tests.support.sites.company_spiders import CompanySpider

if TYPE_CHECKING:
    from scrapy import Request


class ShownQueue(PriorityQueue):
    """Tells in a list beside the queue what came out of it, and whether something was waiting that should
    have come before.
    """

    def pop(self, timeout: int = 0) -> Request | None:
        with self.server.pipeline(transaction=True) as pipe:
            pipe.zrange(self.key, 0, 0, withscores=True)
            pipe.zcount(self.key, "-inf", DEFERRED // 2)  # the score is the negated priority
            pipe.zremrangebyrank(self.key, 0, 0)
            found, ordinary, _ = pipe.execute()
        if not found:
            return None
        data, score = found[0]
        request: Request = self._decode_request(data)
        told = {"score": score, "priority": request.priority, "ordinary": ordinary}
        told["cluster"] = request.meta.get(CLUSTER)
        told["predicted"] = bool(request.meta.get(PREDICTED))
        self.server.rpush(f"{self.key}:told", json.dumps(told))
        return request


class QueuedSpider(RedisSpider, CompanySpider):
    """Its start URL comes from a list in redis, its requests wait in a priority queue there."""

    name = "queued"
    custom_settings: dict[str, Any] = {  # noqa: RUF012 - as Scrapy's manual has it
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_QUEUE_CLASS": "tests.support.sites.company_redis.ShownQueue",
        "SCHEDULER_PERSIST": True,
        "MAX_IDLE_TIME_BEFORE_CLOSE": 4,
    }

    def spider_idle(self) -> None:
        """Count the idle time from the first request that came out of the queue, not from the start of the
        process: a worker that is slow to begin would pop the first request of the other one, and close.
        """
        if not self.server.exists(f"{self.settings['SCHEDULER_QUEUE_KEY']}:told"):
            self.spider_idle_start_time = int(time.time())
        super().spider_idle()
