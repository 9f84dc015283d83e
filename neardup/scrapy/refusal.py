"""A crawl that cannot start says why in one line."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from neardup.errors import NeardupError

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """What neardup raises within is logged as one ERROR, with the traceback at DEBUG, and raised again.

    The error goes on to Scrapy, which starts no crawl then. Whatever else is raised is a bug, and keeps its
    traceback.
    """
    try:
        yield
    except NeardupError as exc:
        logger.error("neardup: the crawl does not start: %(error)s", {"error": exc})
        logger.debug("neardup: where the crawl stopped", exc_info=True)
        _retrieve_at_the_end()
        # The causes are in the DEBUG line; whoever prints the error prints it alone.
        raise exc from None


def _retrieve_at_the_end() -> None:
    """Have the error of the task that starts the crawl count as retrieved.

    Scrapy keeps no hand on that task, so asyncio would log the error again with its traceback. Who awaits the
    task gets the error all the same.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop is running: another reactor of Twisted
        return
    if task is not None:
        task.add_done_callback(_retrieve)


def _retrieve(task: asyncio.Task[object]) -> None:
    if not task.cancelled():
        task.exception()
