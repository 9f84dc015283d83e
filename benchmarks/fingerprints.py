"""Large collections of fingerprints like those of real pages, with bit weights for queries.

- ``real(folders)`` reads the HTML pages below folders.
- ``simulated(n, seed, folders)`` makes n fingerprints of documents drawn from the words of those pages.
  Document i depends on (seed, i) alone, so any part can be made again, by any number of threads.
- ``simulated_queries(m, seed, folders, stored_seed=, stored=)`` makes m queries with weights. The first half
  are near-duplicates of stored documents; ``rows[i]`` says of which, -1 for none.
- ``near_duplicates(rows, …)`` makes the near-duplicates alone.
- ``uniform`` and ``uniform_queries`` take the same documents. ``uniform`` XORs each stored value with a
  random mask of its row. ``uniform_queries`` XORs each query with the mask of the row that the query is like,
  and turns the signs of the weights to suit. Values are then uniform, while distances and weak bits stay
  those of text.
- ``load(n, folders)`` gives values and queries of one benchmark and keeps both in the cache folder, as
  ``.npy`` and ``.npz`` files. The cache folder is ``NEARDUP_BENCH_CACHE``, or ``neardup-bench`` below the
  temporary folder.

A simulated document has the length of a random page, at most ``MOST_TOKENS`` words. A word comes from all
pages alike with the chance ``GLOBAL_SHARE``. Such a word is a random word of a random page, so stop words are
as frequent as in text. Any other word comes from the document's own topic, one random page. A near-duplicate
is the same list of words after deleting, replacing or inserting 1 to 5 % of them. Words have the scheme's
hashes, and the SimHash is exactly ``simhash.fingerprint`` of the counted words. A SimHash takes 2.5 µs a
document and core.

``python -m benchmarks.fingerprints FOLDER… [--n N]`` makes such a benchmark, prints its paths and measures
how skewed it is.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from benchmarks import fingerprint_kernels as kernels
from neardup.errors import NeardupError
from neardup.fingerprint import simhash
from neardup.text.features import HASH, Features
from neardup.text.folders import html_files, read_page
from neardup.text.visible_text import text_of_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Values: TypeAlias = npt.NDArray[np.uint64]
    Rows: TypeAlias = npt.NDArray[np.int64]
    Weights: TypeAlias = npt.NDArray[np.float32]

FEWEST_WORDS = 10
FEWEST_TOPIC_WORDS = 50
"""Distinct words of a page that documents are drawn from; fewer would make them all alike."""

MOST_TOKENS = 400
GLOBAL_SHARE = 0.5
EDITS = (0.01, 0.05)
assert MOST_TOKENS + kernels.MOST_EDITS < 1 << kernels.PLANES
_SCHEME = f"{Features().name}/{HASH}"
_PAGE_TOKENS = 4096
_GLOBAL_TOKENS = 1 << 18
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Collection:
    """Fingerprints of pages: ``values`` (n,), ``weights`` (n, 64), most significant bit first, and the pages'
    paths.
    """

    values: Values
    weights: Weights
    urls: list[str]


@dataclass(frozen=True)
class Queries:
    """``rows``: the stored document each query is a near-duplicate of, or -1; others may be as near by
    chance.
    """

    values: Values
    weights: Weights
    rows: Rows


@dataclass(frozen=True)
class Source:
    """Word hashes to draw from: ``everywhere`` of all pages,
    ``tokens[offsets[p]:offsets[p+1]]`` of page p.
    """

    everywhere: Values
    tokens: Values
    offsets: Rows
    lengths: Rows


def cache_folder() -> Path:
    folder = Path(os.environ.get("NEARDUP_BENCH_CACHE") or Path(tempfile.gettempdir(), "neardup-bench"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def real(folders: Sequence[Path]) -> Collection:
    """Fingerprints of all HTML pages below the folders that have at least ``FEWEST_WORDS`` distinct words."""
    data = _pages(_key(folders))
    return Collection(data["values"], data["weights"], data["urls"].tolist())


def simulated(n: int, seed: int, folders: Sequence[Path]) -> Values:
    values, _ = _documents(np.arange(n, dtype=np.int64), seed, None, 0, source(_key(folders)))
    return values


def near_duplicates(
    rows: Rows, stored_seed: int, seed: int, folders: Sequence[Path]
) -> tuple[Values, Weights]:
    """Edited copies of the stored documents ``rows`` of ``simulated(…, stored_seed, …)``."""
    values, weights = _documents(rows, stored_seed, EDITS, seed, source(_key(folders)), weighted=True)
    return values, weights


def simulated_queries(
    m: int, seed: int, folders: Sequence[Path], *, stored_seed: int, stored: int, share: float = 0.5
) -> Queries:
    """Near-duplicates of m × ``share`` random stored documents, then other documents; shuffle if order
    matters.
    """
    near = round(m * share)
    rows = np.random.default_rng(seed).integers(0, stored, size=near, dtype=np.int64)
    values, weights = near_duplicates(rows, stored_seed, seed, folders)
    # Documents of another seed: drawn from the same topics, but none of the stored ones.
    others, other_weights = _documents(
        np.arange(m - near, dtype=np.int64), seed + 1_000_003, None, 0, source(_key(folders)), weighted=True
    )
    return Queries(
        np.concatenate([values, others]),
        np.concatenate([weights, other_weights]),
        np.concatenate([rows, np.full(m - near, -1, dtype=np.int64)]),
    )


def uniform(n: int, seed: int, folders: Sequence[Path]) -> Values:
    return simulated(n, seed, folders) ^ _masks(np.arange(n, dtype=np.int64), seed)


def uniform_queries(
    m: int, seed: int, folders: Sequence[Path], *, stored_seed: int, stored: int, share: float = 0.5
) -> Queries:
    """:func:`simulated_queries` in the uniform collection of ``stored_seed``."""
    queries = simulated_queries(m, seed, folders, stored_seed=stored_seed, stored=stored, share=share)
    # Rows beyond the stored ones have masks of their own.
    rows = np.where(queries.rows >= 0, queries.rows, stored + np.arange(m))
    masks = _masks(rows, stored_seed)
    positions = np.arange(63, -1, -1, dtype=np.uint64)
    turned = ((masks[:, None] >> positions) & np.uint64(1)).astype(bool)
    return Queries(queries.values ^ masks, np.where(turned, -queries.weights, queries.weights), queries.rows)


def load(
    n: int, folders: Sequence[Path], *, queries: int = 100_000, seed: int = 1, even: bool = False
) -> tuple[Values, Queries]:
    """n stored values and queries, shuffled, half near-duplicates; ``even`` for uniform ones. Kept in the
    cache.
    """
    made, asked = paths(n, folders, queries=queries, seed=seed, even=even)
    if not made.exists():
        _save(made, (uniform if even else simulated)(n, seed, folders))
    if not asked.exists():
        make = uniform_queries if even else simulated_queries
        all_ = make(queries, seed + 1, folders, stored_seed=seed, stored=n)
        order = np.random.default_rng(seed).permutation(queries)
        _save(asked, values=all_.values[order], weights=all_.weights[order], rows=all_.rows[order])
    with np.load(asked) as data:
        return np.load(made), Queries(data["values"], data["weights"], data["rows"])


def paths(
    n: int, folders: Sequence[Path], *, queries: int = 100_000, seed: int = 1, even: bool = False
) -> tuple[Path, Path]:
    """Where :func:`load` keeps values and queries."""
    settings = f"{MOST_TOKENS}-{GLOBAL_SHARE}-{EDITS}-{_SCHEME}"
    key = hashlib.sha256(f"{_key(folders)}-{settings}".encode()).hexdigest()[:8]
    name = f"{'uniform' if even else 'simulated'}-{key}-seed{seed}-{n}"
    return cache_folder() / f"{name}.npy", cache_folder() / f"{name}-queries{queries}.npz"


def _save(
    path: Path, array: npt.NDArray[np.generic] | None = None, **arrays: npt.NDArray[np.generic]
) -> None:
    """Save beside the path and rename, so that no other process meets half a file."""
    started = path.with_name(f"{os.getpid()}-{path.name}")
    if array is not None:
        np.save(started, array)
    else:
        np.savez(started, **arrays)  # type: ignore[arg-type]
    started.rename(path)


def _key(folders: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(sorted(folder.resolve() for folder in folders))


@cache
def _features() -> Features:
    return Features()


def _read(path: Path) -> tuple[Values, npt.NDArray[np.float64], int, Weights] | None:
    try:
        extracted = _features().extract(text_of_bytes(read_page(path)))
    except (NeardupError, ValueError):  # lxml's errors are ValueErrors or mean no page
        return None
    made = simhash.fingerprint(extracted.hashes, extracted.weights)
    if made is None or extracted.distinct_words < FEWEST_WORDS:
        return None
    return extracted.hashes, extracted.weights, made.value, made.weights.astype(np.float32)


@cache
def _pages(folders: tuple[Path, ...]) -> dict[str, npt.NDArray[Any]]:
    key = hashlib.sha256(f"{folders}{_SCHEME}".encode()).hexdigest()[:12]
    cached = cache_folder() / f"pages-{key}.npz"
    if not cached.exists():
        found = html_files(folders)
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            read = [(p, r) for p, r in zip(found, pool.map(_read, found, chunksize=64), strict=True) if r]
        assert read, "no pages below the folders"
        _save(
            cached,
            urls=np.array([str(p) for p, _ in read]),
            values=np.array([r[2] for _, r in read], dtype=np.uint64),
            weights=np.array([r[3] for _, r in read]),
            hashes=np.concatenate([r[0] for _, r in read]),
            counts=np.concatenate([r[1] for _, r in read]).astype(np.int64),
            words=np.array([len(r[0]) for _, r in read]),
        )
    with np.load(cached) as data:
        return dict(data)


@cache
def source(folders: tuple[Path, ...]) -> Source:
    data = _pages(folders)
    random = np.random.default_rng(0)
    lists: list[Values] = []
    lengths: list[int] = []
    ends = np.cumsum(data["words"])
    for end, words in zip(ends, data["words"], strict=True):
        if words >= FEWEST_TOPIC_WORDS:
            tokens = np.repeat(data["hashes"][end - words : end], data["counts"][end - words : end])
            lengths.append(min(len(tokens), MOST_TOKENS))
            lists.append(random.choice(tokens, _PAGE_TOKENS) if len(tokens) > _PAGE_TOKENS else tokens)
    offsets = np.concatenate([[0], np.cumsum([len(tokens) for tokens in lists])]).astype(np.int64)
    tokens = np.concatenate(lists)
    page = random.integers(0, len(lists), _GLOBAL_TOKENS)
    within = random.random(_GLOBAL_TOKENS) * (offsets[page + 1] - offsets[page])
    everywhere = tokens[offsets[page] + within.astype(np.int64)]
    return Source(everywhere, tokens, offsets, np.array(lengths, dtype=np.int64))


def _documents(
    rows: Rows,
    seed: int,
    edits: tuple[float, float] | None,
    edit_seed: int,
    made_of: Source,
    *,
    weighted: bool = False,
) -> tuple[Values, Weights]:
    values = np.empty(len(rows), dtype=np.uint64)
    weights = np.empty((len(rows) if weighted else 0, 64), dtype=np.float32)

    def make(start: int) -> None:
        end = min(start + _CHUNK, len(rows))
        kernels.make(
            rows[start:end], start, np.uint64(seed), np.uint64(edit_seed), edits or (0.0, 0.0), GLOBAL_SHARE,
            made_of.everywhere, made_of.tokens, made_of.offsets, made_of.lengths, values, weights,
        )  # fmt: skip

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(make, range(0, len(rows), _CHUNK)))
    return values, weights


def _masks(rows: Rows, seed: int) -> Values:
    masks = np.empty(len(rows), dtype=np.uint64)
    kernels.mix_all(rows, np.uint64(seed) ^ np.uint64(0x5DEECE66D), masks)
    return masks


def distances(values: Values, pairs: int = 200_000) -> npt.NDArray[np.int64]:
    """Histogram (65,) of the distances of random pairs."""
    chosen = np.random.default_rng(0).integers(0, len(values), size=(2, pairs))
    chosen = chosen[:, chosen[0] != chosen[1]]
    return np.bincount(np.bitwise_count(values[chosen[0]] ^ values[chosen[1]]), minlength=65)


def most_loaded(values: Values, bits: int = 20) -> float:
    """Entries under the most loaded prefix, in multiples of an even share."""
    return float(
        np.bincount((values >> np.uint64(64 - bits)).astype(np.int64)).max() * 2.0**bits / len(values)
    )


def describe(name: str, values: Values) -> None:
    counts = distances(values)
    at = np.repeat(np.arange(65), counts)
    quantiles = np.percentile(at, [1, 10, 25, 50, 75, 90])
    print(
        f"{name}: n {len(values)}, distinct {len(np.unique(values))}, random pairs: mean {at.mean():.1f},"
        f" 1/10/25/50/75/90 % at {'/'.join(f'{q:.0f}' for q in quantiles)}, at most 3: {counts[:4].sum()}"
        f" of {counts.sum()},"
        f" most loaded 20-bit prefix {most_loaded(values):.0f} times an even share"
        f" ({len(values) / 2**20:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--n", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--uniform", action="store_true")
    arguments = parser.parse_args()
    describe("real", real(arguments.folders).values)
    for n in arguments.n:
        started = time.perf_counter()
        values, queries = load(n, arguments.folders, queries=arguments.queries, even=arguments.uniform)
        print(f"made or loaded in {time.perf_counter() - started:.1f} s")
        describe("uniform" if arguments.uniform else "simulated", values)
        near = queries.rows >= 0
        distance = np.bitwise_count(queries.values[near] ^ values[queries.rows[near]])
        print("near-duplicates at distance 0, 1, …:", np.bincount(distance).tolist())
        print(
            *map(str, paths(n, arguments.folders, queries=arguments.queries, even=arguments.uniform)),
            sep="\n",
        )


if __name__ == "__main__":
    main()
