"""What is content: the body or its main part; by quality and by cost.

Run as ``python -m benchmarks.bench_content FOLDER…``, a folder for each version of one site, with the same
relative paths (``*.html``, ``*.html.gz``). Pages with the same relative path are taken for the same page, all
others for different ones. This is a proxy: pages move, and an index of names is not the same page a year
later. Pages of fewer than 10 distinct words, and all but the first of those with the same text, are left out.
The order is random with a fixed seed.

There are three tables: pairs with a resemblance ≥ 0.5, by cut; a crawl; ms of the processor a page. In
the crawl each page is compared with every canonical page. The site is crawled in three ways:

- alone;
- mixed with soft-404 pages of the site's own template;
- with a page that comes again and again with other dates.

All three are crawled once more with a menu of 400 words above every page, as large sites have it.
"""

from __future__ import annotations

import copy
import gzip
import random
import re
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lxml import etree

from neardup.detection.rule import VERIFY
from neardup.evaluation import join
from neardup.fingerprint import sketch
from neardup.text import feature_kernels
from neardup.text.content import BODY, MAIN, MIN_WORDS, Content
from neardup.text.features import Features
from neardup.text.visible_text import decode, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from neardup.fingerprint.sketch import Hashes

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]

LEAST = 0.5
CUTS = (0.7, 0.8, 0.9, 0.95)
MOST_TIMED = 300
ROUNDS = 3
HOST = "a.example"
URL = f"http://{HOST}/"
NOT_FOUND = (
    "<div><h1>Page not found</h1><p>Sorry, the page {} that you asked for does not exist on this server."
    " Please check the address, try the search or go back to the home page.</p></div>"
)
MAIN_PART = "main, [role=main], div.document, div.contents"
SOFT_PAGES = 300
MENU_WORDS = 400
FEATURES = Features()


@dataclass(eq=False)
class Page:
    """A page, read in two ways: hashes of the shingles of its body and of its main content."""

    path: str
    html: str
    shingles: dict[str, Hashes] = field(default_factory=dict)

    def read(self, contents: dict[str, Content]) -> Page:
        for mode, content in contents.items():
            self.shingles[mode] = shingles_of(content.text_of_html(URL, self.html))
        return self


def shingles_of(text: str) -> Hashes:
    return feature_kernels.shingles(FEATURES.extract(text).words, sketch.WIDTH)


def load(folders: list[str], contents: dict[str, Content]) -> list[Page]:
    pages, seen = [], set()
    for folder in map(Path, folders):
        for file in sorted([*folder.rglob("*.html"), *folder.rglob("*.html.gz")]):
            if file.is_symlink() or not file.is_file():
                continue
            data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            page = Page(str(file.relative_to(folder)), decode(data)).read(contents)
            key = page.shingles[BODY].tobytes()
            if key not in seen and np.unique(page.shingles[BODY]).size >= 10:
                seen.add(key)
                pages.append(page)
    random.Random(0).shuffle(pages)
    return pages


def curve(name: str, scores: Floats, same: Bools) -> str:
    """A line of the first table: precision/recall/F1 at each cut, the best F1, average precision."""

    def quality(cut: float) -> tuple[float, float, float]:
        found = scores >= cut
        right = (found & same).sum()
        precision, recall = right / max(1, found.sum()), right / same.sum()
        return precision, recall, 2 * right / max(1, found.sum() + same.sum())

    cells = ["{:.3f}/{:.3f}/{:.3f}".format(*quality(cut)) for cut in CUTS]
    best = max((quality(cut)[2], cut) for cut in np.arange(0.3, 1.0, 0.01).tolist())
    by_score = same[np.argsort(-scores, kind="stable")]
    average = (np.cumsum(by_score) / np.arange(1, by_score.size + 1))[by_score].mean()
    return f"| {name} | {' | '.join(cells)} | {best[0]:.3f} at {best[1]:.2f} | {average:.3f} |"


def pair_table(pages: list[Page]) -> None:
    sets = [np.unique(page.shingles[BODY]) for page in pages]
    pairs = join.similar_pairs(sets, LEAST)
    same = np.array([pages[a].path == pages[b].path for a, b in zip(pairs.first, pairs.second, strict=True)])
    print(f"\n{len(pages)} pages, {same.size} pairs with r ≥ {LEAST}, {same.sum()} of them the same page\n")
    if not same.any():
        return
    print(f"| resemblance of | {' | '.join(f'P/R/F1 at {cut}' for cut in CUTS)} | best F1 | AP |")
    print("|---" * (len(CUTS) + 3) + "|")
    print(curve("body, exact", pairs.resemblance, same))
    minwise = [sketch.minwise(one, sketch.SIZE) for one in sets]
    bits = np.array([sketch.compact(values) for values in minwise])
    order = np.argsort(pairs.second, kind="stable")
    plain = np.empty(same.size)
    ends = np.searchsorted(pairs.second[order], np.arange(len(pages) + 1))
    for later, (start, end) in enumerate(pairwise(ends)):
        rows = order[start:end]
        plain[rows] = sketch.compact_estimates(bits[pairs.first[rows]], bits[later])
    print(curve("body, sketches", plain, same))
    by_main = [np.unique(page.shingles[MAIN]) for page in pages]
    main = [
        sketch.resemblance(by_main[a], by_main[b]) for a, b in zip(pairs.first, pairs.second, strict=True)
    ]
    print(curve(f"main (≥ {MIN_WORDS} words), exact", np.array(main), same))


def crawl(pages: list[Page], mode: str) -> list[Page]:
    """The canonical page of each page, compared with all that came before it."""
    canonical: list[Page] = []
    bits = np.empty((len(pages), sketch.SIZE // 64), dtype=np.uint64)
    found = []
    for page in pages:
        drawn = sketch.compact(sketch.minwise(page.shingles[mode], sketch.SIZE))
        scores = sketch.compact_estimates(bits[: len(canonical)], drawn)
        best = int(scores.argmax()) if scores.size else 0
        is_duplicate = bool(scores.size) and scores[best] >= VERIFY
        found.append(canonical[best] if is_duplicate else page)
        if not is_duplicate:
            bits[len(canonical)] = drawn
            canonical.append(page)
    return found


def soft_pages(pages: list[Page], contents: dict[str, Content]) -> list[Page]:
    """Pages of the site with a message in the place of their main part; as many as there are, at most 300."""
    chance = random.Random(1)
    made: list[Page] = []
    find = etree.XPath(
        "//*[self::main or @role='main' or (self::div and (@class='document' or @class='contents'))]"
    )
    for page in chance.sample(pages, min(len(pages), 2 * SOFT_PAGES)):
        root = copy.deepcopy(parse(page.html))
        found: Any = find(root) if root is not None else None
        if not found:
            continue
        asked = chance.choice(pages).path.replace("/", " ").removesuffix(".html")
        message: Any = etree.fromstring(
            NOT_FOUND.format(f"{asked} {chance.randrange(10**6)}"), etree.HTMLParser()
        )
        body = message[0][0]
        body.tail = found[0].tail
        found[0].getparent().replace(found[0], body)
        assert root is not None
        html = etree.tostring(root, encoding="unicode", method="html")
        made.append(Page(f"404 {len(made)}", html).read(contents))
        if len(made) == SOFT_PAGES:
            break
    return made


def trap_pages(pages: list[Page]) -> list[Page]:
    """A page of the middling length 300 times, each time with two other words in its second half."""
    chance = random.Random(2)
    page = sorted(pages, key=lambda one: one.shingles[BODY].size)[len(pages) // 2]
    words = Content().text_of_html(URL, page.html).split()
    made = []
    for number in range(SOFT_PAGES):
        for place in (len(words) * 6 // 10, len(words) * 8 // 10):
            words[place] = f"w{chance.randrange(10**9)}"
        shingles = shingles_of(" ".join(words))
        made.append(Page(f"trap {number}", "", {BODY: shingles, MAIN: shingles}))
    return made


def with_menu(pages: list[Page], contents: dict[str, Content]) -> list[Page]:
    """The pages with the same menu at the beginning of each: the first words of the longest page, as a list
    of links.
    """
    longest = max(pages, key=lambda page: page.shingles[BODY].size)
    words = Content().text_of_html(URL, longest.html).split()[:MENU_WORDS]
    items = "".join(f"<li><a href='/{place}'>{escape(word)}</a></li>" for place, word in enumerate(words))
    menu = f"<nav><ul>{items}</ul></nav>"
    return [
        Page(page.path, re.sub(r"(?i)<body[^>]*>", lambda found: found[0] + menu, page.html, count=1)).read(
            contents
        )
        for page in pages
    ]


def crawl_table(name: str, pages: list[Page], contents: dict[str, Content]) -> None:
    soft, trap = soft_pages(pages, contents), trap_pages(pages)
    print(
        f"\nCrawls of {name}, each page compared with all canonical pages, r ≥ {VERIFY}; {len(soft)}"
        f" soft-404 pages, {len(trap)} of a trap\n"
    )
    print(
        "| content | alone: with a different page | same page missed | real pages with a soft 404 | with a"
        " different page"
        " | soft 404s with a soft 404 | trap pages found |"
    )
    print("|---" * 7 + "|")
    for mode in (BODY, MAIN):
        run = partial(crawl, mode=mode)
        wrong, missed = judged(pages, run(pages))
        mixed = random.Random(3).sample([*pages, *soft], len(pages) + len(soft))
        found = run(mixed)
        is_soft = [
            (page in soft, other in soft, page is other) for page, other in zip(mixed, found, strict=True)
        ]
        swallowed = sum(other and not page for page, other, _ in is_soft)
        together = sum(page and other and not new for page, other, new in is_soft)
        wrong_mixed = judged(mixed, found)[0] - together - swallowed
        trapped = [*pages[: len(pages) // 2], *trap, *pages[len(pages) // 2 :]]  # a crawler stays in it
        caught = sum(
            page in trap and other is not page for page, other in zip(trapped, run(trapped), strict=True)
        )
        print(
            f"| {mode} | {wrong} | {missed} | {swallowed} | {wrong_mixed} | {together} | {caught} |",
            flush=True,
        )


def judged(pages: list[Page], found: list[Page]) -> tuple[int, int]:
    """Pages taken for duplicates of another page, and pages not recognised though a canonical page has their
    path.
    """
    wrong = missed = 0
    canonical: set[str] = set()
    for page, other in zip(pages, found, strict=True):
        wrong += other.path != page.path
        missed += other is page and page.path in canonical
        if other is page:
            canonical.add(page.path)
    return wrong, missed


def cost_table(pages: list[Page], contents: dict[str, Content]) -> None:
    some = pages[:MOST_TIMED]
    roots = [root for page in some if (root := parse(page.html)) is not None]
    rules = {
        "exclude selectors": Content(
            selectors={"*": {"exclude": "nav, header, footer, .sidebar, [role=navigation]"}}
        ),
        "include selectors": Content(selectors={"*": {"include": MAIN_PART}}),
    }
    print(f"\n{len(roots)} pages, fastest of {ROUNDS} runs\n\n| step | mean ms a page |\n|---|---:|")
    for name, content in ({mode: contents[mode] for mode in (BODY, MAIN)} | rules).items():
        print(f"| {name} | {timed([partial(content.text, URL, root) for root in roots]):.3f} |")
    sketches = [partial(sketch.minwise, page.shingles[BODY], sketch.SIZE) for page in some]
    print(f"| (sketch, for comparison) | {timed(sketches):.3f} |")


def timed(calls: Sequence[Callable[[], object]]) -> float:
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for place, call in enumerate(calls):
            start = time.thread_time()
            call()
            best[place] = min(best[place], time.thread_time() - start)
    return float(np.mean(best)) * 1e3


def main(folders: list[str]) -> None:
    contents = {BODY: Content(), MAIN: Content(MAIN)}
    pages = load(folders, contents)
    print(f"sketches of {sketch.SIZE} places, {', '.join(folders)}")
    pair_table(pages)
    crawl_table("the pages", pages, contents)
    crawl_table(f"the pages with a menu of {MENU_WORDS} words", with_menu(pages, contents), contents)
    cost_table(pages, contents)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1:])
