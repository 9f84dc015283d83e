"""Before a chain of alike pages is given up, a few pages further on are asked for."""

from __future__ import annotations

import logging
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from neardup.scrapy.look_ahead import _Own, _Pages
from neardup.urls.parts import url_shape
from tests.support.sites.chains import Album, Customers, Drawings, Guests, Readings, Scripted, name_of
from tests.support.sites.in_process import crawl_site
from tests.support.sites.served import Answer, Ask, page
from tests.support.sites.stations import Archive
from tests.support.sites.text import digest

if TYPE_CHECKING:
    from tests.support.sites.processes import Outcome

pytestmark = pytest.mark.slow

LIMIT = 20


class Photos(Album):
    """An album that has something else beyond its end; ``/robots.txt`` forbids what it is told to."""

    def __init__(self, beyond: Answer, robots: str = "") -> None:
        super().__init__()
        self._beyond = beyond
        self._robots = robots
        self.cookies: list[dict[str, str]] = []

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/robots.txt":
            return Answer(self._robots, headers={"Content-Type": "text/plain"})
        found = super().answer(ask)
        if found.status != 200:
            self.cookies.append(ask.cookies)
            return self._beyond
        headers = found.headers | {"Set-Cookie": "visit=7; Path=/"}
        return Answer(found.body, key=found.key, headers=headers)


def photos(done: Outcome) -> int:
    """How many the spider has got."""
    return sum(item["title"] == "Photo" for item in done.items)


def crawled(site: Photos, addon: dict[str, Any], **more: Any) -> Outcome:
    return crawl_site(site, addon | {"NEARDUP_ENDLESS_AFTER": LIMIT} | more)


@pytest.mark.parametrize(
    "beyond",
    [
        Answer("gone", status=410),
        Answer("<h1>Nothing</h1><p>We have no such photo, but many others.</p>"),
        Answer("", status=302, headers={"Location": "/"}),
    ],
    ids=["gone", "soft 404", "redirect to the start"],
)
def test_an_end_in_whatever_form(beyond: Answer, addon: dict[str, Any]) -> None:
    done = crawled(Photos(beyond), addon)

    assert photos(done) == 90
    assert done.stats["neardup/looked_ahead"] == 3
    assert "neardup/exhausted" not in done.stats


@pytest.mark.parametrize("status", [403, 429, 503])
def test_a_site_that_does_not_like_the_crawl_tells_nothing(status: int, addon: dict[str, Any]) -> None:
    done = crawled(Photos(Answer("no", status=status)), addon)

    assert done.stats["neardup/looked_ahead"] == 4
    assert done.stats["neardup/exhausted"] == 1


def test_robots_txt_holds(addon: dict[str, Any]) -> None:
    site = Photos(Answer("gone", status=410), robots="User-agent: *\nDisallow: /photo/197\n")

    done = crawled(site, addon, ROBOTSTXT_OBEY=True)

    asked = {request.target for request in done.requests}
    assert "/photo/677" in asked
    assert "/photo/197" not in asked
    assert photos(done) == 90


def test_as_the_last_page_was_asked_for(addon: dict[str, Any]) -> None:
    site = Photos(Answer("gone", status=410))

    crawled(site, addon)

    assert {"visit": "7"} in site.cookies


@pytest.mark.parametrize("site", [Customers, Scripted])
def test_words_that_are_not_shown_are_content(site: type[Customers], addon: dict[str, Any]) -> None:
    done = crawl_site(site(), addon | {"NEARDUP_ENDLESS_AFTER": LIMIT})

    assert sum(item["title"] == "Customer" for item in done.items) == 90
    assert done.stats["neardup/looked_ahead"] == 1
    assert "neardup/exhausted" not in done.stats


@pytest.mark.parametrize(
    ("site", "looked_ahead"),
    [
        (Drawings, 2),
        (Customers, 1),
        (Readings, 1),
        (Scripted, 1),
    ],  # the digests of drawings have numbers, too
)
def test_what_is_made_up_says_nothing(site: type[Drawings], looked_ahead: int, addon: dict[str, Any]) -> None:
    done = crawl_site(site(lasting=False), addon | {"NEARDUP_ENDLESS_AFTER": LIMIT})

    assert done.stats["neardup/looked_ahead"] == looked_ahead
    assert done.stats["neardup/exhausted"] == 1
    assert len(done.requests) < 3 * LIMIT


@pytest.mark.parametrize("lasting", [True, False])
def test_words_are_doubted(lasting: bool, addon: dict[str, Any]) -> None:
    """Words that are others each time say nothing, though no page has had them before."""
    done = crawl_site(Guests(lasting=lasting), addon | {"NEARDUP_ENDLESS_AFTER": LIMIT})

    assert (sum(item["title"] == "Guests" for item in done.items) == 90) is lasting
    assert done.stats["neardup/looked_ahead"] == (2 if lasting else 1)  # after 40 pages, and after 80
    assert ("neardup/exhausted" in done.stats) is not lasting
    assert lasting or len(done.requests) < 3 * LIMIT


class WithForms(Album):
    """Each photo has a form, which has a second page. The addresses of forms do not count."""

    def answer(self, ask: Ask) -> Answer:
        kind, _, place = ask.path.removeprefix("/").partition("/")
        if kind.startswith("send"):
            return page("Photo", self._prints, links={f"/mail{ask.path}": "By mail"})
        if kind == "mail":
            return page("Photo", self._prints)
        found = super().answer(ask)
        if kind != self.name:
            return found
        return replace(
            found, body=found.body.replace("</nav>", f'<a href="/send/{digest(place)}">Send</a></nav>')
        )


def test_the_end_is_that_of_the_pages_which_lead_on(addon: dict[str, Any]) -> None:
    """The last page of most such crawls is a form."""
    site = WithForms()

    done = crawl_site(site, addon | {"NEARDUP_ENDLESS_AFTER": LIMIT})

    assert done.found == site.keys


def test_few_pages_that_end_are_no_end_of_a_space_that_does_not_count() -> None:
    """Days at addresses that do not count; each links to the ten lists of the site."""
    pages = _Pages(_Own(lambda _: set()), _Own(lambda _: set()))
    for number in range(10):
        pages.note_url(f"http://a.example/list/{number}", "http://a.example/list/0")
    assert len(pages.further([100])) == 1

    for number in range(30):
        url = f"http://a.example/day/{digest(str(number))}"
        pages.note_url(url, url_shape(url))
    assert pages.further([100]) == []


class Visited(Guests):
    """Guests who stay, and three pages of each that say who else has been there, at random."""

    def answer(self, ask: Ask) -> Answer:
        name, _, guest = ask.path.removeprefix("/").partition("/")
        if name.startswith("visitors"):
            return page("Guests", f"Here is {name_of(self._made_up())}.", self._prints)
        found = super().answer(ask)
        if name != self.name:
            return found
        anchors = "".join(f'<a href="/visitors{number}/{guest}">Visitors</a>' for number in range(3))
        return replace(found, body=found.body.replace("</nav>", f"{anchors}</nav>"))


class ReadingsAndAdverts(Readings):
    """Readings beside words that are made up whenever a page is asked for."""

    def shown(self, number: int) -> tuple[str, ...]:
        heading, *parts = super().shown(number)
        return heading, *parts, f"Buy {name_of(self._made_up())}."


@pytest.mark.parametrize("made", [Visited, ReadingsAndAdverts])
def test_what_lasts_counts_beside_random_words(made: type[Drawings], addon: dict[str, Any]) -> None:
    site = made()

    done = crawl_site(site, addon | {"NEARDUP_ENDLESS_AFTER": LIMIT})

    assert done.found == site.keys
    assert "neardup/exhausted" not in done.stats


class PartlyShown(Customers):
    """Customers of whom the first ones are shown as words."""

    def __init__(self, shown: int) -> None:
        super().__init__()
        self._words = range(1, 1 + shown)

    def shown(self, number: int) -> tuple[str, ...]:
        heading, *parts = super().shown(number)
        return heading, *parts, *([f"{self._made_name(number)} is here."] if number in self._words else [])


@pytest.mark.parametrize("shown", range(LIMIT, LIMIT + 5))
def test_a_doubt_about_words_leaves_what_is_not_shown(shown: int, addon: dict[str, Any]) -> None:
    """The words are doubted just before the others have to speak for the chain."""
    site = PartlyShown(shown)

    done = crawl_site(site, addon | {"NEARDUP_ENDLESS_AFTER": LIMIT})

    assert done.found == site.keys
    assert "neardup/exhausted" not in done.stats


class CountedGuests(Guests):
    """The same at addresses that count, with no end in sight."""

    name = "p"

    def __init__(self) -> None:
        super().__init__(lasting=False)
        self.numbers = range(1, 1_000)

    def _path(self, number: int) -> str:
        return f"/{self.name}/{number}"


def test_random_words_are_no_end_of_a_space_that_counts(addon: dict[str, Any]) -> None:
    done = crawl_site(CountedGuests(), addon | {"NEARDUP_ENDLESS_AFTER": LIMIT})

    assert done.stats["neardup/exhausted"] == 1
    assert len(done.requests) < 3 * LIMIT


class Refusing(Guests):
    """Gives the same answer to all who ask for a page once more."""

    def __init__(self, refusal: Answer) -> None:
        super().__init__(lasting=False)
        self._refusal = refusal
        self._asked: set[str] = set()

    def answer(self, ask: Ask) -> Answer:
        if ask.path in self._asked:
            return self._refusal
        self._asked.add(ask.path)
        return super().answer(ask)


@pytest.mark.parametrize(
    "refusal",
    [
        Answer("<p>Later.</p>", status=429),
        Answer("<h1>Are you human?</h1><p>Please switch on scripts, wait for a moment, and try again.</p>"),
    ],
    ids=["later", "captcha"],
)
def test_words_are_not_doubted_without_an_answer(refusal: Answer, addon: dict[str, Any]) -> None:
    done = crawl_site(Refusing(refusal), addon | {"NEARDUP_ENDLESS_AFTER": LIMIT})

    assert sum(item["title"] == "Guests" for item in done.items) == 90
    assert "neardup/exhausted" not in done.stats


@pytest.mark.parametrize("made_up", [True, False])
def test_numbers_are_doubted(made_up: bool, addon: dict[str, Any]) -> None:
    """An archive ends early if its numbers are others each time."""
    site = Archive(3, 5, 6, 5, made_up=made_up)
    done = crawl_site(site, addon | {"NEARDUP_ENDLESS_AFTER": LIMIT})

    assert done.stats["neardup/looked_ahead"] in range(1, 20)
    assert ("neardup/exhausted" in done.stats) is made_up
    assert (done.found == site.keys) is not made_up


class Clocked(Archive):
    """Its numbers are others each second."""

    def now(self) -> str:
        return str(int(monotonic()))


def test_numbers_that_last_are_doubted_again_some_seconds_later(addon: dict[str, Any]) -> None:
    done = crawl_site(Clocked(6, 6, 6, 6), addon | {"NEARDUP_ENDLESS_AFTER": LIMIT})

    assert "neardup/exhausted" in done.stats
    assert len(done.found) < 1_000


def test_record_makes_no_such_request(addon: dict[str, Any]) -> None:
    done = crawled(Photos(Answer("gone", status=410)), addon, NEARDUP_ACTION="record")

    assert photos(done) == 90
    assert "neardup/looked_ahead" not in done.stats


def test_the_log_says_how_to_go_on(addon: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        crawled(Photos(Answer("no", status=403)), addon)

    assert "an unknown number of pages may lie behind them" in caplog.text
    assert "NEARDUP_ENDLESS_AFTER" in caplog.text
