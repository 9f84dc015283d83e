"""Near-duplicates left out of the results of a query (Henzinger 2006, section 1: the top results are compared
with each other at query time).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from neardup import native
from neardup.detection.detector import DetectorOptions
from neardup.detection.rule import MIN_FEATURES, VERIFY
from neardup.errors import ConfigurationError
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.fingerprint.reader import Reader
    from neardup.fingerprint.sketch import Compact

_Id = TypeVar("_Id")


class Kept(NamedTuple, Generic[_Id]):
    """A result that is shown, and the ids of those it hides, in the order of their ranks."""

    id: _Id
    hides: list[_Id]


def distinct(
    results: Iterable[tuple[_Id, Compact | str | None]], keep: int = 10, *, verify: float = VERIFY
) -> list[Kept[_Id]]:
    """The first ``keep`` results that are no near-duplicates of each other, in the order of their ranks.

    ``results`` are ids, the best first, each with a compact sketch, shape (size // 64,), or a visible text. A
    result with None, or with a text of fewer than 10 distinct words, is a near-duplicate of none.

    Two results are near-duplicates if their estimated resemblance is ``verify`` or more. A result is hidden
    by the first of those kept that it is a near-duplicate of. Results below the last one kept are hidden,
    too, where they are near-duplicates of one kept, and are left out where not.

    Sketches alone are compared: headlines and sites, which a crawl looks at, are not known here.

    Raises ConfigurationError if ``keep`` is below 1, ``verify`` is no resemblance above 0, or sketches have
    different sizes.

    >>> text = "one two three four five six seven eight nine ten eleven"
    >>> distinct([("a", text), ("b", "something else"), ("c", text)])
    [Kept(id='a', hides=['c']), Kept(id='b', hides=[])]
    """
    if keep < 1:
        raise ConfigurationError(f"keep must be 1 or more, not {keep}")
    if not 0.0 < verify <= 1.0:
        raise ConfigurationError(f"verify must be a resemblance above 0, at most 1, not {verify}")
    ids: list[_Id] = []
    known: list[bool] = []
    sketches: list[Compact] = []
    reader: Reader | None = None
    for name, given in results:
        one = given
        if isinstance(one, str):
            reader = reader or DetectorOptions().make_reader()
            one = sketch_of_text(reader, one)
        ids.append(name)
        known.append(one is not None)
        if one is not None:
            sketches.append(one)
    stacked = _stacked(sketches)
    most = sketch.most_differing(64 * stacked.shape[1], verify)
    return list(map(Kept._make, shown(ids, known, stacked, keep, most)))


def sketch_of_text(reader: Reader, text: str) -> Compact | None:
    """What a visible text is compared by; None if the text is too short to be compared."""
    reading = reader.read_text(text)
    return reading.sketch if reading.distinct_words >= MIN_FEATURES else None


@native.twin
def shown(
    ids: list[_Id], known: list[bool], sketches: Compact, keep: int, most: int
) -> list[tuple[_Id, list[_Id]]]:
    """The first ``keep`` results that are no near-duplicates of each other, and what each hides.

    ``known``: whether a result has one of ``sketches``, shape (those known, size // 64), in the same order.
    ``most``: at how many places sketches of near-duplicates may differ. ValueError: the numbers do not fit.
    """
    if len(ids) != len(known) or len(sketches) != known.count(True):
        raise ValueError(f"{len(sketches)} sketches of {known.count(True)} of {len(ids)} results")
    kept: list[tuple[_Id, list[_Id]]] = []
    hidden_by: list[int | None] = [None] * len(sketches)
    row = 0
    for name, is_known in zip(ids, known, strict=True):
        head = hidden_by[row] if is_known else None
        if head is not None:
            kept[head][1].append(name)
        elif len(kept) < keep:
            if is_known:
                # One call for all below: a call for each pair costs ten times as much.
                alike = sketch.differing(sketches[row + 1 :], sketches[row]) <= most
                for below in alike.nonzero()[0].tolist():
                    if hidden_by[row + 1 + below] is None:
                        hidden_by[row + 1 + below] = len(kept)
            kept.append((name, []))
        row += is_known
    return kept


def _stacked(sketches: list[Compact]) -> Compact:
    """Sketches as one array, shape (n, size // 64)."""
    if not sketches:
        return np.empty((0, 1), np.uint64)
    if len(sizes := set(map(len, sketches))) > 1:
        raise ConfigurationError(
            f"sketches of {sorted(64 * size for size in sizes)} places cannot be compared; make all of them"
            " with one sketch_size"
        )
    return np.concatenate(sketches).reshape(len(sketches), -1)
