"""Collections of real pages, and what their clusters are by plain Python."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.collection import bands, clusters, dataset
from neardup.detection.detector import DetectorOptions
from neardup.detection.frequency_kernels import MOST_COUNT, whole_keys, word_keys
from neardup.detection.headlines import Likeness, compare_many
from neardup.fingerprint import sketch
from neardup.fingerprint.hamming import percentage
from neardup.text import headline as headlines
from tests.support.real_pages import real_pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from neardup.collection.clusters import Choice, Found
    from neardup.detection.frequency_kernels import Site

    Row = dict[str, Any]

OPTIONS = DetectorOptions()
SCHEME = str(OPTIONS.make_reader().scheme)
CHOICE = clusters.Choice(OPTIONS.make_rule(OPTIONS.make_reader().features))
START = datetime(2026, 1, 1, tzinfo=UTC)


def page_rows() -> list[Row]:
    """Rows of ``pages/``: each real page at two addresses, the second without a date; one page without words;
    and one address that was captured twice, as two different pages.
    """
    reader = OPTIONS.make_reader()
    made: list[Row] = []
    for number, path in enumerate(real_pages()):
        reading = reader.read_html(path.as_uri(), path.read_bytes())
        assert reading.fingerprint is not None
        assert reading.sketch is not None
        row = {
            "url": f"http://{path.parent.name}.example/{path.name}",
            "host": f"{path.parent.name}.example",
            "date": START + timedelta(days=(7 * number) % 11),
            "hash_value": reading.fingerprint.value,
            "weak_bits": reading.fingerprint.pack_weak_bits(),
            "sketch": sketch.to_bytes(reading.sketch),
            "features": reading.distinct_words,
            "text_digest": reading.text_digest,
            "headline": headlines.to_bytes(reading.headline),
        }
        made += [row, {**row, "url": f"{row['url']}?again", "date": None}]
    empty = {"url": "http://empty.example/", "host": "empty.example", "features": 0}
    again = {**made[0], "url": made[6]["url"], "date": START + timedelta(days=99)}
    return [{**row, "id": 5 * at} for at, row in enumerate([*made, empty, again])]


def hosted(rows: Sequence[Row]) -> list[Row]:
    """The rows at hosts of two registered domains."""
    made = []
    for row in rows:
        old = row["host"]
        new = old.replace(".example", ".docs.com" if old < "clang-15" else ".other.org")
        made.append({**row, "host": new, "url": row["url"].replace(f"//{old}/", f"//{new}/")})
    return made


def write_collection(folder: Path, rows: Sequence[Row], *, files: int = 1, scheme: str = SCHEME) -> None:
    (folder / "pages").mkdir(parents=True)
    for number in range(files):
        table = pa.Table.from_pylist(rows[number::files], schema=dataset.PAGES())
        pq.write_table(table, folder / "pages" / f"{number:06}-0000.parquet")
    state = {"format": dataset.FORMAT, "scheme": scheme, "options": {}, "inputs": [], "complete": True}
    (folder / "collection.json").write_text(json.dumps(state))


class _Sites:
    """What is not rare in headlines, counted exactly."""

    def __init__(self, rows: Iterable[Row]) -> None:
        counts: dict[str, Counter[int]] = defaultdict(Counter)
        pages: Counter[str] = Counter()
        for row in rows:
            words = headlines.from_bytes(row["headline"])
            keys = {*word_keys(words[words != 0]).tolist(), *whole_keys(words).tolist()}
            counts[row["host"]].update(keys)
            pages[row["host"]] += 1
        self._sites: dict[str, Site] = {}
        for host, counted in counts.items():
            cells = np.zeros((2, 1 << 16), dtype=np.uint16)
            for key, number in counted.items():
                if number > max(6, int(0.02 * pages[host])):
                    cells[0, key & 0xFFFF] = cells[1, key >> 32 & 0xFFFF] = MOST_COUNT
            self._sites[host] = cells, 6

    def site(self, host: str) -> Site:
        return self._sites[host]


def expected(rows: Sequence[Row], choice: Choice) -> Found:
    """The clusters by plain Python; ``rounds`` is not told."""
    if choice.last_captures:
        early = datetime.min.replace(tzinfo=UTC)
        captured = sorted(rows, key=lambda row: (row.get("date") or early, row["id"]))
        last = {row["url"]: row for row in captured}
        rows = list(last.values())
    eligible = [
        row for row in rows if row.get("hash_value") is not None and row["features"] >= choice.min_features
    ]
    far = datetime.max.replace(tzinfo=UTC)
    order = sorted(eligible, key=lambda row: (row["date"] or far, row["url"].encode(), row["id"]))
    firsts: dict[tuple[Any, ...], int] = {}
    first = [
        firsts.setdefault((row["text_digest"], row["hash_value"], row["sketch"], _site(row, choice)), at)
        for at, row in enumerate(order)
    ]
    distinct = sorted(firsts.values())
    chosen = bands.choose(len(distinct), choice.rule.verify, choice.recall, OPTIONS.sketch_size)
    edges = _edges(order, distinct, _pairs(order, distinct, chosen, choice), choice)
    canonical: set[int] = set()
    star: dict[int, tuple[int, int, int]] = {}
    for at in distinct:
        above = [(differing, a, distance) for a, differing, distance in edges[at] if a in canonical]
        if above:
            star[at] = min(above)
        else:
            canonical.add(at)
    relations = []
    for at, row in enumerate(order):
        if first[at] in star:
            differing, a, distance = star[first[at]]
            relations.append((order[a]["id"], row["id"], distance, differing, "whole"))
        elif first[at] != at:
            relations.append((order[first[at]]["id"], row["id"], 0, 0, "text"))
    return _tables(rows, sorted(relations, key=lambda relation: relation[1]), chosen)


def _site(row: Row, choice: Choice) -> str:
    """The last labels of the host, which are the registered domain of all hosts of the tests."""
    labels = {"any": 0, "domain": 2, "host": 9}[choice.scope]
    return ".".join(row["host"].split(".")[-labels:]) if labels else ""


def _pairs(
    order: Sequence[Row], distinct: Sequence[int], chosen: bands.Bands, choice: Choice
) -> set[tuple[int, int]]:
    blocks: dict[tuple[int, str, str], list[int]] = defaultdict(list)
    for at in distinct:
        digits = order[at]["sketch"].hex() + f"{order[at]['hash_value']:016x}"
        for start in chosen.starts():
            blocks[start, digits[start : start + chosen.width // 4], _site(order[at], choice)].append(at)
    pairs = {(a, b) for block in blocks.values() for a in block[: clusters.HEADS] for b in block if a < b}
    return {(a, b) for a, b in pairs if _distance(order[a], order[b]) <= choice.rule.max_distance}


def _edges(
    order: Sequence[Row], distinct: Sequence[int], pairs: Iterable[tuple[int, int]], choice: Choice
) -> dict[int, list[tuple[int, int, int]]]:
    """Of each page, the earlier ones that it matches: ordinal, places that differ, distance."""
    sites = _Sites(order[at] for at in distinct)
    edges: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for a, b in pairs:
        one, other = order[a], order[b]
        differing = (int.from_bytes(one["sketch"]) ^ int.from_bytes(other["sketch"])).bit_count()
        if 1.0 - 2.0 * differing / OPTIONS.sketch_size < choice.rule.verify:
            continue
        words = headlines.from_bytes(other["headline"])[np.newaxis]
        (likeness,) = compare_many(
            headlines.from_bytes(one["headline"]), one["host"], words, [other["host"]], sites
        )
        if likeness is not Likeness.DIFFERENT:
            edges[b].append((a, differing, _distance(one, other)))
    return edges


def _distance(one: Row, other: Row) -> int:
    return int((one["hash_value"] ^ other["hash_value"]).bit_count())


def _tables(rows: Sequence[Row], relations: Sequence[tuple[Any, ...]], chosen: bands.Bands) -> Found:
    canonical = {row["id"]: row["id"] for row in rows}
    canonical.update((duplicate, actual) for actual, duplicate, *_ in relations)
    sizes = Counter(canonical.values())
    ids = sorted(canonical)
    return clusters.Found(
        pa.table(
            {
                "actual_hash_id": pa.array([actual for actual, *_ in relations], pa.int64()),
                "duplicate_hash_id": pa.array([duplicate for _, duplicate, *_ in relations], pa.int64()),
                "hamming_distance": pa.array([distance for *_, distance, _, _ in relations], pa.int16()),
                "percentage": [percentage(distance) for *_, distance, _, _ in relations],
                "resemblance": [
                    1.0 - 2.0 * differing / OPTIONS.sketch_size for *_, differing, _ in relations
                ],
                "evidence": [evidence for *_, evidence in relations],
            }
        ),
        pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "canonical_id": pa.array([canonical[page] for page in ids], pa.int64()),
                "size": pa.array([sizes[canonical[page]] for page in ids], pa.int64()),
            }
        ),
        chosen,
        0,
    )
