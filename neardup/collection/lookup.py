"""One page against a store: the canonical pages that it is a duplicate of, or the nearest (Khan & Ali,
section III.H). Nothing is stored here; :mod:`neardup.collection.keep` stores the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup.address import Address, host_of
from neardup.detection.detector import MOST_VERIFIED, Detector
from neardup.detection.rule import Evidence
from neardup.detection.scope import ANY, Scope
from neardup.detection.verdict import Found
from neardup.detection.verification import Verifier
from neardup.fingerprint import hamming, sketch
from neardup.store import page_report
from neardup.store.frequencies import frequencies_of
from neardup.store.types import stored_host

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from neardup.detection.decisions import Decisions
    from neardup.detection.detector import DetectorOptions
    from neardup.detection.stored_page import StoredPage
    from neardup.fingerprint.reader import Reader, Reading
    from neardup.store.store import Store

_OTHERS = 500
"""Pages by whose sketches the nearest of those is found that are no duplicates."""


@dataclass(frozen=True, slots=True)
class Resemblance:
    """A stored canonical page and how near it is; ``evidence`` and ``confidence`` are None if the page is no
    duplicate of it.
    """

    url: str
    distance: int
    percentage: float
    resemblance: float
    confidence: float | None
    evidence: str | None


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found about a page that is checked.

    ``resembles`` has the canonical pages that the page is a duplicate of, those that agree most first. If
    there are none, ``resembles`` has the nearest canonical page.
    """

    url: str
    verdict: str
    features: int
    percentage: float | None
    resembles: list[Resemblance]


class Known(NamedTuple):
    """What pages are compared with, and how: ids and fingerprints of all canonical pages, shape (n,)."""

    store: Store
    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.uint64]
    options: DetectorOptions
    reader: Reader


def known_pages(store: Store, options: DetectorOptions, reader: Reader) -> Known:
    """Read the fingerprints of all canonical pages: some seconds for a million."""
    with store.reading() as connection:
        stored = page_report.canonical_fingerprints(connection, min_features=options.min_features)
    return Known(store, *stored, options, reader)


def look_up(known: Known, url: str, reading: Reading, *, limit: int) -> Checked:
    """What a crawl would find about a page that has been read."""
    if not reading.can_be_matched(known.options.min_features):
        return Checked(url, "too short to be matched", reading.distinct_words, None, [])
    assert reading.fingerprint is not None
    with known.store.reading() as connection:
        itself = page_report.id_and_kind(connection, url)
    page = Address.of(url)
    detector = _detector(known, page, reading, reading.fingerprint.value, itself[0] if itself else -1)
    matches = _matches(detector, page, reading, detector.verifier.scope, most=max(1, limit))
    resembles = [_resemblance(detector, found) for found in matches[:limit]] or _nearest(detector, reading)
    verdict = "duplicate" if matches else "not a duplicate"
    if itself:
        verdict += f" of another page (stored itself, as {itself[1]})"
    scope = detector.verifier.scope
    if scope.is_bounded:
        beyond = [
            found
            for found in _matches(detector, page, reading, Scope(ANY), most=len(detector.pages))
            if not scope.takes(page, detector.pages.urls[found.row])
        ]
        if beyond:
            verdict += f"; {len(beyond)} like it on other sites (scope: {scope.name})"
    percentage = resembles[0].percentage if resembles else None
    return Checked(url, verdict, reading.distinct_words, percentage, resembles[:limit])


def detector_near(known: Known, url: str, reading: Reading, *, first_id: int) -> Detector:
    """A detector that judges a page as a crawl would.

    The detector knows the nearest pages, the page as it is stored, its canonical page, and the decisions.

    ``first_id`` is the id that the page gets if it is not known.
    """
    page = Address.of(url)
    decided = known.store.decisions()
    with known.store.reading() as connection:
        named = [page.key] if (other := decided.same_as(page)) is None else [page.key, other]
        ids = page_report.ids_of_keys(connection, named)
    there = known.store.pages_by_id(ids)
    above = known.store.pages_by_id(one.canonical_id for one in there if one.canonical_id is not None)
    value = None if reading.fingerprint is None else reading.fingerprint.value
    return _detector(known, page, reading, value, -1, [*there, *above], first_id=first_id, decided=decided)


def _detector(
    known: Known,
    page: Address,
    reading: Reading,
    value: int | None,
    itself: int,
    also: Sequence[StoredPage] = (),
    *,
    first_id: int = 1,
    decided: Decisions | None = None,
) -> Detector:
    """A detector that knows the canonical pages nearest to a page, as many as a crawl verifies, and ``also``
    some more. The page itself is none of the nearest.

    The detector also knows what has been learned of the hosts of these pages.
    """
    chosen = [] if value is None else _nearest_ids(known, reading, value, itself)
    # Those that have become duplicates meanwhile are left out.
    near = [other for other in known.store.pages_by_id(chosen) if other.canonical_id is None]
    near = [other for other in near if other.can_be_canonical(known.options.min_features)]
    pages = {other.page_id: other for other in (*near, *also)}
    detector = Detector(known.options, reader=known.reader, first_id=first_id)
    detector.restore(pages.values())
    hosts = {stored_host(host) for host in (page.host, *(host_of(other.url) for other in pages.values()))}
    if decided is not None:
        detector.verifier.decisions = decided
    with known.store.reading() as connection:
        detector.verifier.frequencies = frequencies_of(connection, hosts)
        sizes = page_report.cluster_sizes(connection, list(pages), but=itself)
    for row in range(len(detector.pages)):
        detector.sizes.add(row, sizes.get(detector.pages.ids[row], 0))
    return detector


def _nearest_ids(known: Known, reading: Reading, value: int, itself: int) -> list[int]:
    """The ids of the canonical pages nearest to a page, but not that of the page itself.

    Those that the rule may take come first, as many as a crawl verifies; then some others, if there is room.
    """
    others = known.ids != itself
    ids, distances = known.ids[others], hamming.distances(known.values[others], value)
    nearest = np.argsort(distances, kind="stable")
    equal = int(np.count_nonzero(distances == 0))
    if equal > MOST_VERIFIED:  # the same words: those with them in the same order come first
        with known.store.reading() as connection:
            copies = page_report.ids_of_text(connection, ids[nearest[:equal]].tolist(), reading.text_digest)
        nearest = nearest[np.argsort(~np.isin(ids[nearest], copies), kind="stable")]
    rule = known.options.make_rule(known.reader.features)
    within = int(np.count_nonzero(distances <= rule.max_distance))
    chosen: list[int] = ids[nearest[: min(MOST_VERIFIED, max(within, _OTHERS))]].tolist()
    return chosen


def _matches(detector: Detector, page: Address, reading: Reading, scope: Scope, *, most: int) -> list[Found]:
    """The canonical pages that a crawl would take for that of a page: exact copies first, then those that
    agree most; as many as ``most``.
    """
    assert reading.fingerprint is not None
    assert reading.sketch is not None
    value = reading.fingerprint.value
    copies = detector.exact_copies(
        page, value, reading.sketch, detector.verifier.scope.digest(page, reading.text_digest)
    )
    found = [Found(copy, 0, 1.0, Evidence.TEXT) for copy in copies]
    verifier = Verifier(detector.rule, scope, detector, detector.verifier.frequencies)
    comparison = verifier.comparison(page, reading)
    distances = hamming.distances(detector.pages.values.array(), value)
    left = np.column_stack((np.arange(distances.size), distances)).astype(np.int64)
    left = left[~np.isin(left[:, 0], copies)]
    while len(found) < most:
        one = comparison.confirmed(left)
        if one is None:
            break
        found.append(one)
        left = left[left[:, 0] != one.row]
    return found[:most]


def _resemblance(detector: Detector, found: Found) -> Resemblance:
    return Resemblance(
        detector.pages.urls[found.row],
        found.distance,
        hamming.percentage(found.distance),
        found.resemblance,
        found.evidence.confidence,
        found.evidence.value,
    )


def _nearest(detector: Detector, reading: Reading) -> list[Resemblance]:
    """Of the pages that a detector knows the one that resembles a page most, which is no duplicate of it."""
    assert reading.fingerprint is not None
    assert reading.sketch is not None
    if not len(detector.pages):
        return []
    rows = np.arange(len(detector.pages))
    distances = hamming.distances(detector.pages.values.array(), reading.fingerprint.value)
    estimates = sketch.compact_estimates(detector.sketches.of(rows), reading.sketch)
    first = int(np.lexsort((distances, -estimates))[0])
    distance = int(distances[first])
    url, percentage = detector.pages.urls[first], hamming.percentage(distance)
    return [Resemblance(url, distance, percentage, float(estimates[first]), None, None)]
