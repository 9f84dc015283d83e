"""Pairs of pages that people would agree on: whether both have the same main item.

People call two pages the same if the main item is the same (Henzinger 2006, section 4). So the label of a
pair follows from how the pair came about. Resemblance only says which pairs of versions are left out:

- ``versions``: pages of one path in neighbouring releases of a manual. A pair of the very same text is left
  out, because every rule finds it. So is a pair whose resemblance is below ``LEAST_OF_VERSIONS``: people may
  call it the same page, or another page in its place.
- ``items`` and ``lists``: pages of other paths in one release. ``LISTS`` says which are lists. For a page,
  one partner is the page whose whole text is most alike, one is drawn at random.
- ``translations``: one path in two languages. Judges read the text, and the texts have hardly a word in
  common.
- *Made pairs* from the same pages: Henzinger's four kinds of correct pair, revised articles, and shops.

Pages that a crawl does not judge are left out: those with fewer than ten distinct words, and huge ones.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from lxml import etree

from neardup.detection.detector import Detector, DetectorOptions
from neardup.errors import PageTooLarge
from neardup.fingerprint import sketch
from neardup.text.folders import html_files, read_page
from neardup.text.visible_text import decode, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from random import Random

    from neardup.detection.document_frequencies import DocumentFrequencies
    from neardup.fingerprint.reader import Reading

OPTIONS = DetectorOptions()
READER = OPTIONS.make_reader()

LEAST_OF_VERSIONS = 0.5
"""Of the whole texts, for versions."""

REVISED = 0.9
"""Versions that resemble each other less are ``revised``, the others ``version``."""

LISTS = re.compile(
    r"(?:^|[/_-])(?:gen|all)?(?:index|classes|packages|functions|globals|members|tree|summary|use|toc)"
    r"(?:[-_.][^/]*)?$",
    re.IGNORECASE,
)
"""In the path of a page whose main item is a list of other pages."""

NUMBERED = re.compile(r"(?:^|/)a\d{5}")
"""Names of Doxygen's that number the pages of a release: the next release has other pages under them."""

PARAGRAPHS = 12
"""Paragraphs that a page must have to pass for an article."""

SHARE_REVISED = 0.06
"""Share of an article's paragraphs that a revision replaces, beside the lead. Most revisions then resemble
the article by 0.7 to 0.9, as revised news do.
"""

PRODUCTS = 200
LISTED = 20
MENU_LINKS = 120
FOOTER_WORDS = 150


@dataclass(eq=False)
class Page:
    """A page of a site; ``name`` is its path below the folder of its version, ``text`` its visible text."""

    url: str
    name: str
    text: bytes
    reading: Reading
    path: Path | None = None

    @cached_property
    def shingles(self) -> sketch.Hashes:
        return np.unique(self.reading.shingles)

    @cached_property
    def words(self) -> list[str]:
        return self.text.decode("utf-8", "replace").split()

    def html(self) -> str:
        assert self.path is not None
        return decode(read_page(self.path))


@dataclass(eq=False)
class Site:
    """The pages of one host, version by version, and what a crawl of all of them learns."""

    name: str
    versions: list[list[Page]]
    translated: bool = False
    frequencies: DocumentFrequencies = field(init=False)

    def __post_init__(self) -> None:
        pages = [page for version in self.versions for page in version]
        random.Random(0).shuffle(pages)
        detector = Detector(OPTIONS, reader=READER)
        for page in pages:
            detector.judge(page.url, page.reading)
        self.frequencies = detector.verifier.frequencies


class Pair(NamedTuple):
    """``same``: whether people would say that the main item is the same."""

    kind: str
    same: bool
    site: Site
    a: Page
    b: Page

    @property
    def is_real(self) -> bool:
        """Whether both pages are as somebody published them."""
        return self.a.path is not None and self.b.path is not None


def read(url: str, name: str, html: str, path: Path | None = None) -> Page | None:
    """A page; None if it is too short or too long to be judged."""
    root = parse(html)
    if root is None:
        return None
    try:
        reading = READER.read_tree(url, root)
    except PageTooLarge:
        return None
    if not reading.can_be_matched(OPTIONS.min_features):
        return None
    return Page(url, name, READER.content.utf8(url, root), reading, path)


def load(name: str, folders: Sequence[Path], leave_out: str, *, translated: bool = False) -> Site:
    """The site of these folders, each of which has a version."""
    versions = []
    for number, folder in enumerate(folders):
        pages = []
        top = folder.resolve()
        for path in html_files([top]):
            place = path.relative_to(top).as_posix()
            if leave_out and re.search(leave_out, place):
                continue
            page = read(f"http://{name}.example/{number}/{place}", place, decode(read_page(path)), path)
            if page is not None:
                pages.append(page)
        versions.append(pages)
    return Site(name, versions, translated)


def all_pairs(sites: Sequence[Site], most: int) -> Iterator[Pair]:
    """The set: of each site at most ``most`` real pairs of a kind; of all together ``most`` made ones."""
    for site in sites:
        yield from versions(site, most)
        yield from translations(site, most) if site.translated else different(site, most)
    for kind in CORRECT:
        yield from correct(sites, kind, most)
    yield from entry_pages(sites, most)
    yield from articles(sites, most)
    for site in sites:
        yield from shop_pairs(site, most // len(sites))


def versions(site: Site, most: int) -> Iterator[Pair]:
    """Pages of one path in neighbouring versions."""
    found = []
    for older, newer in pairwise(site.versions):
        by_name = {page.name: page for page in older}
        for page in newer:
            before = by_name.get(page.name)
            if before is None or NUMBERED.search(page.name):
                continue
            alike = sketch.resemblance(before.shingles, page.shingles)
            if alike >= LEAST_OF_VERSIONS and before.reading.text_digest != page.reading.text_digest:
                kind = "version" if alike >= REVISED else "revised"
                found.append(Pair(kind, True, site, before, page))
    for kind in ("version", "revised"):
        yield from _drawn([pair for pair in found if pair.kind == kind], most)


def different(site: Site, most: int) -> Iterator[Pair]:
    """Pages of one version and of other paths, each with the page most like it and one drawn at random."""
    pages = site.versions[-1]
    sketches = np.array([page.reading.sketch for page in pages])
    chance = random.Random(site.name)
    for kind, some in (
        ("items", [place for place, page in enumerate(pages) if not LISTS.search(page.name)]),
        ("lists", [place for place, page in enumerate(pages) if LISTS.search(page.name)]),
    ):
        if len(some) < 2:
            continue
        of_kind = np.array(some)
        for place in chance.sample(some, min(len(some), most)):
            page = pages[place]
            alike = sketch.compact_estimates(sketches[of_kind], sketches[place])
            alike[[pages[other].reading.text_digest == page.reading.text_digest for other in some]] = -1.0
            other = pages[int(of_kind[alike.argmax()])]
            if alike.max() >= 0.0:
                yield Pair(f"{kind}, nearest", False, site, other, page)
            other = pages[chance.choice(some)]
            if other.reading.text_digest != page.reading.text_digest:
                yield Pair(f"{kind}, any", False, site, other, page)


def translations(site: Site, most: int) -> Iterator[Pair]:
    """One path in two languages; the first part of a path names the language."""
    by_name: dict[str, list[Page]] = {}
    for page in site.versions[-1]:
        by_name.setdefault(page.name.partition("/")[2], []).append(page)
    found = [
        Pair("translations", False, site, a, b)
        for pages in by_name.values()
        for a, b in pairwise(pages)
        if a.reading.text_digest != b.reading.text_digest
    ]
    yield from _drawn(found, most)


def _drawn(pairs: list[Pair], most: int) -> list[Pair]:
    return random.Random(0).sample(pairs, min(len(pairs), most))


def _session(chance: Random) -> str:
    number = f"{chance.randrange(16**16):016x}"
    return f'<p>Session {number} <a href="/?sid={number}">home</a></p>'


def _time(chance: Random) -> str:
    day, hour, minute = chance.randrange(1, 29), chance.randrange(10, 24), chance.randrange(10, 60)
    return (
        f"<p>Page made on {day} March 2026 at {hour}:{minute} in 0.{chance.randrange(100, 999)} seconds</p>"
    )


def _counter(chance: Random) -> str:
    return f"<p>You are visitor number {chance.randrange(10**6):,}; {chance.randrange(500)} users online</p>"


def _server(chance: Random) -> str:
    name = chance.choice(("www", "web", "node", "cache"))
    return f"<p>Served by {name}{chance.randrange(90)}.farm.example</p>"


def _url(chance: Random) -> str:
    return f"<p>Address: http://m{chance.randrange(90)}.example/view?id={chance.randrange(10**6)}&amp;print=1</p>"


def _invisible(chance: Random) -> str:
    number = f"{chance.randrange(16**16):016x}"
    return f"<!-- {number} --><script>var id = '{number}'</script><input type='hidden' value='{number}'>"


CORRECT: dict[str, tuple[Callable[[Random], str], ...]] = {
    "session id": (_session,),
    "time": (_time,),
    "counter": (_counter,),
    "server name": (_server,),
    "URL": (_url,),
    "invisible": (_invisible,),
    "all of these": (_session, _time, _counter, _server, _url, _invisible),
}
"""Henzinger's first three kinds of correct pair: what alone may differ, its invisible parts, and all."""


def _with_end(html: str, part: str) -> str:
    place = html.lower().rfind("</body>")
    return html + part if place < 0 else html[:place] + part + html[place:]


def correct(sites: Sequence[Site], kind: str, most: int) -> Iterator[Pair]:
    """Pages of all sites with something at their end that differs and does not matter."""
    chance = random.Random(kind)
    for number in range(most):
        site = sites[number % len(sites)]
        page = chance.choice(chance.choice(site.versions))
        html = page.html()
        both = [
            read(
                f"{page.url}?{number}-{side}",
                page.name,
                _with_end(html, "".join(part(chance) for part in CORRECT[kind])),
            )
            for side in "ab"
        ]
        yield from _pair(kind, True, site, *both)


def entry_pages(sites: Sequence[Site], most: int) -> Iterator[Pair]:
    """Henzinger's fourth kind: entry pages to one site, here on two servers and with other news."""
    chance = random.Random("entry page")
    for site in sites:
        entries = [
            page
            for version in site.versions
            for page in version
            if re.search(r"(^|/)index\.html?$", page.name)
        ]
        for number in range(min(most // len(sites), len(entries))):
            page = chance.choice(entries)
            both = []
            for side in "ab":
                news = " ".join(_run_of_words(chance.choice(chance.choice(site.versions)), 15, chance))
                parts = f"<p>News: {escape(news)}</p>{_server(chance)}{_counter(chance)}"
                both.append(read(f"{page.url}?{number}-{side}", page.name, _with_end(page.html(), parts)))
            yield from _pair("entry page", True, site, *both)


def _pair(kind: str, same: bool, site: Site, a: Page | None, b: Page | None) -> Iterator[Pair]:
    if a is not None and b is not None:
        yield Pair(kind, same, site, a, b)


def articles(sites: Sequence[Site], most: int) -> Iterator[Pair]:
    """A page with paragraphs and its revision: another lead, some paragraphs, and perhaps a new headline."""
    chance = random.Random("articles")
    for kind, renamed in (("article, revised", False), ("article, new headline", True)):
        for number in range(most):
            site = sites[number % len(sites)]
            page, other = (chance.choice(chance.choice(site.versions)) for _ in "ab")
            html = page.html()
            revision = _revision(html, other, chance, renamed=renamed)
            if revision is not None:
                both = [
                    read(f"{page.url}?{number}-{side}", page.name, one)
                    for side, one in (("a", html), ("b", revision))
                ]
                yield from _pair(kind, True, site, *both)


def _revision(html: str, other: Page, chance: Random, *, renamed: bool) -> str | None:
    """A page with its first paragraph, and some others, replaced by words of another page; None if it has
    too few paragraphs.
    """
    root = parse(html)
    paragraphs = [] if root is None else [p for p in root.iter("p") if len(_words_of(p)) >= 10]
    if root is None or len(paragraphs) < PARAGRAPHS:
        return None
    replaced = {0, *chance.sample(range(1, len(paragraphs)), max(1, round(SHARE_REVISED * len(paragraphs))))}
    for place in replaced:
        size = len(_words_of(paragraphs[place]))
        _set_text(paragraphs[place], " ".join(_run_of_words(other, size, chance)))
    if renamed:
        words = _words_of(paragraphs[-1])
        for heading in [*root.iter("title", "h1")][:2]:
            _set_text(heading, " ".join(words[:7]))
    return etree.tostring(root, encoding="unicode", method="html")


def _words_of(element: etree._Element) -> list[str]:
    return " ".join(map(str, element.itertext())).split()


def _set_text(element: etree._Element, text: str) -> None:
    for child in [*element]:
        element.remove(child)
    element.text = text


def _run_of_words(page: Page, size: int, chance: Random) -> list[str]:
    """Words of a page in their order, from a place drawn at random."""
    start = chance.randrange(max(1, len(page.words) - size))
    return page.words[start : start + size]


class Product(NamedTuple):
    name: str
    model: int
    description: list[str]


def shop_pairs(site: Site, most: int) -> Iterator[Pair]:
    """A shop made of the words of a site: products and lists in one template."""
    chance = random.Random(f"shop {site.name}")
    shop = _Shop(site, chance)
    pages = [shop.page(product, number) for number, product in enumerate(shop.products)]
    lists = [
        shop.listing(shop.products[start : start + LISTED], start) for start in range(0, PRODUCTS, LISTED)
    ]
    known = [page for page in (*pages, *lists) if page is not None]
    crawled = Site(f"shop-{site.name}", [known])
    for number in range(most):
        a = chance.randrange(PRODUCTS // 2)
        b = (a + chance.randrange(1, PRODUCTS // 2)) % (PRODUCTS // 2)
        yield from _pair("product, other", False, crawled, pages[a], pages[b])
        yield from _pair("product, other model", False, crawled, pages[a], pages[a + PRODUCTS // 2])
        again = shop.page(shop.products[a], f"{a}?{number}")
        yield from _pair("product, other price", True, crawled, pages[a], again)
        start = LISTED * chance.randrange(PRODUCTS // LISTED)
        some = shop.products[start : start + LISTED]
        mixed = shop.listing(chance.sample(some, LISTED), f"{start}?{number}")
        yield from _pair("list, other order", True, crawled, lists[start // LISTED], mixed)
        other = (start // LISTED + chance.randrange(1, PRODUCTS // LISTED)) % (PRODUCTS // LISTED)
        yield from _pair("list, other page", False, crawled, lists[start // LISTED], lists[other])


class _Shop:
    """Pages of a shop. The second half of the products are other models of the first half."""

    def __init__(self, site: Site, chance: Random) -> None:
        self._chance = chance
        self._host = f"shop-{site.name}.example"
        pages = [page for version in site.versions for page in version if len(page.words) >= 100]
        half = PRODUCTS // 2
        first = []
        for page in chance.choices(pages, k=half):
            name = " ".join(_run_of_words(page, 3, chance))
            first.append(
                Product(name, chance.randrange(100, 999), self._words(pages, chance.randrange(40, 100)))
            )
        models = [
            Product(
                one.name,
                one.model + chance.randrange(1, 99),
                one.description[: len(one.description) // 2] + self._words(pages, len(one.description) // 2),
            )
            for one in first
        ]
        self.products = first + models
        self._menu = "".join(
            f"<li><a href='/{place}'>{escape(' '.join(self._words(pages, 3)))}</a></li>"
            for place in range(MENU_LINKS)
        )
        self._footer = escape(" ".join(self._words(pages, FOOTER_WORDS)))

    def _words(self, pages: Sequence[Page], size: int) -> list[str]:
        return _run_of_words(self._chance.choice(pages), size, self._chance)

    def page(self, product: Product, place: object) -> Page | None:
        """The page of a product; price, stock and what others bought are drawn anew each time."""
        chance = self._chance
        name = escape(f"{product.name} {product.model}")
        bought = "".join(
            f"<li>{escape(one.name)} {one.model}</li>" for one in chance.sample(self.products, 4)
        )
        return self._page(
            f"p/{place}",
            name,
            f"<p>{escape(' '.join(product.description))}</p><p>Price: {chance.randrange(5, 500)}.99 EUR,"
            f" {chance.randrange(90)} in stock</p><h2>Customers also bought</h2><ul>{bought}</ul>",
        )

    def listing(self, products: Sequence[Product], place: object) -> Page | None:
        items = "".join(
            f"<li>{escape(one.name)} {one.model}: {escape(' '.join(one.description[:12]))}</li>"
            for one in products
        )
        return self._page(f"list/{place}", "All products", f"<ul>{items}</ul>")

    def _page(self, path: str, title: str, main: str) -> Page | None:
        html = (
            f"<html><head><title>{title} – The shop</title></head><body><ul>{self._menu}</ul><h1>{title}</h1>"
            f"{main}<p>{self._footer}</p></body></html>"
        )
        return read(f"http://{self._host}/{path}", path, html)
