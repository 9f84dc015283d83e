"""The templates of the HTML file and of the live page, and how they write numbers, times and URLs.

Whatever comes from outside is escaped by the templates, which know no exception but the charts of
:mod:`neardup.web.svg`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import neardup
from neardup.address import Address, is_web
from neardup.store.summary import ROWS, Part
from neardup.web import svg

if TYPE_CHECKING:
    from datetime import datetime

    from markupsafe import Markup

    from neardup.collection.mirrors import Mirror
    from neardup.store.summary import Summary

STATIC = Path(__file__).parent / "static"

_LONGEST = 160
"""Characters of a URL that are shown. The middle of a longer one is left out."""

_ENCODED = re.compile(r"(?:%[89A-Fa-f][0-9A-Fa-f])+")
"""Bytes of a URL that are not ASCII."""

_LONGEST_LINK = 1_000
"""Characters of a URL that the file links to, so that no store makes the file large."""


def render(template: str, **values: Any) -> str:
    """A template with its values, as HTML."""
    return environment().get_template(template).render(version=neardup.__version__, bar=svg.share, **values)


def load_templates() -> None:
    """Read all templates now, not while somebody waits."""
    for name in environment().list_templates(extensions=["html"]):
        environment().get_template(name)


@cache
def environment() -> Environment:
    """All templates. A name that a template misses is an error."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        auto_reload=False,  # a page of a new version knows names that this process does not
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        number=number,
        percent=percent,
        ratio=ratio,
        time=time,
        short=short,
        readable=readable,
        is_link=is_link,
        key=key,
    )
    made.globals["to"] = to
    return made


def number(value: int | None) -> str:
    """A count with thin spaces between thousands.

    >>> number(1234567), number(None)
    ('1\u202f234\u202f567', '–')
    """
    return "–" if value is None else f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}\N{NARROW NO-BREAK SPACE}%"


def ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def time(value: datetime | None) -> str:
    return "–" if value is None else f"{value:%Y-%m-%d %H:%M}\N{NARROW NO-BREAK SPACE}UTC"


def short(text: str) -> str:
    """A text of a bounded length: of a longer one, the middle is left out."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 61]}…{text[-60:]}"


def readable(url: str) -> str:
    """A URL for people, of a bounded length: letters of any script are shown as letters, as browsers do.

    >>> readable("http://a.example/%D8%B5%D9%81%D8%AD%D8%A9?%E2%80%AE=%26")
    'http://a.example/صفحة?%E2%80%AE=%26'
    """
    return short(_ENCODED.sub(_letters, url))


def _letters(encoded: re.Match[str]) -> str:
    """What bytes stand for, if these are letters, marks and digits: no space, no mark of direction."""
    try:
        text = unquote_to_bytes(encoded[0]).decode("utf-8")
    except UnicodeDecodeError:
        return encoded[0]
    return text if all(unicodedata.category(letter)[0] in "LMN" for letter in text) else encoded[0]


def is_link(url: str) -> bool:
    """Whether a reader may follow a URL: http(s), and not too long for a report."""
    return is_web(url) and len(url) <= _LONGEST_LINK


def key(url: str) -> str:
    """The key by which the live page names a page."""
    return Address.of(url).key.hex()


def to(path: str, **query: Any) -> str:
    """A path of the live page with its query; what is None or empty is left out.

    >>> to("/page", url="http://a.example/?x=1&y", after=None)
    '/page?url=http%3A%2F%2Fa.example%2F%3Fx%3D1%26y'
    """
    given = {name: value for name, value in query.items() if value is not None and value != ""}
    return f"{path}?{urlencode(given, errors='surrogatepass')}" if given else path


def charts(summary: Summary) -> dict[str, Markup]:
    """The charts of a summary, by name."""
    most = max([summary.max_distance + 2, *(at.distance for at in summary.distances)])
    least = min([0.7, *(at.resemblance - 0.02 for at in summary.resemblances)])
    return {
        "growth": svg.curve(
            "distinct pages by pages fetched",
            [(at.pages, at.distinct) for at in summary.growth],
            x_name="pages fetched",
            y_name="distinct pages",
        ),
        "curve": svg.curve(
            "unique pages by requests made",
            summary.curve.points if summary.curve else [],
            x_name="requests made",
            y_name="unique pages",
        ),
        "days": svg.columns(
            "pages by day", [(day.name, day.pages, day.duplicates) for day in summary.days.rows]
        ),
        "distances": svg.histogram(
            "duplicates by distance",
            [(at.distance, at.duplicates) for at in summary.distances],
            ends=(-0.5, most + 0.5),
            step=1.0,
            ticks=range(0, most + 1, 1 + most // 16),
            threshold=summary.max_distance + 0.5,
            threshold_name=f"at most {summary.max_distance} bits",
        ),
        "resemblances": svg.histogram(
            "duplicates by resemblance",
            [(at.resemblance, at.duplicates) for at in summary.resemblances],
            ends=(least, 1.01),
            step=0.02,
            ticks=[tick / 20 for tick in range(21) if least <= tick / 20],
            threshold=summary.verify,
            threshold_name=f"at least {ratio(summary.verify)}",
        ),
    }


def first_mirrors(mirrors: list[Mirror]) -> Part[Mirror]:
    """As many as the report shows."""
    return Part(mirrors[:ROWS], len(mirrors))


def report_file(summary: Summary, mirrors: list[Mirror]) -> str:
    """The report as one file, which asks for nothing else."""
    style = _Plain((STATIC / "style.css").read_text("utf-8"))
    shown = first_mirrors(mirrors)
    return render(
        "file.html", summary=summary, mirrors=shown, charts=charts(summary), style=style, live=False
    )


class _Plain(str):
    """Our own style sheet, which stands in the file as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return self
