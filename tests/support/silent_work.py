"""Processes that come to an end: one tells its process and then nothing any more, to be killed by a test."""

from __future__ import annotations

import os
from threading import Event, Timer
from typing import TYPE_CHECKING

from neardup.collection.workers import Process

if TYPE_CHECKING:
    from collections.abc import Callable


class Silent:
    """The work."""

    def __call__(self, task: None, tell: Callable[[int], None]) -> None:
        tell(os.getpid())
        Event().wait()

    def close(self) -> None:
        pass


class EndsAfterTask:
    """Work whose process ends a moment after it has answered."""

    def __call__(self, task: int, tell: Callable[[int], None]) -> int:
        Timer(0.3, os._exit, (1,)).start()
        return task

    def close(self) -> None:
        pass


def start() -> None:
    """Print which process does the work, and wait."""
    process = Process(Silent)
    process.connection.send(None)
    print(process.received()[1], flush=True)
    Event().wait()
