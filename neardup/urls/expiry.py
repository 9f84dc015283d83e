"""URLs that are good for some time only."""

from __future__ import annotations

import re
from time import time

_LONGEST = 7 * 86_400
"""Seconds. Amazon S3 signs URLs for a week at most."""

_TIME = re.compile(r"(?<!\d)(\d{10})(?:\d{3})?(?!\d)")
"""Unix time in seconds or milliseconds."""

_NAME = re.compile(r"[?&;][^=&;]*expir(?:es|y|ation)[^=&;]*=", re.IGNORECASE)
"""A parameter such as ``Expires``, ``X-Amz-Expires`` or ``token_expiry``."""


def expires(url: str) -> bool:
    """Whether a URL says that it will be refused one day.

    It has a parameter that is named so, or holds a Unix time of the next seven days.

    >>> expires("https://a.example/page?X-Amz-Date=20261126T021500Z&X-Amz-Expires=300")
    True
    >>> expires(f"https://a.example/s/9f2e/{int(time()) + 60}/page.html"), expires("https://a.example/1234567890")
    (True, False)
    """
    if "xpir" in url.lower() and _NAME.search(url):  # the search takes long
        return True
    return any(0 <= int(seconds) - time() <= _LONGEST for seconds in _TIME.findall(url))
