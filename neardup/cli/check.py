"""``neardup check``: how much a page duplicates what is stored (the form of Khan & Ali, section III.H),
without storing it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup.address import Address
from neardup.cli import database
from neardup.cli.fetch import fetch
from neardup.cli.output import complain, printable, show_json, show_table
from neardup.detection.detector import MOST_VERIFIED
from neardup.detection.scope import Scope
from neardup.errors import NeardupError
from neardup.fingerprint import hamming, sketch
from neardup.store import page_report

if TYPE_CHECKING:
    import argparse

    import numpy.typing as npt

    from neardup.detection.rule import Rule
    from neardup.fingerprint.reader import Reading
    from neardup.store.store import Store

HELP = "duplication percentage of pages (URLs or files) against the store, without storing them"


@dataclass(frozen=True, slots=True)
class Resemblance:
    """A stored canonical page and how near it is."""

    url: str
    distance: int
    percentage: float
    resemblance: float


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found about a page that is checked.

    ``resembles`` has the canonical pages that the page is a duplicate of, most resembling first. If there are
    none, ``resembles`` has the nearest canonical page.
    """

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
    parser.add_argument("--private", action="store_true", help="follow redirects into private networks, too")


def run(arguments: argparse.Namespace) -> None:
    options = database.read_options(arguments)
    reader = options.detector.make_reader()
    rule, scope = options.detector.make_rule(reader.features), Scope(options.detector.scope)
    checked: list[Checked] = []
    failed = False
    with database.open_store(options, scheme=str(reader.scheme)) as store:
        with store.reading() as connection:
            stored = page_report.canonical_fingerprints(
                connection, min_features=options.detector.min_features
            )
        known = _Known(store, *stored, rule, scope, options.detector.sketch_size)
        for page in arguments.pages:
            try:
                response = fetch(page, private=arguments.private)
                reading = reader.read_response(response)
                nearest = None
                if reading.distinct_words >= options.detector.min_features:
                    nearest = _nearest(known, response.url, reading)
                checked.append(_checked(known, response.url, reading, nearest, arguments.limit))
            except NeardupError as exc:
                failed = True
                complain(exc)
    if arguments.format == "json":
        show_json([asdict(one) for one in checked])
    else:
        for one in checked:
            _show(one)
    if failed:
        raise SystemExit(1)


class _Known(NamedTuple):
    """What pages are compared with, and how: ids and fingerprints of all canonical pages, shape (n,)."""

    store: Store
    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.uint64]
    rule: Rule
    scope: Scope
    sketch_size: int


class _Nearest(NamedTuple):
    """Canonical pages by falling resemblance, matches first: ids, distances, estimates, how many are matches.

    ``beyond`` is how many more pages would be matches, were these pages within the scope.
    """

    ids: npt.NDArray[np.int64]
    distances: npt.NDArray[np.uint8]
    estimates: npt.NDArray[np.float64]
    matches: int
    beyond: int


def _nearest(known: _Known, url: str, reading: Reading) -> _Nearest | None:
    """Compare with every canonical page, exact and fast enough for one page at a time; None: there is nothing
    to compare.
    """
    if reading.fingerprint is None or reading.sketch is None:
        return None
    with known.store.reading() as connection:
        itself = page_report.id_and_kind(connection, url)
    others = known.ids != (itself[0] if itself else -1)
    ids, distances = known.ids[others], hamming.distances(known.values[others], reading.fingerprint.value)
    nearest = np.argsort(distances, kind="stable")
    equal = int(np.count_nonzero(distances == 0))
    if equal > MOST_VERIFIED:  # the same words: those with them in the same order come first
        with known.store.reading() as connection:
            copies = page_report.ids_of_text(connection, ids[nearest[:equal]].tolist(), reading.text_digest)
        nearest = nearest[np.argsort(~np.isin(ids[nearest], copies), kind="stable")]
    nearest = nearest[:MOST_VERIFIED]
    with known.store.reading() as connection:
        sketches = page_report.sketches_of(connection, ids[nearest].tolist())
    nearest = nearest[np.isin(ids[nearest], list(sketches))]  # the others have been removed meanwhile
    ids, distances = ids[nearest], distances[nearest]
    data = [sketches[page_id] for page_id in ids.tolist()]
    stored = sketch.many_from_bytes(data, known.sketch_size)
    estimates = sketch.compact_estimates(stored, reading.sketch)
    alike = known.rule.are_matches(distances, estimates)
    matches = _in_scope(known, Address(url), ids, alike)
    order = np.lexsort((distances, -estimates, ~matches))
    found = int(matches.sum())
    return _Nearest(ids[order], distances[order], estimates[order], found, int(alike.sum()) - found)


def _in_scope(
    known: _Known, page: Address, ids: npt.NDArray[np.int64], alike: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Which of the pages may be the canonical page of that at ``page``; of pages that are not
    ``alike`` none is asked.
    """
    within = alike.copy()
    if known.scope.is_bounded:
        with known.store.reading() as connection:
            urls = page_report.urls_of(connection, ids[alike].tolist())
        within[alike] = [known.scope.takes(page, urls[page_id]) for page_id in ids[alike].tolist()]
    return within


def _checked(known: _Known, url: str, reading: Reading, nearest: _Nearest | None, limit: int) -> Checked:
    if nearest is None:
        return Checked(url, "too short to be matched", reading.distinct_words, None, [])
    shown = min(limit, max(1, nearest.matches), nearest.ids.size)
    with known.store.reading() as connection:
        urls = page_report.urls_of(connection, nearest.ids[:shown].tolist())
        itself = page_report.id_and_kind(connection, url)
    resembles = [
        Resemblance(urls[page_id], distance, hamming.percentage(distance), estimate)
        for page_id, distance, estimate in zip(
            nearest.ids[:shown].tolist(),
            nearest.distances[:shown].tolist(),
            nearest.estimates[:shown].tolist(),
            strict=True,
        )
    ]
    verdict = "duplicate" if nearest.matches else "not a duplicate"
    if itself:
        verdict += f" of another page (stored itself, as {itself[1]})"
    if nearest.beyond:
        verdict += f"; {nearest.beyond} like it on other sites (scope: {known.scope.name})"
    percentage = resembles[0].percentage if resembles else None
    return Checked(url, verdict, reading.distinct_words, percentage, resembles)


def _show(one: Checked) -> None:
    percentage = (
        "" if one.percentage is None else f", {one.percentage:.1f} % of the bits of the nearest stored page"
    )
    print(f"{printable(one.url)}: {one.verdict}{percentage}; {one.features} distinct words")
    show_table(
        ("percentage", "distance", "resemblance", "url"),
        [(other.percentage, other.distance, other.resemblance, other.url) for other in one.resembles],
    )
