"""What judging a page costs on a site of ten pages, and on one of a million.

Run as ``python -m benchmarks.bench_host FOLDER… [--pages 1000000] [--out FILE]``. The pages of each folder
are read once. They are judged (search, verify, learn) on a host of which ten pages are known, and on a host
of ``--pages``. The known pages are near-copies of the real pages, 3 to 12 bits and a fifth of the sketch
away, so that each search has thousands of candidates. The host's shingles are counted for as many pages. Of
each page, a tenth of a real page's shingles are as they are, the menu, and the rest is changed.

The table says how many candidates the index proposed, and which share of what is rare was taken for template.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.provenance import header
from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.document_frequencies import MOST_COUNTED
from neardup.detection.stored_page import StoredPage
from neardup.errors import NeardupError
from neardup.fingerprint import sketch
from neardup.text import headline as headlines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.fingerprint.reader import Reading

HOST = "http://a.example"
COLUMNS = (
    "pages of", "judged", "known pages", "ms, median", "99 %", "most", "rare taken for template", "candidates"
)  # fmt: skip
TEXT = """\
Search, verify and learn, a page, in ms of processor time. The known pages are made of the real ones, 3 to 12
bits away. Rare shingles that the counts of the host take for template are a share of all of the judged pages.
Candidates are pages within the distance that the index proposed, a page."""

MENU = 0.1
"""Share of a page's shingles that the copies of the page have, too."""


def readings(folder: Path, most: int) -> list[Reading]:
    """The pages of a folder that can be judged."""
    reader = DetectorOptions().make_reader()
    found: list[Reading] = []
    for path in sorted(folder.rglob("*.html")):
        try:
            reading = reader.read_html(HOST, path.read_bytes())
        except NeardupError:
            continue
        if reading.can_be_matched(DetectorOptions().min_features):
            found.append(reading)
        if len(found) == most:
            break
    return found


def neighbours(pages: list[Reading], number: int) -> Iterator[StoredPage]:
    """Pages near the real ones, as a store has them."""
    rng = np.random.default_rng(5)
    for place in range(number):
        reading = pages[place % len(pages)]
        assert reading.fingerprint is not None
        assert reading.sketch is not None
        value = reading.fingerprint.value
        for bit in rng.choice(64, size=rng.integers(3, 13), replace=False).tolist():
            value ^= 1 << bit
        noise = rng.integers(0, 2**64, reading.sketch.size, dtype=np.uint64)
        for _ in range(2):
            noise &= rng.integers(0, 2**64, reading.sketch.size, dtype=np.uint64)
        words = np.where(reading.headline, reading.headline ^ np.uint32(place % 997 << 1), 0)
        yield StoredPage(
            place + 1,
            f"{HOST}/known/{place}",
            value,
            reading.distinct_words,
            None,
            sketch.to_bytes(reading.sketch ^ noise),
            place + 1,
            headlines.to_bytes(words.astype(np.uint32)),
        )


def learn(detector: Detector, pages: list[Reading], number: int) -> None:
    """Count so many pages for the host."""
    for place in range(number):
        reading = pages[place % len(pages)]
        shingles = reading.shingles[:MOST_COUNTED].copy()
        shingles[int(MENU * shingles.size) :] ^= np.uint64(place * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
        detector.verifier.frequencies.count("a.example", shingles, reading.headline)


def measure(pages: list[Reading], known: int) -> tuple[str, ...]:
    """A row of the table."""
    detector = Detector(DetectorOptions(recall_sample=0.0))
    detector.restore(neighbours(pages, known))
    learn(detector, pages, known)
    host = detector.verifier.frequencies.of("a.example")
    assert host is not None
    own = [host.counts(one.shingles[int(MENU * one.shingles.size) : MOST_COUNTED]) for one in pages]
    wrong = sum(int((counts > host.limit).sum()) for counts in own) / sum(counts.size for counts in own)
    seconds, before = [], detector.index.stats.candidates
    for place, reading in enumerate(pages):
        started = thread_time()
        verdict = detector.judge(f"{HOST}/judged/{place}", reading)
        seconds.append(thread_time() - started)
        assert verdict.page_id is not None
    took = np.array(seconds) * 1e3
    return (
        f"{known:,}",
        f"{np.median(took):.3f}",
        f"{np.percentile(took, 99):.3f}",
        f"{took.max():.3f}",
        f"{wrong:.4f}",
        f"{(detector.index.stats.candidates - before) / len(pages):,.0f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--judged", type=int, default=500, help="pages of each folder")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []
    for folder in arguments.folders:
        pages = readings(folder, arguments.judged)
        assert len(pages) > 1, folder
        for known in (10, arguments.pages):
            rows.append((folder.name, f"{len(pages):,}", *measure(pages, known)))
            print(*rows[-1], flush=True)
    if arguments.out is not None:
        command = "python -m benchmarks.bench_host FOLDER…"
        head = header(command, n=f"{arguments.judged} pages a folder", recall="0.98 asked, not measured")
        lines = [f"| {' | '.join(row)} |" for row in (COLUMNS, ["---"] * len(COLUMNS), *rows)]
        arguments.out.write_text("\n".join(["# A page of a huge site", "", *head, "", TEXT, "", *lines, ""]))


if __name__ == "__main__":
    main()
