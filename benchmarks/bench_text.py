"""Pages to text to features and sketches: what each step costs, and the walk beside the ways not taken.

Run as ``python -m benchmarks.bench_text FOLDER…``; of the HTML pages below each FOLDER at most 500 are read,
chosen with a fixed seed. Each step runs three times on each page, the fastest counts, so the caches of words
are warm as in a crawl. Times are those of the processor, on one core. The ways to walk, and those to find
words, must all give the same, or the run stops. The time of ``text_of_tree`` has the removal of URLs and
invisible characters in it; those of the other walks have not.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import bs4
import parsel
from lxml import etree
from scrapy.http import HtmlResponse

from neardup.fingerprint import simhash, sketch
from neardup.text import feature_kernels, idf
from neardup.text.features import HASH, Features
from neardup.text.folders import html_files, read_page
from neardup.text.visible_text import (
    _IMAGES,
    _IS_DEEP,
    _STYLESHEETS,
    ALT_TEXTS,
    INLINE,
    SKIPPED,
    _alternative,
    _pieces,
    cleaned,
    is_native,
    text_of_tree,
    tops,
)
from neardup.text.words import parts, words

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

A = TypeVar("A")
B = TypeVar("B")

MAX_PAGES = 500
ROUNDS = 3


@dataclass
class Timings:
    """Processor seconds a page for each step, in the order the steps were first seen."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def run(self, step: str, function: Callable[[A], B], argument: A) -> B:
        best = float("inf")
        for _ in range(ROUNDS):
            start = time.thread_time()
            result = function(argument)
            best = min(best, time.thread_time() - start)
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
            pieces.append(before(element))
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
            pieces.append(before(element))
            if element.tag in SKIPPED:
                walk.skip_subtree()
            else:
                pieces.append(element.text or "")
        elif element is not root:
            pieces.append(separator)
            pieces.append(element.tail or "")
    return "".join(pieces)


def before(element: etree._Element) -> str:
    """What an element puts before its content: its alternative text, a space, or nothing."""
    if ALT_TEXTS and element.tag in _IMAGES:
        return _alternative(element)
    return "" if element.tag in INLINE else " "


def stylesheet(root: etree._Element) -> str:
    return str(_STYLESHEETS[ALT_TEXTS](root))


def soup_text(html: str) -> str:
    return bs4.BeautifulSoup(html, "lxml").get_text(" ")


WALKS: dict[str, Callable[[etree._Element], str]] = {
    "walk: XSLT (without the native core)": stylesheet,
    "walk: loop over children (and in deep trees)": loop,
    "walk: loop over iter()": loop_over_iter,
    "walk: iterwalk": iterwalk,
}


def over_all(walk: Callable[[etree._Element], str]) -> Callable[[etree._Element], str]:
    """The walk over each root of a page's tree."""
    return lambda root: " ".join(map(walk, tops(root)))


CHOICES = (
    "word-tf",
    "word-log-tf",
    "word-tfidf:{table}",
    "shingle-3",
    "word-tf+stop-english",
    "word-tf+stem-english",
    "word-tfidf:{stems}+stop-english+stem-porter",
    "word-tf+icu",
)


def pages(folder: Path) -> list[bytes]:
    files = html_files([folder])
    if not files:
        raise SystemExit(f"no pages below {folder}")
    chosen = files if len(files) <= MAX_PAGES else random.Random(0).sample(files, MAX_PAGES)
    return [read_page(path) for path in chosen]


def purified(bodies: list[bytes], timings: Timings) -> list[str]:
    """The texts of the pages, by all ways to walk."""
    texts: list[str] = []
    for body in bodies:
        html = HtmlResponse("http://a.example/", body=body).text
        root = timings.run("parse (parsel; Scrapy has paid it)", parse, html)
        texts.append(timings.run(f"text_of_tree{', native' * is_native}", text_of_tree, root))
        walked = {cleaned(timings.run(name, over_all(walk), root)) for name, walk in WALKS.items()}
        assert not timings.run("walk: is it too deep for XSLT?", _IS_DEEP, root)
        assert walked == {texts[-1]}, "the ways to walk differ"
        assert timings.run("BeautifulSoup(html, 'lxml').get_text()", soup_text, html) or not texts[-1]
    return texts


def learned(texts: list[str], file: Path, modifiers: str = "") -> Path:
    """A table of these pages: what matters to the time is its size."""
    learner = idf.Learner()
    choice = Features(f"word-tf{modifiers}")
    for text in texts:
        extracted = choice.extract(text)
        learner.add(extracted.words, extracted.hashes)
    learner.frequencies("bench", modifiers=modifiers, hashed_by=HASH, min_pages=1).save(file)
    return file


def read(texts: list[str], timings: Timings) -> int:
    """Time every step from text on; the number of words."""
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        table = learned(texts, Path(folder, "table.npz"))
        stems = learned(texts, Path(folder, "stems.npz"), "+stem-porter")
        choices = {name: Features(name.format(table=table, stems=stems)) for name in CHOICES}
    for text in texts:
        found = timings.run("words", words, text)
        assert timings.run("words, by expressions", parts, text) == found
        for name, choice in choices.items():
            extracted = timings.run(f"features {name.format(table='…', stems='…')}", choice.extract, text)
            if name == "word-tf":
                assert extracted.words.size == len(found)
                timings.run(
                    "simhash of word-tf", lambda e: simhash.fingerprint(e.hashes, e.weights), extracted
                )
                if len(found):
                    timings.run("sketch", drawn, extracted.words)
        count += len(found)
    assert count > 0, "no page has a word"
    return count


def drawn(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The sketch of a page, as a crawl makes it."""
    return sketch.compact(sketch.minwise(feature_kernels.shingles(hashes, sketch.WIDTH)))


def sketch_of_a_thousand_words(texts: list[str]) -> float:
    """Seconds for the sketch of a page of 1,000 words, cut from the pages one after the other; the mean of
    100 runs.
    """
    hashes = Features().extract(" ".join(texts)).words
    cut = [hashes[start : start + 1000] for start in range(0, min(hashes.size - 999, 100_000), 1000)]
    if not cut:
        raise SystemExit("the pages have not 1,000 words together")
    timings = Timings()
    for page in cut:
        timings.run("sketch", drawn, page)
    return statistics.fmean(timings.seconds["sketch"])


def main(folder: str) -> None:
    bodies = pages(Path(folder))
    timings = Timings()
    texts = purified(bodies, timings)
    count = read(texts, timings)
    size, text_bytes = (
        sum(map(len, bodies)),
        sum(len(text.encode("utf-8", "surrogatepass")) for text in texts),
    )
    print(f"{folder}: {len(bodies)} pages, {size:,} bytes, {text_bytes:,} bytes of text, {count:,} words")
    print(f"{'step':50} {'ms/page, median':>16} {'mean':>8} {'MB text/s':>10}")
    for step, seconds in timings.seconds.items():
        median, mean = statistics.median(seconds) * 1e3, statistics.fmean(seconds) * 1e3
        print(f"{step:50} {median:16.3f} {mean:8.3f} {text_bytes / sum(seconds) / 1e6:10.1f}")
    print(f"sketch of 1,000 words, {sketch.SIZE} places: {sketch_of_a_thousand_words(texts) * 1e6:.1f} µs")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    for argument in sys.argv[1:]:
        main(argument)
