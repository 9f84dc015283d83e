"""Waiting without blocking, on asyncio and on Twisted's own reactors, for Scrapy 2.14 on.

Scrapy has had the like since 2.15 (``run_in_thread``) and 2.18 (``sleep``).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler


async def sleep(seconds: float) -> None:
    if is_asyncio_available():
        await asyncio.sleep(seconds)
    else:
        done: Deferred[None] = Deferred()
        call_later(seconds, done.callback, None)
        await maybe_deferred_to_future(done)


async def run_in_thread(function: Callable[[], None]) -> None:
    if is_asyncio_available():
        await asyncio.to_thread(function)
    else:
        from twisted.internet.threads import deferToThread  # noqa: PLC0415  # installs a reactor on import

        await maybe_deferred_to_future(deferToThread(function))


def wake(crawler: Crawler) -> None:
    """Have an idle engine look for work at once.

    Scrapy has no public call for that. Where its slot is not as it was in 2.14 to 2.19, the engine looks at
    its next heartbeat, up to five seconds later.
    """
    nextcall = getattr(getattr(crawler.engine, "_slot", None), "nextcall", None)
    if nextcall is not None:
        nextcall.schedule()
