"""Verdicts of responses, kept beside them.

``response.meta`` is not the place: spiders copy meta into new requests. A response that never passes the
middleware (a 404 with an errback) would then act on its parent's verdict. An attribute is not the place
either, because responses have slots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from scrapy.http import Response

    from neardup.detection.verdict import Verdict

_verdicts: WeakKeyDictionary[Response, Verdict] = WeakKeyDictionary()


def set_verdict(response: Response, verdict: Verdict) -> None:
    _verdicts[response] = verdict


def get_verdict(response: Response) -> Verdict | None:
    """The verdict of the page a callback is handling; None if neardup is off or left the page alone.

    It belongs to the response object that Scrapy passed to the callback, not to copies made with
    ``replace()``.
    """
    return _verdicts.get(response)
