"""Khan & Ali's figures 11 to 16: text is removed step by step from one of two equal pages.

``python -m benchmarks.bench_khan_ali FOLDER… [--out FILE]`` takes 300 pages (``*.html``) of 300 to 1,020
words from the folders. From each, words are removed from the end, a twentieth of them a step. At each step
the page is compared with the whole page. An SVG file with the figures is written beside the result file.

The true share is that of the words left. The paper has it from a web service. The percentage is that of equal
bits of the fingerprints. Times are processor time. The page is a file here, so that its download, which
the paper's total has, is missing.
"""

from __future__ import annotations

import argparse
import copy
import io
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lxml import etree

from benchmarks.provenance import give, header
from benchmarks.thesis_plots import shortened
from neardup.detection.detector import DetectorOptions
from neardup.fingerprint import hamming, sketch
from neardup.text.visible_text import decode, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from neardup.fingerprint.reader import Reader

    Floats = npt.NDArray[np.float64]

_PAGES = 300
_WORDS = (300, 1020)
_STEPS = 20
_UNSEEN = {"script", "style", "head"}
_COMPARED = 1_000
"""Times that a comparison is made to be timed: one is shorter than the clock tells."""

_COLUMNS = (
    "removed %", "true share", "percentage", "resemblance", "estimate",
    "purify ms", "fingerprint ms", "compare µs", "total ms",
)  # fmt: skip

MEASURES = ("true share", "percentage", "resemblance", "estimate", "purify", "fingerprint", "compare")


def pages(folders: list[Path], reader: Reader) -> list[etree._Element]:
    """The trees of pages of as many words as the paper's, at random."""
    files = sorted(path for folder in folders for path in folder.rglob("*.html") if path.is_file())
    random.Random(0).shuffle(files)
    found: list[etree._Element] = []
    for path in files:
        root = parse(decode(path.read_bytes()))
        if root is None:
            continue
        etree.strip_tags(root, etree.Comment)  # what follows one is text like any other
        etree.strip_attributes(root, "alt")
        if _WORDS[0] <= _words(root, reader) <= _WORDS[1]:
            found.append(root)
        if len(found) == _PAGES:
            break
    return found


def _words(root: etree._Element, reader: Reader) -> int:
    return len(reader.features.words(reader.content.utf8("", root).decode("utf-8", "replace")))


def cut(root: etree._Element, share: float) -> str:
    """The HTML of a page, with this share of the words of its texts, the first ones."""
    page = copy.deepcopy(root)
    texts = list(_texts(page))
    left = round(share * sum(len((getattr(node, name) or "").split()) for node, name in texts))
    for node, name in texts:
        words = (getattr(node, name) or "").split()
        if len(words) > left:
            setattr(node, name, " ".join(words[:left]))
        left = max(0, left - len(words))
    return etree.tostring(page, encoding="unicode", method="html")


def _texts(node: etree._Element) -> Iterator[tuple[etree._Element, str]]:
    """The texts that a reader sees, in their order."""
    for event, one in etree.iterwalk(node, events=("start", "end")):
        if event == "end":
            yield one, "tail"
        elif isinstance(one.tag, str) and not any(
            above.tag in _UNSEEN for above in (one, *one.iterancestors())
        ):
            yield one, "text"


def measured(roots: list[etree._Element], reader: Reader) -> Floats:
    """Shape (pages, steps + 1, measures), shares of 1 and milliseconds; NaN where nothing is left."""
    found = np.full((len(roots), _STEPS + 1, len(MEASURES)), np.nan)
    for page, root in enumerate(roots):
        whole, words = reader.read_html("", cut(root, 1.0)), _words(root, reader)
        for step in range(_STEPS + 1):
            html = cut(root, 1.0 - step / _STEPS)
            started = time.process_time()
            tree = parse(html)
            text = reader.content.utf8("", tree) if tree is not None else b""
            purified = time.process_time()
            reading = reader.read_text(text.decode("utf-8", "replace"))
            read = time.process_time()
            if whole.fingerprint is None or whole.sketch is None:
                continue
            left = len(reader.features.words(text.decode("utf-8", "replace"))) / words
            found[page, step, 0] = left
            found[page, step, 4:6] = 1000 * (purified - started), 1000 * (read - purified)
            if reading.fingerprint is None or reading.sketch is None:
                continue
            value, other = whole.fingerprint.value, reading.fingerprint.value
            found[page, step, 1] = hamming.percentage(hamming.distance(value, other)) / 100
            found[page, step, 2] = sketch.resemblance(np.unique(whole.shingles), np.unique(reading.shingles))
            found[page, step, 3] = sketch.compact_estimates(reading.sketch[np.newaxis], whole.sketch)[0]
            started = time.process_time()
            for _ in range(_COMPARED):
                hamming.percentage(hamming.distance(value, other))
            found[page, step, 6] = 1000 * (time.process_time() - started) / _COMPARED
    return found


def draw(found: Floats, path: Path) -> None:
    """The six figures of the paper in one picture: means of the pages, and the middle half of them."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7), layout="constrained")
    FigureCanvasSVG(figure)
    at = 100 * np.arange(_STEPS + 1) / _STEPS
    grid = figure.subplots(2, 3)
    total = found[:, :, 4:].sum(axis=2)
    shown: list[tuple[str, str, list[tuple[str, Any]]]] = [
        ("11: all of it", "%", [(name, 100 * found[:, :, MEASURES.index(name)]) for name in MEASURES[:3]]),
        ("12: true share of words", "%", [("true share", 100 * found[:, :, 0])]),
        ("13: percentage of SimHash", "%", [("percentage", 100 * found[:, :, 1])]),
        ("14: purification", "ms", [("purify", found[:, :, 4])]),
        ("15: comparison", "µs", [("compare", 1000 * found[:, :, 6])]),
        ("16: total", "ms", [("total", total), ("fingerprint", found[:, :, 5])]),
    ]
    for axes, (title, unit, lines) in zip(grid.flat, shown, strict=True):
        _panel(axes, at, lines)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("text removed (%)")
        axes.set_ylabel(unit)
        axes.set_ylim(0, 102 if unit == "%" else None)
    text = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "neardup"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    path.write_text(shortened(text.getvalue()), encoding="utf-8")


def _panel(axes: Axes, at: Floats, lines: list[tuple[str, Floats]]) -> None:
    for name, values in lines:
        some = ~np.isnan(values).all(axis=0)
        lower, upper = np.nanpercentile(values[:, some], (25, 75), axis=0)
        (line,) = axes.plot(at[some], np.nanmean(values[:, some], axis=0), "o-", ms=3, label=name)
        axes.fill_between(at[some], lower, upper, alpha=0.2, color=line.get_color(), lw=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def tables(found: Floats, picture: str) -> list[str]:
    mean = np.full(found.shape[1:], np.nan)
    some = ~np.isnan(found).all(axis=0)
    mean[some] = np.nanmean(found.transpose(1, 2, 0)[some], axis=1)
    shares, times = 100 * mean[:, :4], mean[:, 4:]
    away = found[:, :, 1] - found[:, :, 0]
    rows = [
        f"| {100 * step // _STEPS} | {' | '.join(_shown(value, 1) for value in shares[step])}"
        f" | {_shown(times[step, 0], 2)} | {_shown(times[step, 1], 2)} | {_shown(1000 * times[step, 2], 2)}"
        f" | {_shown(times[step].sum(), 2)} |"
        for step in range(_STEPS + 1)
    ]
    spearman = [_rank_correlation(found[:, :, 0], found[:, :, place]) for place in (1, 2, 3)]
    return [
        "The words of a page are removed from its end. Shares are means of all pages, in percent of the",
        "whole page; times are means of processor time. The percentage is that of equal bits.",
        "",
        f"![Figures 11 to 16]({picture})",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        "|---" * len(_COLUMNS) + "|",
        *rows,
        "",
        "| against the true share | percentage | resemblance | estimate |",
        "|---|---|---|---|",
        f"| mean distance, points | {' | '.join(_distance(found, place) for place in (1, 2, 3))} |",
        f"| rank correlation | {' | '.join(f'{value:.3f}' for value in spearman)} |",
        "",
        f"With its sign, the percentage is {100 * np.nanmean(away):+.1f} points away in the mean. Unrelated",
        "pages have about half of their bits in common, so it does not fall to 0. The paper tells of 10 %.",
        "",
    ]


def _shown(value: float, digits: int) -> str:
    return "–" if np.isnan(value) else f"{value:.{digits}f}"


def _distance(found: Floats, place: int) -> str:
    return f"{100 * np.nanmean(np.abs(found[:, :, place] - found[:, :, 0])):.1f}"


def _rank_correlation(a: Floats, b: Floats) -> float:
    """Spearman's, of those that both have."""
    both = ~np.isnan(a) & ~np.isnan(b)
    ranks = [np.unique(one[both], return_inverse=True, return_counts=True) for one in (a, b)]
    middle = [(np.cumsum(counts) - counts / 2)[inverse] for _, inverse, counts in ranks]
    return float(np.corrcoef(middle[0], middle[1])[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("khan-ali.md"))
    arguments = parser.parse_args()
    reader = DetectorOptions().make_reader()
    roots = pages(arguments.folders, reader)
    found = measured(roots, reader)
    picture = arguments.out.with_suffix(".svg")
    draw(found, picture)
    lines = [
        "# Text removed step by step: Khan & Ali's figures 11 to 16",
        "",
        *header(
            "python -m benchmarks.bench_khan_ali FOLDER…",
            n=f"{len(roots)} pages of {_WORDS[0]} to {_WORDS[1]:,} words, {_STEPS} steps;"
            f" {', '.join(folder.name for folder in arguments.folders)}",
            recall="–",
        ),
        "",
        *tables(found, picture.name),
    ]
    give("\n".join(lines), arguments.out)


if __name__ == "__main__":
    main()
