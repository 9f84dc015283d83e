"""Pages to text to features: what each step costs, and the walk beside the ways not taken.

Run as ``python -m tests.benchmarks.bench_text FOLDER``; every ``*.html`` below FOLDER is read, at most 500 of them,
chosen with a fixed seed. Each step runs three times on each page, the fastest counts. The ways to walk must all give
the same text, or the run stops.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import bs4
import parsel
from lxml import etree
from scrapy.http import HtmlResponse

from neardup.features import _count_any, word_counts
from neardup.purify import _IS_DEEP, _STYLESHEET, INLINE, SKIPPED, _pieces, purify_tree

if TYPE_CHECKING:
    from collections.abc import Callable

A = TypeVar("A")
B = TypeVar("B")

MAX_PAGES = 500
ROUNDS = 3


@dataclass
class Timings:
    """Seconds a page for each step, in the order the steps were first seen."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def run(self, step: str, function: Callable[[A], B], argument: A) -> B:
        best = float("inf")
        for _ in range(ROUNDS):
            start = time.perf_counter()
            result = function(argument)
            best = min(best, time.perf_counter() - start)
        self.seconds.setdefault(step, []).append(best)
        return result


def parse(html: str) -> etree._Element:
    root = parsel.Selector(text=html, type="html").root
    assert isinstance(root, etree._Element)
    return root


def loop(root: etree._Element) -> str:
    return "".join(_pieces(root))


def loop_over_iter(root: etree._Element) -> str:
    """``root.iter()``, with the open elements and the number of children each still has to come."""
    pieces: list[str] = []
    opened: list[tuple[etree._Element, int]] = []
    skipped_until = 0
    skipped: etree._Element | None = None
    for current in root.iter():
        element = current
        if skipped is not None:
            skipped_until += len(element) - 1
            if skipped_until:
                continue
            element, skipped = skipped, None
        elif isinstance(element.tag, str):
            pieces.append("" if element.tag in INLINE else " ")
            if element.tag not in SKIPPED:
                pieces.append(element.text or "")
                if len(element):
                    opened.append((element, len(element)))
                    continue
            elif len(element):
                skipped, skipped_until = element, len(element)
                continue
        while element is not root:
            if isinstance(element.tag, str) and element.tag not in INLINE:
                pieces.append(" ")
            pieces.append(element.tail or "")
            parent, left = opened.pop()
            if left > 1:
                opened.append((parent, left - 1))
                break
            element = parent
    return "".join(pieces)


def iterwalk(root: etree._Element) -> str:
    pieces: list[str] = []
    walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, element in walk:
        separator = " " if isinstance(element.tag, str) and element.tag not in INLINE else ""
        if event == "start":
            pieces.append(separator)
            if element.tag in SKIPPED:
                walk.skip_subtree()
            else:
                pieces.append(element.text or "")
        elif element is not root:
            pieces.append(separator)
            pieces.append(element.tail or "")
    return "".join(pieces)


def stylesheet(root: etree._Element) -> str:
    return str(_STYLESHEET(root))


def soup_text(html: str) -> str:
    return bs4.BeautifulSoup(html, "lxml").get_text(" ")


WALKS: dict[str, Callable[[etree._Element], str]] = {
    "walk: XSLT (kept)": stylesheet,
    "walk: loop over children (for deep trees)": loop,
    "walk: loop over iter()": loop_over_iter,
    "walk: iterwalk": iterwalk,
}


def pages(folder: Path) -> list[bytes]:
    files = sorted(path for path in folder.rglob("*.html") if path.is_file())
    if not files:
        raise SystemExit(f"no *.html below {folder}")
    chosen = files if len(files) <= MAX_PAGES else random.Random(0).sample(files, MAX_PAGES)
    return [path.read_bytes() for path in chosen]


def measure(bodies: list[bytes]) -> tuple[Timings, int, int]:
    """Timings, bytes of text, and words found."""
    timings = Timings()
    text_bytes = words = 0
    for body in bodies:
        html = HtmlResponse("http://a.example/", body=body).text
        root = timings.run("parse (parsel; Scrapy has paid it)", parse, html)
        text = timings.run("purify_tree", purify_tree, root)
        counts = timings.run("word_counts", word_counts, text)
        assert timings.run("word_counts, general path", _count_any, text) == counts
        texts = {" ".join(timings.run(name, walk, root).split()) for name, walk in WALKS.items()}
        assert not timings.run("walk: is it too deep for XSLT?", _IS_DEEP, root)
        assert len(texts) == 1, "the ways to walk differ"
        assert timings.run("BeautifulSoup(html, 'lxml').get_text()", soup_text, html) or not text
        text_bytes += len(text.encode())
        words += counts.total()
    assert words > 0, "no page has a word"
    return timings, text_bytes, words


def main(folder: str) -> None:
    bodies = pages(Path(folder))
    timings, text_bytes, words = measure(bodies)
    size = sum(map(len, bodies))
    print(f"{folder}: {len(bodies)} pages, {size:,} bytes, {text_bytes:,} bytes of text, {words:,} words")
    print(f"{'step':40} {'ms/page, median':>16} {'mean':>8} {'MB text/s':>10}")
    for step, seconds in timings.seconds.items():
        assert len(seconds) == len(bodies)
        median, mean = statistics.median(seconds) * 1e3, statistics.fmean(seconds) * 1e3
        print(f"{step:40} {median:16.3f} {mean:8.3f} {text_bytes / sum(seconds) / 1e6:10.1f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
