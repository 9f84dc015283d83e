"""What a page says of its own address: its canonical URL, and its versions for other languages.

Both stand in ``link`` elements of the head (RFC 6596; the ``hreflang`` attribute of the HTML standard).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

from neardup.address import is_web, page_url

if TYPE_CHECKING:
    from lxml import etree

MOST_LINKS = 300
"""Links in the head that are looked at."""

_LONGEST = 2_048
"""Characters of a URL; longer ones are taken for none."""


class Declared(NamedTuple):
    """URLs without fragments. None of them is that of the page itself.

    - ``canonical``: of the page that a page calls its canonical one; None: of none, or of several.
    - ``alternates``: of its versions for other languages or regions.
    """

    canonical: str | None = None
    alternates: frozenset[str] = frozenset()


def declared(url: str, root: etree._Element) -> Declared:
    """What the page of a URL says.

    >>> from lxml import etree
    >>> head = "<link rel=canonical href=/x><link rel=alternate hreflang=de href=/de/x>"
    >>> declared("http://a.example/x?sid=1", etree.HTML(f"<head>{head}</head>"))
    Declared(canonical='http://a.example/x', alternates=frozenset({'http://a.example/de/x'}))
    """
    head = root.find("head")
    if head is None:
        return Declared()
    base, canonical, alternates = url, set[str](), set[str]()
    own = page_url(url)
    for number, element in enumerate(head.iterchildren("base", "link")):
        if number == MOST_LINKS:
            break
        href = (element.get("href") or "").strip()
        relations = (element.get("rel") or "").lower().split()
        if element.tag == "base":
            base = _joined(url, href) or base
        elif "canonical" in relations:
            canonical.add(_joined(base, href))
        elif "alternate" in relations and element.get("hreflang"):
            alternates.add(_joined(base, href))
    named = canonical.pop() if len(canonical) == 1 else ""
    return Declared(None if named in {own, ""} else named, frozenset(alternates - {own, ""}))


def _joined(base: str, href: str) -> str:
    """The URL of a link; "" if it leads nowhere on the web."""
    if not href or len(href) > _LONGEST:
        return ""
    try:
        url = page_url(urljoin(base, href))
    except ValueError:
        return ""
    return url if is_web(url) else ""
