"""Batch mode against brute force; files, progress and the verbs ``match`` and ``pairs``."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from neardup.cli.main import main
from neardup.collection import flip_plan, matching
from neardup.collection.fingerprint_files import MATCH, ArrayFingerprints, open_fingerprints, read_queries
from neardup.collection.matching import Matcher, Options, match
from neardup.collection.pairs import choose_sets, divide, pairs
from neardup.collection.resume import Progress
from neardup.errors import ConfigurationError
from neardup.fingerprint.simhash import Fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

    Values = npt.NDArray[np.uint64]
    Packed = npt.NDArray[np.uint8]

ONE = np.uint64(1)


def values_of(weights: npt.NDArray[np.float64]) -> Values:
    made: Values = (weights > 0) @ (ONE << np.arange(63, -1, -1, dtype=np.uint64))
    return made


def packed_of(weights: npt.NDArray[np.float64]) -> Packed:
    rows = [Fingerprint(0, one).pack_weak_bits() for one in weights]
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, 48)


def edited(weights: npt.NDArray[np.float64], rng: np.random.Generator, by: float) -> npt.NDArray[np.float64]:
    """Bit weights after an edit: sums of many small changes, so normally distributed (Sood, section IV.A)."""
    return weights + rng.normal(size=weights.shape) * by


def uniform(rng: np.random.Generator, count: int) -> Values:
    return rng.integers(0, 2**64, count, dtype=np.uint64)


def flipped(values: Values, rng: np.random.Generator, most: int) -> Values:
    """Each value with 0 to ``most`` bits flipped."""
    made = values.copy()
    for i in range(len(made)):
        for bit in rng.choice(64, rng.integers(0, most + 1), replace=False):
            made[i] ^= ONE << np.uint64(bit)
    return made


def brute_force(queries: Values, values: Values, max_distance: int) -> list[tuple[int, int, int]]:
    distances = np.bitwise_count(queries[:, None] ^ values[None, :])
    query, row = np.nonzero(distances <= max_distance)
    return list(zip(query.tolist(), row.tolist(), distances[query, row].astype(int).tolist(), strict=True))


def planted(max_distance: int, *, skewed: bool = False, seed: int = 0) -> tuple[Values, Values]:
    """Queries and a file of which some are up to one bit too far apart; ``skewed``: most share 40 bits."""
    rng = np.random.default_rng(seed)
    values = uniform(rng, 4000)
    if skewed:
        values[:3000] = (values[:3000] & np.uint64((1 << 24) - 1)) | np.uint64(0xABCDEF << 40)
    queries = np.concatenate(
        [flipped(values[rng.integers(0, 4000, 300)], rng, max_distance + 1), uniform(rng, 100)]
    )
    return rng.permutation(queries), values


class TestMatch:
    @pytest.mark.parametrize("max_distance", range(7))
    @pytest.mark.parametrize("skewed", [False, True], ids=["uniform", "skewed"])
    def test_exact_equals_brute_force(self, max_distance: int, skewed: bool) -> None:
        queries, values = planted(max_distance, skewed=skewed)
        options = Options(max_distance=max_distance, exact=True, every=True, chunk_rows=1500)

        found = sorted(match(queries, values, options=options).tolist())

        assert found == brute_force(queries, values, max_distance)
        assert len(found) > 100

    @pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5])
    def test_every_number_of_blocks_is_exact_and_finds_each_match_once(
        self, blocks: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queries, values = planted(4, skewed=True)
        plans = {}
        original = flip_plan._block_plans

        def only(*arguments: Any) -> list[flip_plan.Plan]:
            plans.update({plan.name: plan for plan in original(*arguments)})
            return [plan for plan in plans.values() if plan.name.startswith(f"{blocks} block")][:1]

        monkeypatch.setattr(flip_plan, "_block_plans", only)
        found = match(queries, values, options=Options(max_distance=4, exact=True, every=True)).tolist()

        assert len(plans) > 5
        assert found == brute_force(queries, values, 4)

    @pytest.mark.slow
    @pytest.mark.parametrize("exact", [True, False])
    @pytest.mark.parametrize("order", ["as made", "sorted", "falling"])
    def test_order_of_the_file_chunks_and_threads_do_not_matter(self, exact: bool, order: str) -> None:
        rng = np.random.default_rng(1)
        weights = rng.normal(size=(400, 64))
        values = np.concatenate([values_of(edited(weights, rng, 0.05)), uniform(rng, 3000)])
        values = {"as made": values, "sorted": np.sort(values), "falling": np.sort(values)[::-1]}[order]
        queries, packed = values_of(weights), packed_of(weights)
        expected = brute_force(queries, values, 3)
        results = [
            match(
                queries,
                values,
                weak_bits=packed,
                options=Options(
                    exact=exact,
                    every=True,
                    chunk_rows=rows,
                    threads=threads,
                    search="auto" if exact else "psm",
                    recall=0.99,
                ),
            ).tolist()
            for rows in (700, 10_000)
            for threads in (1, 2)
        ]

        assert results[0] == results[1]
        assert results[2] == results[3]
        assert results[2] == sorted(results[2])
        for found in results:
            assert set(found) <= set(expected)
            assert len(found) == len(expected) if exact else len(found) > 0.97 * len(expected)

    @pytest.mark.parametrize("search", ["psm", "blocks"])
    def test_first_match_only_is_one_of_all(self, search: str) -> None:
        rng = np.random.default_rng(2)
        weights = rng.normal(size=(500, 64))
        queries, packed = values_of(weights), packed_of(weights)
        values = np.concatenate(
            [queries[::2], values_of(edited(weights, rng, 0.04)), queries[::3], uniform(rng, 500)]
        )

        def found(every: bool) -> list[tuple[int, int, int]]:
            options = Options(search=search, every=every, chunk_rows=300)
            matches = match(queries, values, weak_bits=packed, options=options)
            return matches.tolist()  # type: ignore[no-any-return]

        every, first = found(True), found(False)
        assert set(first) <= set(every)
        assert len(first) == len({query for query, _, _ in first})
        assert {query for query, _, _ in first} == {query for query, _, _ in every}
        # In the first chunk that has one.
        earliest: dict[int, int] = {}
        for query, row, _ in every:
            earliest[query] = min(earliest.get(query, row), row)
        assert all(row // 300 == earliest[query] // 300 for query, row, _ in first)

    def test_reading_ends_when_no_query_is_open(self) -> None:
        class Counting(ArrayFingerprints):
            read = 0

            def chunks(self, start: int, size: int) -> Any:
                for chunk in super().chunks(start, size):
                    self.read += 1
                    yield chunk

        source = Counting(np.tile(np.arange(10, dtype=np.uint64), 100))
        search = Matcher(np.arange(10, dtype=np.uint64), None, 1000, Options(chunk_rows=10))

        assert [found.rows for found in search.run(source)] == [10]
        assert search.open == 0
        assert source.read == 2  # one is read ahead

    @pytest.mark.parametrize("every", [False, True])
    def test_equal_values(self, every: bool) -> None:
        values, queries = np.full(3000, 7, dtype=np.uint64), np.array([7, 0, 2**63], dtype=np.uint64)

        found = match(queries, values, options=Options(every=every, chunk_rows=1000))

        assert np.bincount(found["query"]).tolist() == ([3000, 3000] if every else [1, 1])
        assert set(found["distance"][found["query"] == 1]) == {3}

    @pytest.mark.parametrize("recall", [0.8, 0.95])
    @pytest.mark.parametrize("max_distance", [1, 3])
    def test_recall_reaches_the_target(self, recall: float, max_distance: int) -> None:
        rng = np.random.default_rng(3)
        weights = rng.normal(size=(6000, 64))
        changed = edited(weights, rng, 0.08)
        queries, values = values_of(weights), values_of(changed)
        near = np.bitwise_count(queries ^ values) == max_distance
        queries, values, packed = queries[near], values[near], packed_of(weights[near])
        options = Options(max_distance=max_distance, recall=recall, search="psm")

        search = Matcher(
            queries, packed, 1 << 22, options
        )  # as in a large file, so that much must be flipped
        found = np.concatenate([part.matches for part in search.run(ArrayFingerprints(values))])

        assert not search.plan.exact
        assert len(queries) > 500
        assert len(found) >= (recall - 0.02) * len(queries)

    def test_queries_beyond_what_is_kept_are_planned_for_each_chunk(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rng = np.random.default_rng(4)
        weights = rng.normal(size=(900, 64))
        queries, packed = values_of(weights), packed_of(weights)
        values = np.concatenate([values_of(edited(weights, rng, 0.05)), uniform(rng, 3000)])
        options = Options(search="psm", chunk_rows=1000, every=True)
        before = match(queries, values, weak_bits=packed, options=options)
        monkeypatch.setattr(matching, "_BLOCK", 100)
        monkeypatch.setattr(matching, "_PLANNED_FLIPS", 5000)

        assert np.array_equal(match(queries, values, weak_bits=packed, options=options), before)

    def test_large_distances_and_nothing_to_search(self) -> None:
        queries, values = planted(12)
        none = np.empty(0, dtype=np.uint64)
        options = Options(max_distance=16, every=True, exact=True)

        assert match(queries[:50], values, options=options).tolist() == brute_force(queries[:50], values, 16)
        for found in (match(none, values), match(queries, none), match(none, none)):
            assert found.dtype == MATCH
            assert not found.size

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"max_distance": 17}, "max_distance must be between 0 and 16 of 64 bits, not 17"),
            ({"recall": 1.0}, "recall must be above 0 and below 1, not 1.0; exact"),
            ({"threads": 0}, "threads must be at least 1, not 0"),
            ({"chunk_rows": 0}, "a chunk must have 1 to"),
            ({"search": "fast"}, "search must be one of auto, psm, blocks, not 'fast'"),
        ],
    )
    def test_wrong_options(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            Options(**arguments)

    def test_wrong_arrays(self) -> None:
        good = np.zeros(3, dtype=np.uint64)
        with pytest.raises(ConfigurationError, match=r"not int64 of shape \(3,\); view signed"):
            match(good.astype(np.int64), good)
        with pytest.raises(ConfigurationError, match=r"shape \(3, 48\).*not uint8 of shape \(3, 47\)"):
            match(good, good, weak_bits=np.zeros((3, 47), dtype=np.uint8))
        bad = np.zeros((3, 48), dtype=np.uint8)
        bad[2, 5] = 64
        with pytest.raises(ConfigurationError, match="query 2 name bit 64"):
            match(good, good, weak_bits=bad)
        with pytest.raises(ConfigurationError, match="needs the queries' weak bits"):
            match(good, good, options=Options(search="psm"))


def all_pairs(values: Values, max_distance: int) -> list[tuple[int, int, int]]:
    """Equal values as a star, the first of each compared with those of the others."""
    _, firsts, members = np.unique(values, return_index=True, return_inverse=True)
    stars = [(int(firsts[m]), i, 0) for i, m in enumerate(members.tolist()) if firsts[m] != i]
    firsts.sort()
    near = brute_force(values[firsts], values[firsts], max_distance)
    return sorted(stars + [(int(firsts[i]), int(firsts[j]), d) for i, j, d in near if i < j])


class TestPairs:
    @pytest.mark.parametrize("max_distance", range(7))
    def test_equals_brute_force(self, max_distance: int) -> None:
        queries, values = planted(max_distance, skewed=True)
        together = np.concatenate([values, queries, values[:50], values[20:40]])

        found = [pairs(together, max_distance=max_distance, threads=threads) for threads in (1, 2)]

        assert found[0].tolist() == all_pairs(together, max_distance)
        assert np.array_equal(found[0], found[1])

    def test_equal_values_are_a_star(self) -> None:
        found = pairs(np.full(200_000, 5, dtype=np.uint64))

        assert len(found) == 199_999
        assert set(found["first"]) == {0}
        assert np.array_equal(found["second"], np.arange(1, 200_000))

    def test_skewed_values_are_not_compared_each_with_each(self) -> None:
        # All in 2^32 of 2^64 values: half of the bits say nothing. Each with each would be 2 × 10^10
        # comparisons.
        rng = np.random.default_rng(5)
        spread = np.uint64(0x00FF00FF00FF00FF)
        values = rng.integers(0, 2**64, 200_000, dtype=np.uint64) & spread
        sets, _ = choose_sets(values, 0, 4)
        compared = 0
        for bits in sets:
            rows = np.arange(len(values), dtype=np.uint32)
            offsets = divide(values.copy(), rows, bits).astype(np.int64)
            groups = offsets[1:] - offsets[:-1]
            compared += int((groups * (groups - 1) // 2).sum())

        found = pairs(values)

        # By bits that say something; by the first ones of each 13 it would be 8 %.
        assert compared < 0.02 * len(values) ** 2 / 2
        assert len(found) == pytest.approx(200_000**2 / 2 * (1 + 32 + 496 + 4960) / 2**32, rel=0.05)

    @pytest.mark.slow
    def test_more_pairs_than_room_at_first(self) -> None:
        near = np.array([ONE << np.uint64(bit) for bit in range(64)], dtype=np.uint64)
        values = np.unique((near[:, None] | near[None, :]).ravel())

        assert pairs(values, max_distance=4).tolist() == all_pairs(values, 4)

    def test_progress_and_nothing(self) -> None:
        told: list[tuple[float, int]] = []
        values = uniform(np.random.default_rng(6), 5000)
        found = pairs(np.concatenate([values, values ^ ONE]), on_progress=lambda *now: told.append(now))

        assert told[-1] == (1.0, len(found))
        assert [done for done, _ in told] == sorted(done for done, _ in told)
        assert len(pairs(values[:0])) == len(pairs(values[:1])) == 0
        assert pairs(values[[0, 0, 1]], threads=2**70).tolist() == [(0, 1, 0)]
        with pytest.raises(ConfigurationError, match="uint64"):
            pairs(np.zeros(3))  # type: ignore[arg-type]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with queries.npy, weak.npy, both.npz and file.npy."""
    rng = np.random.default_rng(7)
    weights = rng.normal(size=(200, 64))
    np.save(tmp_path / "queries.npy", values_of(weights))
    np.save(tmp_path / "weak.npy", packed_of(weights))
    np.savez(tmp_path / "both.npz", values=values_of(weights), weak_bits=packed_of(weights))
    np.save(tmp_path / "file.npy", np.concatenate([uniform(rng, 500), values_of(edited(weights, rng, 0.05))]))
    return tmp_path


def expected(folder: Path, max_distance: int = 3) -> list[tuple[int, int, int]]:
    return brute_force(np.load(folder / "queries.npy"), np.load(folder / "file.npy"), max_distance)


def rows_of(text: str) -> list[tuple[int, ...]]:
    lines = list(csv.reader(io.StringIO(text)))
    return [tuple(map(int, line)) for line in lines[1:]]


def command(folder: Path, *words: str) -> list[str]:
    """Words that name a file of the folder become its path."""
    return [
        str(folder / word) if (folder / word).exists() or word.startswith("out") else word for word in words
    ]


class TestCommands:
    def test_match_to_the_terminal(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(command(files, "match", "queries.npy", "file.npy", "--all", "--chunk", "100")) == 0

        written = capsys.readouterr().out
        assert written.startswith("query,row,distance\n")
        assert sorted(rows_of(written)) == expected(files)

    @pytest.mark.parametrize("queries", [["both.npz"], ["queries.npy", "--weak-bits", "weak.npy"]])
    @pytest.mark.parametrize("out", ["out.npy", "out.csv"])
    def test_match_to_a_file(self, files: Path, queries: list[str], out: str) -> None:
        words = [queries[0], "file.npy", *queries[1:], "--recall", "0.99", "--chunk", "100"]
        assert main(command(files, "match", *words, "--out", out)) == 0

        path = files / out
        found = rows_of(path.read_text()) if out.endswith("csv") else np.load(path).tolist()
        assert set(found) <= set(expected(files))
        assert len(found) > 0.97 * len({query for query, _, _ in expected(files)})
        assert {p.name for p in files.iterdir() if p.name.startswith("out")} == {out}

    def test_pairs(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        both = np.concatenate([np.load(files / "queries.npy"), np.load(files / "file.npy")])
        np.save(files / "file.npy", both)

        assert main(command(files, "pairs", "file.npy", "--max-distance", "4")) == 0
        assert main(command(files, "pairs", "file.npy", "--out", "out.npy", "--threads", "1")) == 0

        written = capsys.readouterr().out
        assert written.startswith("first,second,distance\n")
        assert rows_of(written) == all_pairs(both, 4)
        assert np.load(files / "out.npy").tolist() == all_pairs(both, 3)

    def test_parquet(self, files: Path) -> None:
        arrow = pytest.importorskip("pyarrow", reason="needs the extra neardup[parquet]")
        parquet = pytest.importorskip("pyarrow.parquet")
        queries, weak, values = (np.load(files / f"{name}.npy") for name in ("queries", "weak", "file"))
        table = arrow.table(
            {
                "id": np.arange(len(queries)) + 1000,
                "hash_value": queries.view(np.int64),
                "weak_bits": [one.tobytes() for one in weak],
            }
        )
        parquet.write_table(table, files / "q.parquet")
        stored = arrow.table({"hash_value": values, "id": np.arange(len(values)) * 2})
        parquet.write_table(stored, files / "f.parquet", row_group_size=90)
        source = open_fingerprints(files / "f.parquet")

        for start, size in ((0, 100), (0, 90), (250, 1000), (699, 7)):
            assert np.array_equal(np.concatenate(list(source.chunks(start, size))), values[start:])
            assert {len(chunk) for chunk in list(source.chunks(start, size))[:-1]} <= {size}
        assert np.array_equal(read_queries(files / "q.parquet").weak_bits, weak)  # type: ignore[arg-type]
        words = [
            "match",
            "q.parquet",
            "f.parquet",
            "--exact",
            "--all",
            "--chunk",
            "100",
            "--out",
            "out.parquet",
        ]
        assert main(command(files, *words)) == 0
        found = parquet.read_table(files / "out.parquet").to_pydict()
        assert found["query_id"] == [query + 1000 for query in found["query"]]
        assert found["id"] == [row * 2 for row in found["row"]]
        assert sorted(zip(found["query"], found["row"], found["distance"], strict=True)) == expected(files)
        for bad, message in (
            ({"hash": values}, "has no column hash_value, only hash"),
            ({"hash_value": values.astype(np.int32)}, "must be int64 or uint64"),
            (
                {"hash_value": values[:1], "weak_bits": [b"short"]},
                "weak_bits of row 0 must be 48 bytes, not 5 bytes",
            ),
            ({"hash_value": values[:1], "weak_bits": [1]}, "must be binary, not int64"),
        ):
            parquet.write_table(arrow.table(bad), files / "bad.parquet")
            with pytest.raises(ConfigurationError, match=message):
                read_queries(files / "bad.parquet")

    def test_ids_may_be_read_while_another_thread_reads_chunks(self, tmp_path: Path) -> None:
        """Two threads that share one reader of Arrow crash the process, or wait for ever."""
        arrow = pytest.importorskip("pyarrow", reason="needs the extra neardup[parquet]")
        parquet = pytest.importorskip("pyarrow.parquet")
        rows = np.arange(20_000)
        table = arrow.table({"hash_value": rows.astype(np.uint64), "id": rows + 1000})
        parquet.write_table(table, tmp_path / "f.parquet", row_group_size=90)
        source = open_fingerprints(tmp_path / "f.parquet")
        asked = rows[::50]
        with ThreadPoolExecutor(1) as pool:
            read = pool.submit(lambda: [sum(map(len, source.chunks(0, 100))) for _ in range(10)])
            found = [source.ids(asked) for _ in range(60)]
            chunks = read.result()

        assert chunks == [len(rows)] * 10
        assert all(ids is not None and np.array_equal(ids, asked + 1000) for ids in found)

    def test_rows_without_a_fingerprint_are_left_out(
        self, files: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arrow = pytest.importorskip("pyarrow", reason="needs the extra neardup[parquet]")
        parquet = pytest.importorskip("pyarrow.parquet")
        for name, array, seed in (("q", "queries", 1), ("f", "file", 2)):
            values, weak = np.load(files / f"{array}.npy"), np.load(files / "weak.npy")
            absent = np.random.default_rng(seed).random(len(values)) < 0.3
            absent[[0, 1, 5]] = True
            table = arrow.table(
                {
                    "hash_value": arrow.array(values, mask=absent),
                    "id": np.arange(len(values)) + 1000,
                    "weak_bits": [
                        None if gone else weak[at % len(weak)].tobytes() for at, gone in enumerate(absent)
                    ],
                }
            )
            parquet.write_table(table, files / f"{name}.parquet", row_group_size=90)
            np.save(files / f"{name}_there.npy", np.flatnonzero(~absent))
        queries_there, there = (set(np.load(files / f"{name}_there.npy").tolist()) for name in "qf")
        source = open_fingerprints(files / "f.parquet")
        values = np.load(files / "file.npy")[sorted(there)]
        for start, size in ((0, 100), (0, 7), (250, 90), (len(there), 7)):
            chunks = list(source.chunks(start, size))
            assert np.array_equal(np.concatenate([values[:0], *chunks]), values[start:])
            assert {len(chunk) for chunk in chunks[:-1]} <= {size}
        wanted = [one for one in expected(files) if one[0] in queries_there and one[1] in there]
        assert len(wanted) > 10

        for beside in ([], ["--weak-bits", "weak.npy"]):
            words = ["match", "q.parquet", "f.parquet", "--exact", "--all", "--chunk", "50", *beside]
            capsys.readouterr()
            assert main(command(files, *words, "--out", "out.parquet")) == 0
            told = capsys.readouterr().err
            assert f"f.parquet: {700 - len(there)} rows without a fingerprint left out" in told
            assert "q.parquet: " in told
            found = parquet.read_table(files / "out.parquet").to_pydict()
            columns = (found[name] for name in ("query", "row", "distance"))
            assert sorted(zip(*columns, strict=True)) == wanted
            assert found["query_id"] == [query + 1000 for query in found["query"]]
            assert found["id"] == [row + 1000 for row in found["row"]]
            assert main(command(files, *words)) == 0
            assert sorted(row[:3] for row in rows_of(capsys.readouterr().out)) == wanted
        rows = match(np.load(files / "queries.npy"), files / "f.parquet", options=Options(exact=True))["row"]
        assert set(rows.tolist()) <= there

        assert main(command(files, "pairs", "f.parquet")) == 0
        said = capsys.readouterr()
        assert "rows without a fingerprint left out" in said.err
        pairs = [row[:3] for row in rows_of(said.out)]
        among = [sorted(there)[at] for at in range(len(there))]
        assert pairs == [(among[a], among[b], distance) for a, b, distance in all_pairs(values, 3)]

    def test_parquet_that_is_damaged_behind_its_footer(self, files: Path) -> None:
        arrow = pytest.importorskip("pyarrow", reason="needs the extra neardup[parquet]")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"hash_value": np.load(files / "file.npy")}), files / "f.parquet")
        whole = (files / "f.parquet").read_bytes()
        (files / "f.parquet").write_bytes(whole[:4] + b"\xff" * 64 + whole[68:])

        for read in (read_queries, lambda path: list(open_fingerprints(path).chunks(0, 100))):
            with pytest.raises(
                ConfigurationError, match=r"f\.parquet (cannot be read|is not a Parquet file)"
            ):
                read(files / "f.parquet")

    def test_parquet_without_pyarrow(self, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)

        with pytest.raises(ConfigurationError, match=r"install it with pip install 'neardup\[parquet\]'"):
            open_fingerprints(files / "f.parquet")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["match", "absent.npy", "file.npy"], "absent.npy cannot be read: No such file"),
            (["match", "text.npy", "file.npy"], "text.npy is not a NumPy file, or is damaged"),
            (["match", "text.npz", "file.npy"], "text.npz is not a NumPy file, or is damaged"),
            (["match", "open.npy", "file.npy"], "open.npy is not a NumPy file, or is damaged"),
            (["match", "method.npz", "file.npy"], "method.npz is not a NumPy file, or is damaged"),
            (
                ["match", "bytes.npz", "file.npy"],
                "bytes.npz is not a NumPy file, or is damaged (what it holds",
            ),
            (["match", "packed.npz", "file.npy"], "packed.npz is not a NumPy file, or is damaged"),
            (
                ["match", "floats.npy", "file.npy"],
                "floats.npy: fingerprints are uint64 of shape (n,), not float64",
            ),
            (["match", "queries.npy", "weak.npy"], "weak.npy: fingerprints are uint64"),
            (["match", "queries.npy", "both.npz"], "both.npz holds several arrays"),
            (["match", "other.npz", "file.npy"], "has no array 'values', only a; write it with"),
            (
                ["match", "queries.npy", "file.npy", "--weak-bits", "file.npy"],
                "file.npy: weak bits of 200 queries",
            ),
            (["match", "queries.npy", "file.npy", "--recall", "0.9"], "has no weak bits"),
            (
                ["match", "both.npz", "file.npy", "--recall", "0.9", "--exact"],
                "leave out --exact or --recall",
            ),
            (["match", "both.npz", "file.npy", "--recall", "1.5"], "not 1.5"),
            (
                ["match", "both.npz", "file.npy", "--out", "out.txt"],
                "must be named .npy, .parquet, .csv, not .txt",
            ),
            (["match", "both.npz", "file.npy", "--out", "absent/out.npy"], "there is no folder absent"),
            (
                ["match", "both.npz", "file.npy", "--out", "file.npy"],
                "file.npy is also an input and would be",
            ),
            (
                ["pairs", "file.npy", "--max-distance", "99"],
                "max_distance must be between 0 and 16 of 64 bits, not 99",
            ),
            (["pairs", "empty"], "empty is not a NumPy file"),
        ],
    )
    def test_errors_say_what_is_wrong(
        self, files: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (files / "text.npy").write_text("no array")
        (files / "text.npz").write_text("no arrays")
        (files / "empty").touch()
        np.savez(files / "other.npz", a=np.zeros(3))
        np.save(files / "floats.npy", np.zeros(3))
        np.save(files / "open.npy", np.zeros(3, dtype=np.uint64))
        header = (files / "open.npy").read_bytes()
        (files / "open.npy").write_bytes(header.replace(b"(3,)", b"(3, "))
        np.savez_compressed(files / "packed.npz", values=np.arange(999, dtype=np.uint64))
        whole = (files / "packed.npz").read_bytes()
        (files / "packed.npz").write_bytes(
            whole[:60] + bytes(byte ^ 255 for byte in whole[60:90]) + whole[90:]
        )
        (files / "method.npz").write_bytes(whole.replace(b"\x08\0", b"\x63\0"))
        with zipfile.ZipFile(files / "bytes.npz", "w") as archive:
            archive.writestr("values", b"no array")

        assert main(command(files, *words)) == 1
        error = capsys.readouterr().err
        assert error.startswith("neardup: ")
        assert message in error

    def test_empty_files_have_no_pairs(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        np.save(files / "none.npy", np.empty(0, dtype=np.uint64))

        for words in (
            ["match", "none.npy", "file.npy"],
            ["match", "queries.npy", "none.npy"],
            ["pairs", "none.npy"],
        ):
            assert main(command(files, *words)) == 0
            assert len(capsys.readouterr().out.splitlines()) == 1
            assert main(command(files, *words, "--out", "out.npy")) == 0
            assert np.load(files / "out.npy").shape == (0,)


SLOW = """
import signal, sys, time
# A shell has what it starts in the background ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
from neardup.collection import matching
from neardup.cli.main import main
run = matching.Matcher.run
def slow(self, source, start=0):
    for number, found in enumerate(run(self, source, start), 1):
        yield found
        print("chunk", flush=True)
        time.sleep(0.1 if number < 12 else 20.0)
matching.Matcher.run = slow
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
class TestResume:
    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
    @pytest.mark.parametrize("every", [[], ["--all"]], ids=["first", "all"])
    def test_same_matches_as_without_interruption(
        self, files: Path, how: signal.Signals, every: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = command(files, "match", "both.npz", "file.npy", "--chunk", "50", *every)
        assert main([*words, "--out", str(files / "whole.npy")]) == 0
        out = files / "out.npy"
        script = [sys.executable, "-c", SLOW, *words, "--out", str(out)]
        with subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(12):
                assert process.stdout.readline() == "chunk\n"
            process.send_signal(how)
            _, error = process.communicate(timeout=30)

        assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
        assert how == signal.SIGKILL or "of 700 rows are done; the same command goes on from there" in error
        assert not out.exists()
        saved = json.loads((files / "out.npy.progress").read_text())
        assert 600 <= saved["rows"] < 700
        assert saved["records"] > 0
        with (files / "out.npy.partial").open("ab") as partial:
            partial.write(b"half a rec")
        capsys.readouterr()
        assert main([*words, "--out", str(out), "--threads", "1"]) == 0
        assert (
            f"goes on from row {saved['rows']:,} with {saved['records']:,} matches" in capsys.readouterr().err
        )
        assert np.array_equal(np.load(out), np.load(files / "whole.npy"))
        assert not list(files.glob("out.npy.*"))

    def test_other_inputs_or_options_are_refused(
        self, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = command(files, "match", "both.npz", "file.npy", "--chunk", "100", "--out", "out.npy")

        def interrupted(
            self: Progress, matches: Any, rows: int, add: Callable[..., None] = Progress.add
        ) -> None:
            add(self, matches, rows)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Progress, "add", interrupted)
            with pytest.raises(SystemExit) as exit_:
                main(words)
        assert exit_.value.code == 130
        assert "100 of 700 rows are done" in capsys.readouterr().err

        assert main([*words, "--max-distance", "2"]) == 1
        assert (
            "another search: max_distance was 3, is 2. Give the same files and options"
            in capsys.readouterr().err
        )
        os.utime(files / "file.npy", ns=(1, 1))
        assert main(words) == 1
        assert "is the progress of another search: file was" in capsys.readouterr().err
        (files / "out.npy.progress").write_text("{")
        assert main(words) == 1
        assert "out.npy.progress is damaged or incomplete" in capsys.readouterr().err
        assert not (files / "out.npy").exists()
        for left in files.glob("out.npy.*"):
            left.unlink()
        assert main(words) == 0

    def test_ctrl_c_without_out(
        self, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Matcher, "run", interrupted)
        monkeypatch.setattr("neardup.cli.pairs.pairs", interrupted)
        for words in (["match", "queries.npy", "file.npy"], ["pairs", "file.npy"]):
            with pytest.raises(SystemExit) as exit_:
                main(command(files, *words))
            assert exit_.value.code == 130
            assert "neardup: interrupted" in capsys.readouterr().err


@pytest.mark.slow
def test_pyarrow_is_optional() -> None:
    # Whether or not it is here, nothing above but the Parquet tests needs it.
    code = "import sys, neardup.collection.matching, neardup.cli.main; print('pyarrow' in sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "False"
    assert importlib.util.find_spec("neardup.collection.fingerprint_files") is not None
