"""``neardup check``: how much a page duplicates what is stored (the form of Khan & Ali, section III.H), without storing it."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from neardup import features, hamming, simhash
from neardup.commands import database
from neardup.commands.fetch import fetch
from neardup.commands.output import printable, show_json, show_table
from neardup.errors import NeardupError
from neardup.purify import purify_tree
from neardup.store import pagereport

if TYPE_CHECKING:
    import argparse

    import numpy.typing as npt
    from scrapy.http import HtmlResponse

    from neardup.detector import DetectorOptions
    from neardup.store.store import Store

HELP = "duplication percentage of pages (URLs or files) against the store, without storing them"


@dataclass(frozen=True, slots=True)
class Resemblance:
    """A stored canonical page and how near it is."""

    url: str
    distance: int
    percentage: float


@dataclass(frozen=True, slots=True)
class Checked:
    """``resembles``: the canonical pages within ``max_distance``, nearest first; if there are none, the nearest of all."""

    url: str
    verdict: str
    features: int
    percentage: float | None
    resembles: list[Resemblance]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument(
        "pages", nargs="+", metavar="URL-OR-FILE", help="http(s) URL, file:// URL or path of an HTML file"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    parser.add_argument("--limit", type=int, default=10, help="stored pages shown (default: 10)")


def run(arguments: argparse.Namespace) -> None:
    options = database.read_options(arguments)
    checked: list[Checked] = []
    failed = False
    with database.open_store(options) as store:
        with store.reading() as connection:
            stored = pagereport.canonical_fingerprints(connection, min_features=options.detector.min_features)
        for page in arguments.pages:
            try:
                checked.append(_check(store, stored, fetch(page), options.detector, arguments.limit))
            except NeardupError as exc:
                failed = True
                print(f"neardup: {exc}", file=sys.stderr)
    if arguments.format == "json":
        show_json([asdict(one) for one in checked])
    else:
        for one in checked:
            _show(one)
    if failed:
        raise SystemExit(1)


def _check(
    store: Store,
    stored: tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]],
    response: HtmlResponse,
    options: DetectorOptions,
    limit: int,
) -> Checked:
    """Compare with every canonical page: exact, and fast enough for one page at a time."""
    counts = features.word_counts(purify_tree(response.selector.root))
    fingerprint = simhash.fingerprint(counts)
    if fingerprint is None or len(counts) < options.min_features:
        return Checked(response.url, "too short to be matched", len(counts), None, [])
    with store.reading() as connection:
        itself = pagereport.page_report(connection, response.url, limit=0)
        ids, values = stored
        others = ids != (itself.page_id if itself else -1)
        ids, distances = ids[others], hamming.distances(values[others], fingerprint.value)
        near = int(np.count_nonzero(distances <= options.max_distance))
        nearest = np.argsort(distances, kind="stable")[: min(limit, max(1, near))]
        urls = pagereport.urls_of(connection, [int(page_id) for page_id in ids[nearest]])
    resembles = [
        Resemblance(urls[int(ids[i])], int(distances[i]), hamming.percentage(int(distances[i])))
        for i in nearest
    ]
    verdict = "duplicate" if near else "not a duplicate"
    if itself:
        verdict += f" of another page (stored itself, as {itself.kind})"
    return Checked(
        response.url, verdict, len(counts), resembles[0].percentage if resembles else None, resembles
    )


def _show(one: Checked) -> None:
    percentage = (
        "" if one.percentage is None else f", {one.percentage:.1f} % of the bits of the nearest stored page"
    )
    print(f"{printable(one.url)}: {one.verdict}{percentage}; {one.features} distinct words")
    show_table(
        ("percentage", "distance", "url"),
        [(other.percentage, other.distance, other.url) for other in one.resembles],
    )
