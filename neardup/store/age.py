"""Ages such as ``12h``, ``90d`` or ``8w``."""

from __future__ import annotations

import re
from datetime import timedelta

_HOURS = {"h": 1, "d": 24, "w": 168}


def parse_age(text: str) -> timedelta:
    """The age that a text means; ValueError if it means none.

    >>> parse_age("8w").days
    56
    """
    parsed = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if parsed is None:
        raise ValueError(f"{text!r} is no age like 12h, 90d or 8w")
    return timedelta(hours=int(parsed[1]) * _HOURS[parsed[2]])
