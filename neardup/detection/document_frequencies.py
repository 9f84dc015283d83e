"""On how many pages of a host a shingle stands, and a word of a headline: what is rare there, what template.

A shingle is rare on a host if it stands on ``RARE_PAGES`` pages of the host at most, or on ``RARE_SHARE`` of
them. What is not rare is taken for template. Every page is counted, duplicates included: what a wrong
duplicate shares with its canonical page would otherwise never be learned. Only copies that are sure are left
out (:class:`neardup.detection.detector.Detector`).

The counts of a host are a count-min sketch of two rows with conservative update (Cormode & Muthukrishnan
2005; Estan & Varghese 2002). A count is too high where other shingles share both of its cells. A count is too
low, by one a page, where two shingles of one page share a cell.

Shingles and headlines have a table each: a menu has so many shingles that a title's word would share its
cells. A table begins with ``_FEWEST_CELLS`` a row. Before a page is counted, the table doubles until there is
room for the page, up to ``_MOST_CELLS``. Room is four cells for each key counted so far, and two for each key
of the page. Both halves of a doubled table begin with the counts of the old one.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from neardup.detection import frequency_kernels
from neardup.detection.frequency_kernels import MOST_COUNT, headline_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from neardup.detection.frequency_kernels import Cells, Keys, Site
    from neardup.text.headline import Headline

RARE_PAGES = 6
"""Pages of a host that a rare shingle may stand on, however few pages there are."""

RARE_SHARE = 0.02
"""Share of the pages of a host that a rare shingle may stand on."""

MOST_COUNTED = 1 << 14
"""Shingles of a page that are counted and looked up, the first of its text. The longest menu met, that of
Erlang's wx, has 8,500.
"""

MOST_BYTES = 64 << 20
"""Memory of all tables. Beyond it, the host not met for longest is forgotten; the store may still have it."""

BYTES_AT_ONCE = 1 << 18
"""Memory of the tables that are stored with each batch of pages, though their hosts have grown little.

So a crawl of one site that is killed early has counted the pages that it has stored: some 100 of 300 distinct
shingles each. Packing the tables takes some milliseconds.
"""

_FEWEST_CELLS = 1 << 10
_MOST_CELLS = 1 << 17
_HEAD = Struct("<IIII")


class Counts:
    """A table of counts that grows; ``distinct`` is how many different keys were counted, about."""

    __slots__ = ("cells", "distinct")

    def __init__(self, cells: Cells | None = None, distinct: int = 0) -> None:
        self.cells = np.zeros((2, _FEWEST_CELLS), dtype=np.uint16) if cells is None else cells
        self.distinct = distinct

    def of(self, keys: Keys) -> npt.NDArray[np.uint16]:
        """The counts of keys, about; shape (n,)."""
        return frequency_kernels.look_up(self.cells, keys)

    def add(self, keys: Keys) -> None:
        """Count keys once each, in any order and repeated at will."""
        while self.cells.shape[1] < min(4 * self.distinct + 2 * keys.size, _MOST_CELLS):
            self.cells = np.tile(self.cells, 2)
        self.distinct += frequency_kernels.count(self.cells, keys)


class HostFrequencies:
    """The counts of one host; ``pages`` is how many pages were counted."""

    __slots__ = ("headlines", "pages", "shingles")

    def __init__(
        self, pages: int = 0, shingles: Counts | None = None, headlines: Counts | None = None
    ) -> None:
        self.pages = pages
        self.shingles = shingles or Counts()
        self.headlines = headlines or Counts()

    @property
    def limit(self) -> int:
        """On how many pages a shingle may stand and be rare."""
        return max(RARE_PAGES, min(int(RARE_SHARE * self.pages), MOST_COUNT - 1))

    @property
    def nbytes(self) -> int:
        return self.shingles.cells.nbytes + self.headlines.cells.nbytes

    def counts(self, shingles: Keys) -> npt.NDArray[np.uint16]:
        """On how many pages shingles stand, about; shape (n,)."""
        return self.shingles.of(shingles)

    def count(self, shingles: Keys) -> None:
        """Count a page with these shingles, in any order and repeated at will."""
        self.shingles.add(shingles)
        self.pages += 1

    def count_headline(self, headline: Headline) -> None:
        """Count the headline of a page that is counted, its words and as a whole."""
        self.headlines.add(headline_keys(headline))

    def to_bytes(self) -> bytes:
        """The counts as they are stored: a head of four numbers, and both tables, all compressed by zlib.

        Most counts are 0 or 1. So a table begins with a bit a cell: whether the count is above 0. A bit for
        each of those follows: whether the count is above 1. The low bytes of these counts, and then the high
        bytes, are the end.
        """
        # Taken once: a crawl may let a table grow meanwhile.
        tables = [(table.cells, table.distinct) for table in (self.shingles, self.headlines)]
        head = _HEAD.pack(*(number for cells, distinct in tables for number in (cells.shape[1], distinct)))
        return zlib.compress(head + b"".join(_packed(cells) for cells, _ in tables), level=1)

    @classmethod
    def from_bytes(cls, pages: int, data: bytes) -> HostFrequencies:
        """What :meth:`to_bytes` gave; ValueError if it is nothing of the kind."""
        try:
            raw = zlib.decompressobj().decompress(data, _HEAD.size + 9 * _MOST_CELLS + 1)
        except zlib.error as exc:
            raise ValueError(f"document frequencies that cannot be unpacked: {exc}") from exc
        if len(raw) < _HEAD.size:
            raise ValueError(f"document frequencies of {len(raw)} bytes")
        width, distinct, headline_width, headline_distinct = _HEAD.unpack_from(raw)
        if not all(
            _FEWEST_CELLS <= size <= _MOST_CELLS and not size & (size - 1) for size in (width, headline_width)
        ):
            raise ValueError(f"document frequencies of {width} and {headline_width} cells")
        rest = np.frombuffer(raw, dtype=np.uint8, offset=_HEAD.size)
        shingles, rest = _unpacked(rest, width)
        headlines, rest = _unpacked(rest, headline_width)
        if rest.size:
            raise ValueError(f"document frequencies: {rest.size} bytes too many")
        return cls(pages, Counts(shingles, distinct), Counts(headlines, headline_distinct))


def _packed(cells: Cells) -> bytes:
    """A table as it is stored, before compression."""
    made = []
    for above in (0, 1):
        are_above = cells.ravel() > above
        made.append(np.packbits(are_above).tobytes())
        cells = cells.ravel()[are_above]
    return b"".join(
        [*made, (cells & 0xFF).astype(np.uint8).tobytes(), (cells >> 8).astype(np.uint8).tobytes()]
    )


def _unpacked(data: npt.NDArray[np.uint8], width: int) -> tuple[Cells, npt.NDArray[np.uint8]]:
    """The table that begins the bytes, and the bytes behind it; ValueError if they are too few."""
    above_0, data = _bits(data, 2 * width)
    above_1, data = _bits(data, int(np.count_nonzero(above_0)))
    number = np.count_nonzero(above_1)
    if data.size < 2 * number:
        raise ValueError(f"document frequencies: {data.size} bytes for {number} counts")
    counts = np.ones(above_1.size, dtype=np.uint16)
    counts[above_1] = data[:number] | data[number : 2 * number].astype(np.uint16) << 8
    cells = np.zeros(2 * width, dtype=np.uint16)
    cells[above_0] = counts
    return cells.reshape(2, width), data[2 * number :]


def _bits(data: npt.NDArray[np.uint8], number: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint8]]:
    size = -(-number // 8)
    if data.size < size:
        raise ValueError(f"document frequencies: {data.size} bytes for {number} bits")
    return np.unpackbits(data[:size], count=number).view(np.bool_), data[size:]


class DocumentFrequencies:
    """The counts of all hosts met, in bounded memory."""

    __slots__ = ("_bytes", "_hosts", "_stored_pages")

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, HostFrequencies] = OrderedDict()
        self._bytes = 0
        self._stored_pages: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._hosts)

    def site(self, host: str) -> Site:
        """The counts of a host's headlines and its limit; None if nothing is known of the host."""
        known = self._hosts.get(host)
        return (None, RARE_PAGES) if known is None else (known.headlines.cells, known.limit)

    def of(self, host: str) -> HostFrequencies | None:
        """What is known of a host; None if nothing is."""
        return self._hosts.get(host)

    def count(self, host: str, shingles: Keys, headline: Headline) -> HostFrequencies:
        """Count a page of a host; returns what is known of the host by now."""
        known = self._hosts.get(host)
        if known is None:
            known = self._hosts[host] = HostFrequencies()
            self._bytes += known.nbytes
        before = known.nbytes
        # The number of pages rises last: a thread that stores the counts meanwhile stores them again then.
        known.count_headline(headline)
        known.count(shingles[:MOST_COUNTED])
        self._bytes += known.nbytes - before
        self._hosts.move_to_end(host)
        while self._bytes > MOST_BYTES and len(self._hosts) > 1:
            name, forgotten = self._hosts.popitem(last=False)
            self._bytes -= forgotten.nbytes
            self._stored_pages.pop(name, None)
        return known

    def put(self, host: str, known: HostFrequencies, *, are_stored: bool = True) -> bool:
        """Take over what is known of a host; False: there is no room for more hosts.

        ``are_stored``: the store has these counts.
        """
        before = self._hosts.get(host)
        more = known.nbytes - (0 if before is None else before.nbytes)
        if self._bytes + more > MOST_BYTES:
            return False
        self._hosts[host] = known
        self._bytes += more
        if are_stored:
            self._stored_pages[host] = known.pages
        return True

    def to_store(self, *, all_changed: bool = False) -> Iterator[tuple[str, int, bytes]]:
        """Host, pages and counts of the hosts that have grown by half since they were stored.

        ``all_changed``: of all that have grown. Else the hosts met last are among them if they have grown at
        all, as long as their tables have ``BYTES_AT_ONCE`` together.
        """
        room = BYTES_AT_ONCE
        for host, known in reversed(list(self._hosts.items())):
            stored = self._stored_pages.get(host, 0)
            if known.pages <= stored:
                continue
            if not all_changed and known.pages < stored + max(RARE_PAGES, stored // 2):
                if known.nbytes > room:
                    continue
                room -= known.nbytes
            self._stored_pages[host] = known.pages
            yield host, known.pages, known.to_bytes()
