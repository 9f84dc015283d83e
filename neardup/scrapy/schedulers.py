"""What is known of the scheduler of a crawl: whether it heeds priorities, and whether what waits is known."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.misc import load_object

from neardup.scrapy.options import Predict
from neardup.scrapy.own_end import own_end
from neardup.scrapy.steps import compares_depth

if TYPE_CHECKING:
    from scrapy.core.scheduler import BaseScheduler
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

_ENDS_BY_ORDER = ("CLOSESPIDER_PAGECOUNT_NO_ITEM", "CLOSESPIDER_TIMEOUT_NO_ITEM")
"""Settings that leave out other pages if requests are made in another order."""

_PRIORITY_QUEUE_OF_SCRAPY_REDIS = "scrapy_redis.queue.PriorityQueue"


def has_priorities(settings: BaseSettings) -> bool:
    """Whether the scheduler is known to make requests in the order of their priorities: one of Scrapy's, or
    that of scrapy-redis with a priority queue.
    """
    scheduler = load_object(settings["SCHEDULER"])
    if is_of_scrapy(scheduler):
        return True
    if not any(base.__module__ == "scrapy_redis.scheduler" for base in scheduler.__mro__):
        return False
    queue = load_object(settings.get("SCHEDULER_QUEUE_CLASS") or _PRIORITY_QUEUE_OF_SCRAPY_REDIS)
    return issubclass(queue, load_object(_PRIORITY_QUEUE_OF_SCRAPY_REDIS))


def waits_from(crawler: Crawler) -> int | None:
    """The depth from which on requests may be made later than their turn, without loss; None: none may. A
    line in the log says if not all may.

    With a limit of depth the way by which a page is reached first decides what is got behind the page. A
    shorter way must not wait, unless an audit tells what that costs. Behind pages at the limit nothing is
    got. The limit may be the spider's own. A crawl that ends when no items come must not make the requests
    for items after others. A spider that ends its crawl must meet pages in order.
    """
    limits = ((name, crawler.settings.getfloat(name)) for name in _ENDS_BY_ORDER)
    reason = next((f"{name} is {limit:g}" for name, limit in limits if limit), None)
    if reason is None and (method := compares_depth(crawler)) is not None:
        reason = f"{method} compares the depth of pages"
    if reason is None and (end := own_end(crawler)) is not None:
        reason = f"the spider may end the crawl ({end})"
    depth = crawler.settings.getint("DEPTH_LIMIT")
    if reason is not None:
        tell_what_waits(crawler, reason)
        return None
    if depth:
        tell_what_waits(
            crawler, f"DEPTH_LIMIT is {depth}", "wait, and callbacks are skipped, at that depth only"
        )
    return depth


def tell_what_waits(
    crawler: Crawler, reason: str, what: str = "do not wait, and no callback is skipped"
) -> None:
    """Say in the log what becomes of likely copies, and why."""
    logger.info(
        "neardup: %(reason)s, so links of duplicates and predicted copies %(what)s",
        {"reason": reason, "what": what},
        extra={"spider": crawler.spider},
    )


def has_own_requests_only(settings: BaseSettings) -> bool:
    """Whether queue and duplicates filter are Scrapy's own and know no requests but those of this run.

    Then a link enters the queue if this run has not met it before, and nobody needs to be asked.
    """
    filters = load_object(settings["DUPEFILTER_CLASS"])
    is_own = getattr(filters, "request_seen", None) is RFPDupeFilter.request_seen
    return is_own and is_of_scrapy(load_object(settings["SCHEDULER"])) and not settings["JOBDIR"]


def can_be_audited(crawler: Crawler, predict: Predict) -> bool:
    """Whether requests wait in a queue of Scrapy's own, of this crawl alone; a warning says if not."""
    if predict not in {Predict.DEFER, Predict.DROP}:
        reason = f"no request waits with NEARDUP_ACTION or NEARDUP_PREDICT = {predict.value!r}"
    elif not is_of_scrapy(load_object(crawler.settings["SCHEDULER"])):
        reason = f"what waits in the queue of {crawler.settings['SCHEDULER']} is not known"
    else:
        return True
    logger.warning(
        "neardup: NEARDUP_LOSS_BUDGET is not heeded, and the crawl makes all requests: %(reason)s",
        {"reason": reason},
        extra={"spider": crawler.spider},
    )
    return False


def scheduler_of(crawler: Crawler) -> BaseScheduler:
    """The scheduler of a crawl that runs."""
    assert crawler.engine is not None
    if hasattr(crawler.engine, "scheduler"):
        scheduler = crawler.engine.scheduler
    else:
        slot = crawler.engine._slot  # before Scrapy 2.19 there is no other way
        scheduler = None if slot is None else slot.scheduler
    assert scheduler is not None
    return scheduler


def is_of_scrapy(scheduler: type) -> bool:
    # By its bases: issubclass() takes all that has the methods of a scheduler for one of Scrapy's.
    return Scheduler in scheduler.__mro__
