"""Verdicts of responses, kept beside them.

``response.meta`` is not the place: spiders copy meta into new requests. A response that never passes the
middleware (a 404 with an errback) would then act on its parent's verdict. An attribute is not the place
either, because responses have slots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

if TYPE_CHECKING:
    from scrapy.http import Response

    from neardup.detection.verdict import Verdict

_verdicts: WeakKeyDictionary[Response, Verdict] = WeakKeyDictionary()


def set_verdict(response: Response, verdict: Verdict) -> None:
    _verdicts[response] = verdict


class DoubtfulResponses:
    """The responses of doubtful duplicates whose callbacks may be under way yet, by page; of one crawl."""

    def __init__(self) -> None:
        self._responses: WeakValueDictionary[int, Response] = WeakValueDictionary()

    def judged(self, response: Response, verdict: Verdict) -> None:
        """Note the last response of a page."""
        if verdict.page_id is not None and verdict.is_doubtful:
            self._responses[verdict.page_id] = response

    def correct(self, verdict: Verdict) -> None:
        """Have the callback's output handled by the new verdict from now on."""
        response = None if verdict.page_id is None else self._responses.pop(verdict.page_id, None)
        if response is not None:
            set_verdict(response, verdict)


def get_verdict(response: Response) -> Verdict | None:
    """The verdict of the page a callback is handling; None if neardup is off or left the page alone.

    It belongs to the response object that Scrapy passed to the callback, not to copies made with
    ``replace()``.
    """
    return _verdicts.get(response)
