"""Values of options that several commands take."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime

MOST = 2**63 - 1
"""The highest number that all databases take."""


def count(text: str) -> int:
    """A whole number from 1 to ``MOST``."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    if int(text) > MOST:
        raise argparse.ArgumentTypeError(f"{text} is too large: at most {MOST}")
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
    try:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError as exc:  # in UTC it lies before the year 1, or after the year 9999
        raise ValueError(text) from exc
