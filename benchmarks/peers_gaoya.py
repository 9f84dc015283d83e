"""gaoya's SimHash index for :mod:`benchmarks.bench_peers`.

gaoya's Python interface takes only text, and hashes words its own way. To give gaoya the same fingerprints,
each is turned into a text of some 60 made-up words that has exactly this SimHash in gaoya. ``gaoya_texts``
makes the texts, and asserts some of each call. The time that gaoya takes to hash the same texts is measured
beside each insertion and taken off.

A query's own share is often too small beside the hashing to be told from noise. So the table shows queries/s
with the hashing. Beside the name stands what queries/s would be without the hashing, if that is at least a
fifth of the time. That figure lacks the call from Python, too.
"""

from __future__ import annotations

import importlib
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.compiled import compiled
from benchmarks.peers import DISTANCE, Peer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from benchmarks.peers import Rows, Values


class Gaoya(Peer):
    family = "gaoya"
    exact = True

    def __init__(self, blocks: int) -> None:
        super().__init__(f"SimHash index, {blocks} blocks")
        self.blocks = blocks
        self.limit = 0

    def _new(self, limit: int) -> Any:
        module: Any = importlib.import_module("gaoya.gaoya")
        return module.simhash.SimHash64StringIntIndex(max(self.blocks, limit + 1), limit, "word", False, None)

    def make(self, sample: Values) -> None:
        self.words = gaoya_words(self._new(DISTANCE))
        if not self.limit:
            pair = gaoya_texts(np.array([sample[0], sample[0] ^ np.uint64(0b1011)]), self.words)
            for limit in (DISTANCE, DISTANCE + 1):
                trial = self._new(limit)
                trial.insert_document(1, pair[0])
                if list(trial.query(pair[1])) == [1]:
                    self.limit = limit
                    break
            assert self.limit, "gaoya finds nothing at distance 3"
            self.setting += f", limit {self.limit}"
        self.index = self._new(self.limit)
        self.size = 0

    def __len__(self) -> int:
        # The index does not tell its size: ask for a few of what was inserted instead.
        for text, row in self.kept:
            assert row in self.index.query(text)
        return self.size

    def _texts(self, values: Values) -> list[str]:
        texts = gaoya_texts(values, self.words)
        for value, text in zip(values[:100].tolist(), texts, strict=False):
            assert self.index.doc2signature(text) == value
        return texts

    def extend(self, values: Values, first_row: int) -> None:
        started = time.process_time()
        texts = self._texts(values)
        self.index.par_bulk_doc2signatures(texts)
        self.overhead = time.process_time() - started
        self.index.par_bulk_insert_docs(list(range(first_row, first_row + len(values))), texts)
        self.kept = [(texts[0], first_row), (texts[-1], first_row + len(values) - 1)]
        self.size += len(values)

    def prepare_values(self, values: Values) -> Sequence[Any]:
        return self._texts(values)

    def add_each(self, prepared: Sequence[Any], first_row: int) -> None:
        self.overhead = self.hashing(prepared)
        for row, text in enumerate(prepared, first_row):
            self.index.insert_document(row, text)
        self.size += len(prepared)

    def prepare(self, values: Values, weights: npt.NDArray[np.float32]) -> Any:
        return self._texts(values)

    def hashing(self, queries: Sequence[Any]) -> float:
        started = time.process_time()
        for text in queries:
            self.index.doc2signature(text)
        return time.process_time() - started

    def online(self, query: Any) -> Any:
        return self.index.query(query)

    def batch(self, queries: Any) -> Any:
        return self.index.par_bulk_query(queries)

    def rows(self, answer: Any) -> Rows:
        return list(answer)

    def batch_rows(self, answer: Any) -> list[Rows]:
        return [list(one) for one in answer]


def gaoya_words(index: Any, count: int = 1 << 16) -> tuple[list[str], Values]:
    """Made-up words and gaoya's hash of each: with one word a SimHash is the hash itself, complemented."""
    words = [f"w{number:x}" for number in range(count)]
    return words, np.array([index.doc2signature(word) for word in words], dtype=np.uint64)


def gaoya_texts(values: Values, words: tuple[list[str], Values]) -> list[str]:
    """Texts whose SimHash in gaoya is exactly each value: the words that agree with it best, and more until
    all bits do.
    """
    names, hashes = words
    chosen = np.empty(512, dtype=np.int64)
    return [" ".join([names[i] for i in chosen[: _agreeing(value, hashes, chosen)]]) for value in values]


@compiled
def _agreeing(value: np.uint64, hashes: npt.NDArray[np.uint64], chosen: npt.NDArray[np.int64]) -> int:
    """Indices into ``hashes`` whose majority is ``value`` in each bit; their number."""
    sums = np.zeros(64, dtype=np.int64)
    count = 0
    rounds = 0
    offset = np.int64(value % np.uint64(hashes.size))
    # First words with all but 19 bits right, then those right also where the sum is wrong or barely right.
    while rounds < 64:
        weakest = 0
        for j in range(64):
            if sums[j] < sums[weakest]:
                weakest = j
        if rounds > 0 and sums[weakest] > 0:
            return count
        for k in range(hashes.size):
            i = (k + offset) % hashes.size
            wrong = hashes[i] ^ value
            if rounds > 0 and (wrong >> np.uint64(weakest)) & np.uint64(1):
                continue
            n = wrong
            n = n - ((n >> np.uint64(1)) & np.uint64(0x5555555555555555))
            n = (n & np.uint64(0x3333333333333333)) + ((n >> np.uint64(2)) & np.uint64(0x3333333333333333))
            n = (n + (n >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            bits = (n * np.uint64(0x0101010101010101)) >> np.uint64(56)
            if bits <= (np.uint64(19) if rounds == 0 else np.uint64(22)) and count < chosen.size:
                chosen[count] = i
                count += 1
                for j in range(64):
                    sums[j] += 1 - 2 * np.int64((wrong >> np.uint64(j)) & np.uint64(1))
                if rounds > 0 or count == 64:
                    offset = i + 1
                    break
        rounds += 1
    raise AssertionError("no text for this fingerprint")
