"""Values of options that several commands take."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def utc_time(text: str) -> datetime:
    """An ISO date or time; without a zone it is UTC, like all times in the reports. ValueError:
    it is none.
    """
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
