"""The form of Khan & Ali: a page goes in, and out comes what the store has like it. Each step is timed.

Nothing is stored unless the form asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

from neardup.address import Address
from neardup.collection.keep import keep
from neardup.collection.lookup import Checked, known_pages, look_up
from neardup.store import page_report
from neardup.web.site import Answer, BadRequest

if TYPE_CHECKING:
    from neardup.collection.lookup import Known
    from neardup.detection.detector import DetectorOptions
    from neardup.fingerprint.reader import Reader, Reading
    from neardup.store.store import Store
    from neardup.web.site import Asked, Site

_MOST_SHOWN = 10
_UNNAMED = "http://pasted.invalid/"
"""The address of a page that has none."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step, and how long it took."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Stored:
    """The page that was stored because somebody asked for it, as that of a crawl of its own."""

    key: str
    kind: str
    crawl_id: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found about a page, and what finding it took; ``stored`` is None unless it was asked for."""

    checked: Checked
    steps: list[Step]
    stored: Stored | None


class KnownPages:
    """What pages are compared with, read again when the store has changed: seconds for a million pages."""

    def __init__(self, store: Store, options: DetectorOptions) -> None:
        self._store, self._options = store, options
        self._lock = Lock()
        self._state: list[list[Any]] | None = None
        self._known: Known | None = None

    def current(self, reader: Reader) -> Known:
        """``reader``: what has read the page to compare. Who comes while others read waits for them."""
        with self._lock:
            state = self._store.state(but=0)
            if self._known is None or state != self._state:
                self._known, self._state = known_pages(self._store, self._options, reader), state
            return self._known._replace(reader=reader)


def form(site: Site, asked: Asked) -> Answer:
    return _answer(None, asked)


def check(site: Site, asked: Asked) -> Answer:
    with site.store.looking() as connection:
        stored = page_report.stored_scheme(connection)
    reader = site.options.make_reader(keeps_text=site.reader.keeps_text)
    if stored is not None and stored != str(reader.scheme):
        raise BadRequest(f"the store has pages of the scheme {stored}, these settings are of {reader.scheme}")
    url, reading, fetched = _read(site, reader, asked)
    to_store = asked.form.get("store") == "yes"
    if to_store and url == _UNNAMED:
        raise BadRequest("a page is stored by its URL: give one with the HTML")
    started = perf_counter()
    known = site.known.current(reader)
    loaded = perf_counter()
    found = look_up(known, url, reading, limit=_MOST_SHOWN)
    looked_up = perf_counter()
    kept: Stored | None = None
    if to_store:
        crawl_id, verdict = keep(known, url, reading, site.settings)
        kept = Stored(Address.of(url).key.hex(), verdict.kind.value, crawl_id)
    seconds = reader.seconds
    steps = [
        Step("fetch", fetched),
        Step("purify", seconds.text),
        Step("words", seconds.features),
        Step("fingerprint", seconds.simhash),
        Step("sketch", seconds.sketch),
        Step("load what is known", loaded - started),
        Step("look up", looked_up - loaded),
    ]
    if kept is not None:
        steps.append(Step("store", perf_counter() - looked_up))
    return _answer(Outcome(found, steps, kept), asked)


def _read(site: Site, reader: Reader, asked: Asked) -> tuple[str, Reading, float]:
    """The address of the page, the page as it is compared, and how long the fetch took."""
    url, html, file = (asked.form.get(name) or "" for name in ("url", "html", "file"))
    given: str | bytes = file or html
    if given:
        address = str(url).strip() or _UNNAMED
        return address, reader.read_html(address, given), 0.0
    if not str(url).strip():
        raise BadRequest("give a URL, the HTML of a page, or a file")
    started = perf_counter()
    response = site.fetch(str(url).strip())
    fetched = perf_counter() - started
    return response.url, reader.read_response(response), fetched


def _answer(outcome: Outcome | None, asked: Asked) -> Answer:
    data: dict[str, Any] = {"outcome": outcome}
    return Answer(
        template="check.html", title="Compare", data=data, values={"url": asked.form.get("url") or ""}
    )
