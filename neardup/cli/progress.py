"""What long commands share: progress on standard error, Ctrl-C, and numbers of things in messages."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERRUPTED = 130
"""Exit code after Ctrl-C, as the shell's."""

QUIET_SECONDS = 1.5
"""What takes no longer says nothing of its progress."""

_BETWEEN_SECONDS = 2.0


@contextmanager
def interruptible(consequence: str) -> Iterator[None]:
    """Ctrl-C ends the command with a line and 130, not with a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"\nneardup: interrupted; {consequence}", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


class Progress:
    """Says now and then how much is done, once it takes longer than a moment."""

    def __init__(self, things: str, total: int) -> None:
        self._things, self._total = things, total
        self._began = time.monotonic()
        self._last = self._began + QUIET_SECONDS - _BETWEEN_SECONDS

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if now - self._last < _BETWEEN_SECONDS:
            return
        self._last = now
        speed = done / (now - self._began)
        left = f", {max(0, self._total - done) / speed:,.0f} s left" if speed else ""
        print(
            f"{done:,} of {self._total:,} {self._things}, {speed:,.0f} a second{left}",
            file=sys.stderr,
            flush=True,
        )


def number(count: int, thing: str) -> str:
    """A number of things in words.

    >>> number(1, "page"), number(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
