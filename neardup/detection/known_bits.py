"""The sketches of canonical pages, or their headlines, by row number: what a match is verified by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.detection.pool import grown
from neardup.detection.snapshot import SnapshotError
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from neardup.fingerprint.sketch import Compact

_AT_ONCE = 1 << 16
"""Sketches gathered together for a snapshot."""


class KnownBits:
    """Compact sketches of ``size`` places, or other bits, as many of each page.

    The memory is four bytes a page, and ``size`` bits for each page that has a sketch. Nothing is copied to
    make room. The sketches of a snapshot stay where they are mapped.
    """

    def __init__(self, size: int) -> None:
        self._words = sketch.check_size(size) // 64
        self._places = np.zeros(1024, dtype=np.int32)  # place + 1; 0: none
        self._mapped: npt.NDArray[np.uint64] = np.empty((0, self._words), dtype=np.uint64)
        self._rows = np.zeros((1024, self._words), dtype=np.uint64)
        """What is not mapped, by place + 1 beyond what is. The first row stays zeros, for pages without a
        sketch.
        """
        self._used = 0
        self._free: list[int] = []

    def put(self, row: int, compact: Compact) -> None:
        """Keep the sketch of a page; ValueError if it is of another size."""
        if compact.size != self._words:
            raise ValueError(f"a sketch of {64 * compact.size} places among those of {64 * self._words}")
        mapped = len(self._mapped)
        place = int(self._places[row]) - 1 if row < self._places.size else -1
        if 0 <= place < mapped and np.array_equal(self._mapped[place], compact):
            return  # a page that has not changed: a recrawl must not copy all that is mapped
        self.drop(row)
        if row >= self._places.size:
            self._places = grown(self._places, row + 1)
        place = self._free.pop() if self._free else mapped + self._used
        if place == mapped + self._used:
            self._used += 1
            self._make_room()
        self._rows[place - mapped + 1] = compact
        self._places[row] = place + 1

    def put_many(self, of_rows: npt.ArrayLike, compact: npt.NDArray[np.uint64]) -> None:
        """Keep the sketches of n pages, no page twice, as :meth:`put` does one by one; shape (n,) and (n,
        size // 64).

        ValueError, and nothing kept, if they are of another size.
        """
        rows = np.asarray(of_rows, dtype=np.int64)
        if compact.shape != (rows.size, self._words):
            raise ValueError(
                f"{rows.size} sketches of {64 * self._words} places, not an array {compact.shape}"
            )
        if not rows.size:
            return
        if (slots := int(rows.max()) + 1) > self._places.size:
            self._places = grown(self._places, slots)
        new = self._places[rows] == 0
        for row, one in zip(rows[~new].tolist(), compact[~new], strict=True):
            self.put(row, one)
        rows, compact = rows[new], compact[new]
        again = min(len(self._free), rows.size)  # places of dropped sketches come first
        for row, one in zip(rows[:again].tolist(), compact[:again], strict=True):
            self.put(row, one)
        rows, compact = rows[again:], compact[again:]
        before = self._used
        self._used += rows.size
        self._make_room()
        self._rows[before + 1 : self._used + 1] = compact
        first = len(self._mapped) + before + 1
        self._places[rows] = np.arange(first, first + rows.size)

    def _make_room(self) -> None:
        """Have a row for each sketch that is not mapped, and the first one."""
        if self._used + 1 > len(self._rows):
            larger = grown(self._rows.reshape(-1), (self._used + 1) * self._words)
            held = larger.size // self._words
            self._rows = larger[: held * self._words].reshape(held, self._words)

    def drop(self, row: int) -> None:
        """Forget the sketch of a page, if there is one."""
        if row < self._places.size and self._places[row]:
            place = int(self._places[row]) - 1
            self._places[row] = 0
            if place >= len(self._mapped):
                self._free.append(place)

    def of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """The sketches of canonical pages, shape (n, size // 64).

        A forged snapshot may name other pages in its index: they get zeros, which resemble no page.
        """
        try:
            places = self._places[rows]
        except IndexError:
            last = self._places.size - 1
            places = np.where(rows <= last, self._places[np.minimum(rows, last)], 0)
        mapped = len(self._mapped)
        if not mapped:
            return self._rows[places]
        found = np.zeros((rows.size, self._words), dtype=np.uint64)
        old, new = (places > 0) & (places <= mapped), places > mapped
        found[old] = self._mapped[places[old] - 1]
        found[new] = self._rows[places[new] - mapped]
        return found

    def arrays(self, pages: int) -> dict[str, Any]:
        """All of the first ``pages`` pages, for :func:`neardup.detection.snapshot.save`, by their rows; the
        sketches in pieces.
        """
        rows = np.flatnonzero(self._places[:pages])
        parts = [self.of(rows[start : start + _AT_ONCE]) for start in range(0, rows.size, _AT_ONCE)]
        return {"rows": rows, "words": parts or [np.empty((0, self._words), dtype=np.uint64)]}

    @classmethod
    def from_arrays(
        cls, size: int, arrays: Mapping[str, npt.NDArray[Any]], canonical: npt.NDArray[np.int32]
    ) -> KnownBits:
        """Take over what :meth:`arrays` gave, of pages that have these canonical pages, shape (n,);
        SnapshotError if these are not the sketches of the canonical ones.
        """
        known = cls(size)
        try:
            rows, words = arrays["rows"], arrays["words"]
        except KeyError as exc:
            raise SnapshotError(f"sketches without their {exc}") from exc
        if (
            words.dtype != np.uint64
            or words.shape != (rows.size, known._words)
            or rows.dtype != np.int64
            or not np.array_equal(rows, np.flatnonzero(canonical == np.arange(canonical.size)))
        ):
            raise SnapshotError("the sketches of a snapshot are not those of its canonical pages")
        known._mapped = words
        known._places = grown(known._places, canonical.size)
        known._places[rows] = np.arange(1, rows.size + 1)
        return known
