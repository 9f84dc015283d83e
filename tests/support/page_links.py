"""The requests of a page, for tests that make pages by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.scrapy.elsewhere import Source
from neardup.scrapy.links import PageLinks

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.http import Response

    from neardup.detection.verdict import Verdict
    from neardup.scrapy.links import Links


def page_links(
    links: Links, response: Response, verdict: Verdict | None, text: Callable[[], str]
) -> PageLinks:
    """Those of a page out of which something has come before."""
    links.giving.note(response.request)
    return PageLinks(links, Source(response), verdict, text)
