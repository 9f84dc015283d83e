"""Near-duplicates left out of the results of a query (Henzinger 2006, section 1: the top results are compared
with each other at query time).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

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
    ids, sketches = [], []
    reader: Reader | None = None
    for name, given in results:
        if isinstance(given, str):
            reader = reader or DetectorOptions().make_reader()
            sketches.append(sketch_of_text(reader, given))
        else:
            sketches.append(given)
        ids.append(name)
    heads = _heads(sketches, keep, verify)
    kept: dict[int, Kept[_Id]] = {}
    for place, head in enumerate(heads):
        if head == place:
            kept[place] = Kept(ids[place], [])
        elif head >= 0:
            kept[head].hides.append(ids[place])
    return list(kept.values())


def sketch_of_text(reader: Reader, text: str) -> Compact | None:
    """What a visible text is compared by; None if the text is too short to be compared."""
    reading = reader.read_text(text)
    return reading.sketch if reading.distinct_words >= MIN_FEATURES else None


def _heads(sketches: list[Compact | None], keep: int, verify: float) -> list[int]:
    """For each result the place of the one that shows it, itself if it is kept; -1 if none does."""
    heads = [-1] * len(sketches)
    compared = [place for place, one in enumerate(sketches) if one is not None]
    stacked = _stacked([one for one in sketches if one is not None])
    most = sketch.most_differing(64 * stacked.shape[1], verify)
    row = kept = 0
    for place, one in enumerate(sketches):
        row += one is not None
        if heads[place] >= 0:
            continue
        if kept == keep:
            break
        heads[place], kept = place, kept + 1
        if one is None:
            continue
        # One call for all below: a call for each pair costs ten times as much.
        alike = sketch.differing(stacked[row:], one) <= most
        for below in alike.nonzero()[0].tolist():
            if heads[compared[row + below]] < 0:
                heads[compared[row + below]] = place
    return heads


def _stacked(sketches: list[Compact]) -> Compact:
    """Sketches as one array, shape (n, size // 64)."""
    if not sketches:
        return np.empty((0, 1), np.uint64)
    if other := {one.size for one in sketches[1:]} - {one.size for one in sketches[:1]}:
        sizes = sorted(64 * size for size in {sketches[0].size, *other})
        raise ConfigurationError(
            f"sketches of {sizes} places cannot be compared; make all of them with one sketch_size"
        )
    return np.concatenate(sketches).reshape(len(sketches), -1)
