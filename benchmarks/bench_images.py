"""Alt texts of images: what they change on real pages, and what becomes of galleries that have nothing else
of their own.

Run as ``python -m benchmarks.bench_images FOLDER…``. Every HTML page below a FOLDER is judged once with alt
texts and once without. The order is random with a fixed seed. The output tells:

- how many pages are new and how many are duplicates;
- how many verdicts differ;
- P and R of the pairs (page, canonical page) against an exact resemblance of 0.8 and more (P). Both are given
  of the texts *without* alt texts, and of those with them.

The galleries are 200 pages of the same words of a real page, with 20 images each. The alt texts of the images
are 2 to 6 words drawn from another page's words. So the galleries are different, none of them a copy of
another. The output tells how many are called duplicates all the same.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from neardup.detection.detector import Detector, DetectorOptions
from neardup.fingerprint import sketch
from neardup.text.content import Content
from neardup.text.features import Features
from neardup.text.folders import html_files, read_page
from neardup.text.visible_text import decode
from neardup.text.words import words
from tests.support.places import PAGES

if TYPE_CHECKING:
    from neardup.detection.verdict import Verdict

GALLERIES = 200
IMAGES = 20
BOILERPLATE = (100, 300, 500, 1000, 2000)
WORDS_OF_ALT = (2, 6)
CORRECT = 0.8

_FEATURES = Features()


def real_pages(folder: str) -> None:
    pages = {path.as_uri(): decode(read_page(path)) for path in html_files([folder])}
    order = sorted(pages)
    random.Random(0).shuffle(order)
    with_images = [
        url for url in order if _text(pages[url], alt_texts=True) != _text(pages[url], alt_texts=False)
    ]
    verdicts = {}
    for alt_texts in (False, True):
        detector = Detector(DetectorOptions(alt_texts=alt_texts))
        verdicts[alt_texts] = [detector.examine_html(url, pages[url]) for url in order]
        kinds = Counter(verdict.kind.value for verdict in verdicts[alt_texts])
        right = [
            _resemblance(pages, verdict, alt_texts=seen)
            for seen in (False, True)
            for verdict in verdicts[alt_texts]
            if verdict.is_duplicate
        ]
        half = len(right) // 2
        precision = [
            sum(one >= CORRECT for one in part) / max(1, half) for part in (right[:half], right[half:])
        ]
        print(
            f"| {folder} | {len(order)} | {len(with_images)} | {'with' if alt_texts else 'without'} |"
            f" {kinds['new']} | {kinds['duplicate']} |"
            f" {precision[0]:.4f} | {precision[1]:.4f} |",
            flush=True,
        )
    both = zip(verdicts[False], verdicts[True], strict=True)
    changed = Counter(
        (without.kind.value, with_.kind.value) for without, with_ in both if without.kind is not with_.kind
    )
    print(f"verdicts that differ in {folder}: {dict(changed)}")


def galleries() -> None:
    boilerplate = words(_text((PAGES / "clang-13" / "FAQ.html").read_text(), alt_texts=False)) + words(
        _text((PAGES / "clang-13" / "LibFormat.html").read_text(), alt_texts=False)
    )
    while len(boilerplate) < max(BOILERPLATE):
        boilerplate += boilerplate
    pool = sorted(set(boilerplate)) + [f"name{number}" for number in range(2000)]
    for size in BOILERPLATE:
        found = {}
        for alt_texts in (False, True):
            draw = random.Random(size)
            detector = Detector(DetectorOptions(alt_texts=alt_texts))
            verdicts = [
                detector.examine_html(f"http://a.example/{number}", _gallery(boilerplate[:size], pool, draw))
                for number in range(GALLERIES)
            ]
            found[alt_texts] = sum(verdict.is_duplicate for verdict in verdicts)
        print(f"| {size} | {found[False]} | {found[True]} |", flush=True)


def _gallery(boilerplate: list[str], pool: list[str], draw: random.Random) -> str:
    images = "".join(
        f'<a href="/{draw.random()}"><img src="{draw.random()}.jpg"'
        f' alt="{escape(" ".join(draw.choices(pool, k=draw.randint(*WORDS_OF_ALT))))}"></a>'
        for _ in range(IMAGES)
    )
    half = len(boilerplate) // 2
    return f"<p>{' '.join(boilerplate[:half])}<div>{images}</div><p>{' '.join(boilerplate[half:])}"


def _text(html: str, *, alt_texts: bool) -> str:
    return Content(alt_texts=alt_texts).text_of_html("", html)


def _resemblance(pages: dict[str, str], verdict: Verdict, *, alt_texts: bool) -> float:
    sets = [
        sketch.shingle_set(_FEATURES.extract(_text(pages[url], alt_texts=alt_texts)).words)
        for url in (verdict.url, verdict.canonical_url or "")
    ]
    return sketch.resemblance(*sets)


def main(folders: list[str]) -> None:
    print(
        "| folder | pages | with alt texts | read | new | duplicates | P by text | P by text and alt texts |"
    )
    print("|---" * 8 + "|")
    for folder in folders:
        real_pages(folder)
    print(f"\n{GALLERIES} different galleries called duplicates\n")
    print("| words of boilerplate | without | with alt texts |")
    print("|---" * 3 + "|")
    galleries()


if __name__ == "__main__":
    main(sys.argv[1:])
