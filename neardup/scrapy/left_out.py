"""Requests that a stopped crawl has left out, perhaps in error: the next run of the job makes them.

They are in a queue of Scrapy's in the job directory, which keeps requests as Scrapy's own queues do.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.squeues import PickleFifoDiskQueue
from scrapy.utils.job import job_dir
from scrapy.utils.misc import build_from_crawler

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

FOLDER = "neardup.left-out"
"""The queue's name in the job directory."""


def keep(crawler: Crawler, requests: Iterable[Request]) -> int:
    """Keep requests for the next run, if the crawl has a job directory; returns how many are kept.

    A request that cannot be pickled is named in the log, as Scrapy does with ``SCHEDULER_DEBUG``.
    """
    folder = _folder(crawler)
    if folder is None:
        return 0
    kept = 0
    queue = _opened(crawler, folder)
    for request in requests:
        try:
            queue.push(request)
            kept += 1
        except ValueError as exc:
            logger.warning(
                "neardup: %(request)s is not made by the next run, because it cannot be stored: %(reason)s",
                {"request": request, "reason": exc},
                extra={"spider": crawler.spider},
            )
    queue.close()
    return kept


def take(crawler: Crawler) -> list[Request]:
    """The requests that the last run has kept, which are forgotten by that."""
    folder = _folder(crawler)
    if folder is None or not folder.exists():
        return []
    queue = _opened(crawler, folder)
    found = list(iter(queue.pop, None))
    queue.close()
    shutil.rmtree(folder, ignore_errors=True)
    return found


def _opened(crawler: Crawler, folder: Path) -> Any:  # Scrapy's hints do not say what its queues have
    return build_from_crawler(PickleFifoDiskQueue, crawler, str(folder))


def _folder(crawler: Crawler) -> Path | None:
    directory = job_dir(crawler.settings)
    return Path(directory, FOLDER) if directory else None
