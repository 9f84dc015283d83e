"""Hostile pages: seconds and memory from response to verdict, at most 1 s and 300 MB.

Run as ``python -m benchmarks.bench_hostile [MODE…]``, modes of ``NEARDUP_CONTENT`` (default: body). Each page
is judged in two sizes:

- ``huge``, as somebody would serve the page to stop a crawl;
- ``fits``, the largest within the limits of bytes and tags (if there is such a one), which costs most.

Each size is judged in a fresh process, forked from one that has read other pages before. The
page is judged as a response of Scrapy that nobody has parsed yet, and as an item's bytes without an encoding.
Memory is the growth of the peak, from ``/proc/self/status``: Linux only.

A line a page: bytes, verdict, seconds of the processor, MB and seconds of the clock by response, the same by
bytes. At the end the limits are asserted, of the processor's time: one thread does it all, and other
processes may be at work.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import random
import re
import string
import sys
import tempfile
from itertools import count, product
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse

from neardup.detection.detector import Detector, DetectorOptions
from neardup.text.content import BODY
from neardup.text.limits import PAGE_BYTES, TAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 1.0
MEGABYTES = 300.0
URL = "http://a.example/"
FITS_OF_LIMIT = 0.995
LARGEST_MADE = 4_000_000
"""Bytes; larger pages are this over and over."""

_RANDOM = random.Random(0)
_NAMES = ["".join(name) for width in (1, 2, 3) for name in product(string.ascii_lowercase, repeat=width)]


def repeated(unit: str) -> Callable[[], Iterator[str]]:
    def pieces() -> Iterator[str]:
        block = unit * 64
        while True:
            yield block

    return pieces


def numbered(form: str) -> Callable[[], Iterator[str]]:
    return lambda: (form.format(number) for number in count())


def drawn(first: int, last: int) -> Callable[[], Iterator[str]]:
    """Random characters of a range."""

    def pieces() -> Iterator[str]:
        while True:
            yield "".join(map(chr, _RANDOM.choices(range(first, last), k=4096)))

    return pieces


def tag(attributes: int, value: str) -> str:
    return "<p " + " ".join(name + value for name in _NAMES[:attributes]) + ">x"


# Name: what begins the page, what is repeated, bytes of the huge one.
PAGES: dict[str, tuple[str, Callable[[], Iterator[str]], int]] = {
    "30,000 attributes in one element": ("<p", numbered(" a{}=1"), 260_000),
    "attributes, each with > in its value": ("<p", numbered(' a{}=">"'), 3_400_000),
    "attributes, no values": ("<p", numbered(" a{}"), 3_400_000),
    "26 attributes, many elements": ("", repeated(tag(26, "=1")), 20_000_000),
    "140 attributes, many elements": ("", repeated(tag(140, "")), 20_000_000),
    "200 attributes, many elements": ("", repeated(tag(200, "")), 20_000_000),
    "200 attributes, one value with >": ('<p x=">">', repeated(tag(200, "")), 20_000_000),
    "CJK": ("<p>", drawn(0x4E00, 0x9FA5), 48_000_000),
    "CJK, one character": ("<p>", repeated("語"), 48_000_000),
    "Thai": ("<p>", drawn(0x0E01, 0x0E2E), 48_000_000),
    "5 million words": ("<p>", repeated("word and then some words "), 25_000_000),
    "distinct words": ("<p>", numbered("w{} "), 50_000_000),
    "distinct words beyond ASCII": ("<p>", numbered("é{} "), 50_000_000),
    "distinct words, no spaces": ("<p>", numbered("é{}\u3001"), 50_000_000),
    "a million links": ("", numbered('<a href="/{}">a</a> '), 25_000_000),
    "links of distinct words": ("", numbered('<a href="/{0}">é{0}</a> '), 25_000_000),
    "<div> in <div>": ("", repeated("<div>"), 5_000_000),
    "<b>x in <b>x": ("", repeated("<b>x"), 5_000_000),
    "1,000 deep, then wide": ("<div>" * 1000, repeated("<b>x</b>"), 5_000_000),
    "100 deep, then wide": ("<div>" * 100, repeated("<b>x</b>"), 5_000_000),
    "<a> never closed": ("", repeated("<a>x"), 4_000_000),
    "<p> never closed": ("", repeated("<p>é "), 4_000_000),
    "<table> in <table>": ("", repeated("<table><tr><td>"), 5_000_000),
    "<b><i> misnested": ("", repeated("<b><i>x</b>y</i>"), 16_000_000),
    "end tags of nothing": ("<b>" * 2000, repeated("</i></div></p>"), 5_000_000),
    "second roots": ("<html></html>", repeated("<p>x</p></html>"), 15_000_000),
    "forms": ("", repeated("<form><select><option>x<option>y</select>"), 10_000_000),
    "options": ("<select>", repeated("<option>x"), 10_000_000),
    "tables and lists": ("<table>", repeated("<tr><td>x<ul><li>y</ul>"), 10_000_000),
    "a huge comment": ("<!--", repeated(" - x < y -"), 50_000_000),
    "comments": ("<p>", repeated("<!----> "), 10_000_000),
    "a million entities": ("<p>", repeated("&amp;&#65;&x;&notit; "), 5_000_000),
    "signs <": ("<p>", repeated("< "), 5_000_000),
    "one word of 50 MB": ("<p>", repeated("x"), 50_000_000),
    "combining marks": ("<p>a", repeated("\u0301\u0323"), 10_000_000),
    "short runs of marks": ("<p>", repeated("a" + "\u0301\u0323" * 30 + " "), 10_000_000),
    "letters that decompose": ("<p>", repeated("\ufdfa \u1e9b\u0323 "), 10_000_000),
    "soft hyphens": ("<p>", repeated("a\u00ad"), 10_000_000),
    "URLs in the text": ("<p>", repeated("a://b "), 10_000_000),
    "www in the text": ("<p>", repeated("www.x "), 10_000_000),
    "a giant script": ("<script>", repeated('if (a<b) { x="<p>"; }\n'), 50_000_000),
    "NUL bytes": ("<p>", repeated("\0a \0"), 50_000_000),
    "white space": ("<p>", repeated(" \n\t"), 50_000_000),
    "the same line (a gzip bomb)": ("", repeated("<p>The same line again and again.</p>\n"), 100_000_000),
}


def page(name: str, *, huge: bool) -> bytes:
    """The page of a name; one that fits is cut at the first limit of bytes or tags."""
    begin, pieces, size = PAGES[name]
    most = min(size, LARGEST_MADE if huge else int(FITS_OF_LIMIT * PAGE_BYTES))
    made, length, tags = [begin], len(begin), begin.count("<")
    for piece in pieces():
        length += len(piece.encode())
        tags += piece.count("<")
        if length > most or (not huge and tags > TAGS):
            break
        made.append(piece)
    data = ("".join(made) + (">x" if begin == "<p" else "")).encode()
    return data * (size // most) if huge else data


def warmed(content: str) -> Detector:
    """A detector that has judged pages, so that nothing is imported later."""
    detector = Detector(DetectorOptions(content=content))
    ordinary = " ".join(f"word{number}" for number in range(100))
    for other in range(3):
        html = f"<p>{other} {ordinary}"
        detector.examine_response(HtmlResponse(f"{URL}{other}", body=html.encode()))
        detector.examine_html(f"{URL}{other}", html.encode())
    return detector


def judged(content: str, file: str, as_bytes: bool) -> str:
    """Verdict, limit, seconds of the processor, MB, seconds of the clock; in a process of its own."""
    detector = warmed(content)
    body = Path(file).read_bytes()
    response = HtmlResponse(f"{URL}hostile", body=body, headers={"Content-Type": "text/html; charset=utf-8"})
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # what was freed before would be taken again, and not be seen
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _peak()
    started, used = perf_counter(), process_time()
    examined = detector.examine_html(response.url, body) if as_bytes else detector.examine_response(response)
    seconds, used = perf_counter() - started, process_time() - used
    return f"{examined.kind.value} {examined.limit or '-'} {used} {_peak() - before} {seconds}"


def _peak() -> float:
    """MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1000


def main(modes: list[str]) -> None:
    over = []
    print(
        "| content | page | size | MB | verdict | over | CPU s | MB more | s | CPU s (bytes) | MB more"
        " (bytes) | s (bytes) |"
    )
    print("|---" * 12 + "|")
    for mode in modes:
        warmed(mode)
        for name in PAGES:
            for huge in (True, False):
                data = page(name, huge=huge)
                with tempfile.NamedTemporaryFile() as file:
                    file.write(data)
                    file.flush()
                    by_response, by_bytes = (
                        _in_process(mode, file.name, way) for way in ("response", "bytes")
                    )
                kind, limit = by_response[:2]
                figures = [f"{float(figure):.2f}" for figure in by_response[2:] + by_bytes[2:]]
                print(
                    f"| {mode} | {name} | {'huge' if huge else 'fits'} | {len(data) / 1e6:.1f} | {kind} |"
                    f" {limit} | {' | '.join(figures)} |",
                    flush=True,
                )
                over += [
                    (mode, name, *one)
                    for one in (by_response, by_bytes)
                    if float(one[2]) > SECONDS or float(one[3]) > MEGABYTES
                ]
    assert not over, over


def _in_process(mode: str, file: str, way: str) -> list[str]:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(judged, (mode, file, way == "bytes")).split()


if __name__ == "__main__":
    main(sys.argv[1:] or [BODY])
