"""What :mod:`benchmarks.bench_peers` compares: one adapter for each index, all with the same few methods.

Every adapter searches at distance ≤ 3. Where a library means something else by its limit, the adapter asks
for what gives ≤ 3. The right value was found out on a pair at distance exactly 3. The radius of faiss is
strict (4 is passed). gaoya's documentation says "less than or equal", but its code says "less than". HNSW
indexes have no search by radius. The ``_NEAREST`` nearest are taken and those farther than 3 dropped, so no
R_A is given for HNSW indexes.

datasketch has MinHash, weighted MinHash and HyperLogLog; none of its indexes searches by Hamming distance, so
it is left out.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from neardup.collection import matching
from neardup.fingerprint.simhash import Fingerprint
from neardup.index.psm.psm_index import PSMIndex

if TYPE_CHECKING:
    import numpy.typing as npt

    Values: TypeAlias = npt.NDArray[np.uint64]

DISTANCE = 3
_NEAREST = 10
Rows: TypeAlias = Sequence[int]


class Peer:
    """One index with one setting. What ``prepare`` makes is what ``online`` and ``batch`` are given, outside
    the time taken.
    """

    family = ""
    returns_all = True
    exact = False
    has_batch = True
    has_one_by_one = True

    def __init__(self, setting: str = "") -> None:
        self.setting = setting
        self.index: Any = None
        self.overhead = 0.0
        """Seconds to take off the insertion timed last, for work that is not the index's."""

    @property
    def name(self) -> str:
        return f"{self.family} {self.setting}".strip()

    def make(self, sample: Values) -> None:
        """An empty index; ``sample`` for those that must be trained."""
        raise NotImplementedError

    @property
    def build(self) -> str:
        """Peers of the same family with the same word here differ only in how they search, and share one
        index.
        """
        return self.name

    def share(self, other: Any) -> None:
        """Search another peer's index, in one's own way; also called with oneself."""
        self.index = other.index

    def extend(self, values: Values, first_row: int) -> None:
        raise NotImplementedError

    def prepare_values(self, values: Values) -> Sequence[Any]:
        return list(values.tolist())

    def add_each(self, prepared: Sequence[Any], first_row: int) -> None:
        raise NotImplementedError

    def prepare(self, values: Values, weights: npt.NDArray[np.float32]) -> Any:
        raise NotImplementedError

    def hashing(self, queries: Sequence[Any]) -> float:
        """Seconds that ``online`` spends on these queries before it searches."""
        return 0.0

    def online(self, query: Any) -> Any:
        raise NotImplementedError

    def prepare_batch(self, queries: Any) -> Any:
        return queries

    def batch(self, queries: Any) -> Any:
        """Answers to what ``prepare_batch`` made of a part of what ``prepare`` made."""
        raise NotImplementedError

    def rows(self, answer: Any) -> Rows:
        """Rows in what ``online`` returned; may hold some too far away, which the caller leaves out."""
        raise NotImplementedError

    def batch_rows(self, answer: Any) -> list[Rows]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.index)


_STORED: WeakKeyDictionary[Any, dict[int, Any]] = WeakKeyDictionary()
"""What each index of this project was given, by first row: the exact batch search takes an array, not an
index.
"""


class Neardup(Peer):
    """An index of this project: PSMIndex, or one of ``neardup.index.tables``."""

    family = "neardup"

    def __init__(self, kind: Any, *, first: bool, **settings: float) -> None:
        shown = " ".join(f"{name} {value}" for name, value in settings.items())
        super().__init__(f"{kind.__name__} {shown} {'first' if first else 'all'}".replace("  ", " "))
        self.kind, self.settings, self.returns_all = kind, settings, not first
        self.exact = kind is not PSMIndex
        self.has_batch = True

    @property
    def build(self) -> str:
        return f"{self.kind.__name__} {self.settings}"

    def make(self, sample: Values) -> None:
        self.index = self.kind(max_distance=DISTANCE, **self.settings)
        _STORED[self.index] = {}

    def extend(self, values: Values, first_row: int) -> None:
        self.index.extend(values, np.arange(first_row, first_row + len(values), dtype=np.int64))
        _STORED[self.index][first_row] = values

    def add_each(self, prepared: Sequence[Any], first_row: int) -> None:
        _STORED[self.index][first_row] = prepared
        add = self.index.add
        for row, value in enumerate(prepared, first_row):
            add(value, row)

    def prepare(self, values: Values, weights: npt.NDArray[np.float32]) -> Any:
        made = zip(values.tolist(), weights.astype(np.float64), strict=True)
        return [Fingerprint(value, weight) for value, weight in made]

    def online(self, query: Any) -> Any:
        return self.index.find_all(query) if self.returns_all else self.index.find_first(query)

    def rows(self, answer: Any) -> Rows:
        if self.returns_all:
            return [match.row for match in answer]
        return [] if answer is None else [answer.row]

    def prepare_batch(self, queries: Any) -> Any:
        values = np.array([query.value for query in queries], dtype=np.uint64)
        if not self.exact:
            return values, np.array([query.weights for query in queries])
        weak_bits = np.frombuffer(b"".join(query.pack_weak_bits() for query in queries), dtype=np.uint8)
        parts = _STORED[self.index]
        stored = np.concatenate([np.asarray(parts[row], dtype=np.uint64) for row in sorted(parts)])
        assert len(stored) == len(self.index)
        return values, weak_bits.reshape(len(values), -1), stored

    def batch(self, queries: Any) -> Any:
        if not self.exact:
            return len(queries[0]), self.index.match_many(*queries, every=self.returns_all)
        values, weak_bits, stored = queries
        options = matching.Options(
            max_distance=DISTANCE,
            exact=True,
            every=self.returns_all,
            threads=1,
            search="blocks",
        )
        return len(values), matching.match(values, stored, weak_bits=weak_bits, options=options)

    def batch_rows(self, answer: Any) -> list[Rows]:
        count, matches = answer
        found: list[Rows] = [[] for _ in range(count)]
        pairs = [matches["query"], matches["row"]] if self.exact else [matches[:, 0], matches[:, 1]]
        for query, row in zip(*(column.tolist() for column in pairs), strict=True):
            found[query].append(row)
        return found


class Faiss(Peer):
    family = "faiss"
    radius = DISTANCE + 1  # strict

    def __init__(
        self, kind: str, *arguments: int, nearest: bool = False, training: bool = False, **settings: int
    ) -> None:
        shown = " ".join(f"{name} {value}" for name, value in settings.items())
        super().__init__(f"{kind} {' '.join(map(str, arguments))} {shown}".replace("  ", " ").strip())
        self.kind, self.arguments, self.settings = kind, arguments, settings
        self.nearest, self.training = nearest, training
        self.returns_all = not nearest
        flips, bits = settings.get("nflip", 0), arguments[-1] if arguments else 0
        tables = arguments[0] if kind == "IndexBinaryMultiHash" else 1
        # Pigeonholes: three flips over so many tables leave one with at most 3 // tables.
        self.exact = kind == "IndexBinaryFlat" or (
            "nflip" in settings and flips >= DISTANCE // tables and bits > 0
        )

    def make(self, sample: Values) -> None:
        faiss: Any = importlib.import_module("faiss")
        if self.training:
            self.quantizer = faiss.IndexBinaryFlat(64)
            self.index = faiss.IndexBinaryIVF(self.quantizer, 64, *self.arguments)
            self.index.train(as_bytes(sample[: 40 * self.arguments[0]]))
        else:
            self.index = getattr(faiss, self.kind)(64, *self.arguments)

    @property
    def build(self) -> str:
        return f"{self.kind} {self.arguments}"

    def share(self, other: Any) -> None:
        self.index = other.index
        for name, value in self.settings.items():
            target = self.index.hnsw if name.startswith("ef") else self.index
            assert hasattr(target, name)
            setattr(target, name, value)

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def extend(self, values: Values, first_row: int) -> None:
        self.index.add(as_bytes(values))

    def prepare_values(self, values: Values) -> Sequence[Any]:
        return np.split(as_bytes(values), len(values))

    def add_each(self, prepared: Sequence[Any], first_row: int) -> None:
        for one in prepared:
            self.index.add(one)

    def prepare(self, values: Values, weights: npt.NDArray[np.float32]) -> Any:
        return np.split(as_bytes(values), len(values))

    def online(self, query: Any) -> Any:
        if self.nearest:
            return self.index.search(query, _NEAREST)
        return self.index.range_search(query, self.radius)

    def prepare_batch(self, queries: Any) -> Any:
        return np.concatenate(queries)

    def batch(self, queries: Any) -> Any:
        return self.online(queries)

    def rows(self, answer: Any) -> Rows:
        return self.batch_rows(answer)[0]

    def batch_rows(self, answer: Any) -> list[Rows]:
        if self.nearest:
            distances, rows = answer
            return [row[distance <= DISTANCE].tolist() for row, distance in zip(rows, distances, strict=True)]
        limits, _, rows = answer
        return [part.tolist() for part in np.split(rows, limits[1:-1].astype(np.int64))]


class Usearch(Peer):
    family = "usearch"
    returns_all = False

    def __init__(self, connectivity: int, expansion: int) -> None:
        super().__init__(f"HNSW Hamming M {connectivity} expansion {expansion}")
        self.connectivity, self.expansion = connectivity, expansion

    def make(self, sample: Values) -> None:
        usearch: Any = importlib.import_module("usearch.index")
        self.index = usearch.Index(ndim=64, metric="hamming", dtype="b1", connectivity=self.connectivity)

    @property
    def build(self) -> str:
        return f"M {self.connectivity}"

    def share(self, other: Any) -> None:
        self.index = other.index
        self.index.expansion_search = self.expansion

    def extend(self, values: Values, first_row: int) -> None:
        self.index.add(np.arange(first_row, first_row + len(values)), as_bytes(values), threads=1)

    def prepare_values(self, values: Values) -> Sequence[Any]:
        return list(as_bytes(values))

    def add_each(self, prepared: Sequence[Any], first_row: int) -> None:
        for row, one in enumerate(prepared, first_row):
            self.index.add(row, one, threads=1)

    def prepare(self, values: Values, weights: npt.NDArray[np.float32]) -> Any:
        return list(as_bytes(values))

    def online(self, query: Any) -> Any:
        return self.index.search(query, _NEAREST, threads=1)

    def prepare_batch(self, queries: Any) -> Any:
        return np.array(queries)

    def batch(self, queries: Any) -> Any:
        return self.index.search(queries, _NEAREST, threads=1)

    def rows(self, answer: Any) -> Rows:
        keys, distances = np.asarray(answer.keys), np.asarray(answer.distances)
        return keys[distances <= DISTANCE].astype(np.int64).tolist()  # type: ignore[no-any-return]

    def batch_rows(self, answer: Any) -> list[Rows]:
        return [self.rows(answer[i]) for i in range(len(answer))]


class Simhash(Peer):
    family = "simhash"
    exact = True
    has_batch = False

    def make(self, sample: Values) -> None:
        simhash: Any = importlib.import_module("simhash")
        quiet = logging.getLogger("benchmarks.peers.simhash")
        quiet.setLevel(logging.CRITICAL)
        self.quiet, self.simhash = quiet, simhash.Simhash
        self.index = simhash.SimhashIndex([], k=DISTANCE, log=quiet)
        self.size = 0

    def __len__(self) -> int:
        stored = sum(len(entries) for entries in self.index.bucket.values())
        assert stored == (DISTANCE + 1) * self.size
        return self.size

    def extend(self, values: Values, first_row: int) -> None:
        self.add_each(self.prepare_values(values), first_row)

    def prepare_values(self, values: Values) -> Sequence[Any]:
        return [self.simhash(value, log=self.quiet) for value in values.tolist()]

    def add_each(self, prepared: Sequence[Any], first_row: int) -> None:
        for row, one in enumerate(prepared, first_row):
            self.index.add(str(row), one)
        self.size += len(prepared)

    def prepare(self, values: Values, weights: npt.NDArray[np.float32]) -> Any:
        return self.prepare_values(values)

    def online(self, query: Any) -> Any:
        return self.index.get_near_dups(query)

    def rows(self, answer: Any) -> Rows:
        return [int(row) for row in answer]


class NumpyScan(Peer):
    family = "NumPy"
    exact = True
    has_batch = False
    has_one_by_one = False

    def make(self, sample: Values) -> None:
        self.index = np.empty(0, dtype=np.uint64)

    def extend(self, values: Values, first_row: int) -> None:
        self.index = np.concatenate([self.index, values])

    def prepare(self, values: Values, weights: npt.NDArray[np.float32]) -> Any:
        return list(values)

    def online(self, query: Any) -> Any:
        return np.flatnonzero(np.bitwise_count(self.index ^ query) <= DISTANCE)

    def rows(self, answer: Any) -> Rows:
        return answer.tolist()  # type: ignore[no-any-return]


def as_bytes(values: Values) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8)


def all_peers(n: int) -> list[Peer]:
    """Every peer with every setting compared at n stored fingerprints, as far as what they need can be
    imported.
    """
    peers: list[Peer] = []
    for recall in (0.50, 0.70, 0.80, 0.85, 0.90, 0.95, 0.99):
        peers += [Neardup(PSMIndex, first=True, recall=recall), Neardup(PSMIndex, first=False, recall=recall)]
    if _there("neardup.index.tables"):
        tables: Any = importlib.import_module("neardup.index.tables")
        for kind in ("MultiIndexHashing", "MankuTables"):
            if hasattr(tables, kind):
                peers += [Neardup(getattr(tables, kind), first=first) for first in (True, False)]
    if _there("faiss"):
        lists = max(16, 1 << round(np.log2(n**0.5)))
        hashing = [(16, 1), (24, 1), (24, 2), (32, 1), (32, 2), (32, 3), (40, 1), (48, 1)]
        multi = [(4, 16, 0), (3, 21, 1), (2, 24, 1), (2, 32, 1), (2, 32, 0)]
        peers.append(Faiss("IndexBinaryFlat"))
        peers += [Faiss("IndexBinaryHash", b, nflip=flips) for b, flips in hashing]
        peers += [Faiss("IndexBinaryMultiHash", tables, b, nflip=flips) for tables, b, flips in multi]
        peers += [Faiss("IndexBinaryIVF", lists, training=True, nprobe=nprobe) for nprobe in (1, 4, 16)]
        peers += [Faiss("IndexBinaryHNSW", 16, nearest=True, efSearch=ef) for ef in (16, 64, 256)]
    if _there("usearch"):
        peers += [Usearch(16, expansion) for expansion in (16, 64, 256)]
    if _there("gaoya"):
        # Here, because that module needs this one.
        gaoya: Any = importlib.import_module("benchmarks.peers_gaoya")
        peers += [gaoya.Gaoya(blocks) for blocks in (5, 6)]
    if _there("simhash"):
        peers.append(Simhash("SimhashIndex"))
    return [*peers, NumpyScan("brute force")]


def _there(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True
