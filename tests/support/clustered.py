"""Collections of real pages, and what their clusters are by plain Python."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.collection import bands, clusters, dataset, rare_places
from neardup.detection.detector import DetectorOptions
from neardup.detection.document_frequencies import DocumentFrequencies
from neardup.detection.frequency_kernels import MOST_COUNT, whole_keys, word_keys
from neardup.detection.headlines import Likeness, are_named_apart, are_renumbered, compare_many
from neardup.detection.own_text import FEWEST_PLACES, LEAST_WHOLE, SHARP_PLACES, OwnText
from neardup.detection.rule import KNOWN_PAGES, Own
from neardup.fingerprint import sketch
from neardup.fingerprint.hamming import percentage
from neardup.text import headline as headlines
from tests.support.made_pages import article_and_diff
from tests.support.real_pages import real_pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from neardup.collection.clusters import Choice, Found
    from neardup.detection.frequency_kernels import Site
    from neardup.fingerprint.reader import Reading

    Row = dict[str, Any]

OPTIONS = DetectorOptions()
SCHEME = str(OPTIONS.make_reader().scheme)
CHOICE = clusters.Choice(OPTIONS.make_rule(OPTIONS.make_reader().features))
START = datetime(2026, 1, 1, tzinfo=UTC)


def page_rows() -> list[Row]:
    """Rows of ``pages/``: each real page at two addresses, the second without a date, and so the pages of a
    wiki; one page without words; and one address that was captured twice, as two different pages.
    """
    reader = OPTIONS.make_reader()
    made: list[Row] = []
    readings: list[Reading] = []
    real = [(f"{path.parent.name}.example", path.name, path.read_bytes()) for path in real_pages()]
    wiki = [("wiki.example", str(number), page.encode()) for number, page in enumerate(article_and_diff())]
    for number, (host, name, page) in enumerate([*real, *wiki]):
        reading = reader.read_html(f"http://{host}/{name}", page)
        assert reading.fingerprint is not None
        assert reading.sketch is not None
        row = {
            "url": f"http://{host}/{name}",
            "host": host,
            "date": START + timedelta(days=(7 * number) % 11),
            "hash_value": reading.fingerprint.value,
            "weak_bits": reading.fingerprint.pack_weak_bits(),
            "sketch": sketch.to_bytes(reading.sketch),
            "features": reading.distinct_words,
            "text_digest": reading.text_digest,
            "headline": headlines.to_bytes(reading.headline),
        }
        readings.append(reading)
        made += [row, {**row, "url": f"{row['url']}?again", "date": None}]
    for row, rare in zip(made, _rare(made, readings), strict=True):
        row.update(rare)
    empty = {"url": "http://empty.example/", "host": "empty.example", "features": 0}
    again = {**made[0], "url": made[6]["url"], "date": START + timedelta(days=99)}
    return [{**row, "id": 5 * at} for at, row in enumerate([*made, empty, again])]


def _rare(rows: Sequence[Row], readings: Sequence[Reading]) -> list[Row]:
    """The columns of ``rare/``, as a build makes them of these pages; each reading is that of two rows."""
    known = DocumentFrequencies()
    for row, reading in zip(rows[::2], readings, strict=True):
        known.count(row["host"], reading.shingles, reading.headline)
    made: list[Row] = []
    for row, reading in zip(rows[::2], readings, strict=True):
        host = known.of(row["host"])
        assert host is not None
        own = OwnText(reading, host)
        planes = rare_places.planes_of(own)
        rare = {
            "rare_places": planes.astype("<u8").tobytes(),
            "rare_limit": host.limit,
            "is_all_rare": host.pages >= KNOWN_PAGES and own.is_all_rare(),
            "is_article": own.is_article(),
        }
        made += [rare, rare]
    return made


def hosted(rows: Sequence[Row]) -> list[Row]:
    """The rows at hosts of two registered domains."""
    made = []
    for row in rows:
        old = row["host"]
        new = old.replace(".example", ".docs.com" if old < "clang-15" else ".other.org")
        made.append({**row, "host": new, "url": row["url"].replace(f"//{old}/", f"//{new}/")})
    return made


def write_collection(folder: Path, rows: Sequence[Row], *, files: int = 1, scheme: str = SCHEME) -> None:
    for below in ("pages", "rare"):
        (folder / below).mkdir(parents=True)
    for number in range(files):
        table = pa.Table.from_pylist(rows[number::files], schema=dataset.PAGES())
        pq.write_table(table, folder / "pages" / f"{number:06}-0000.parquet")
        rare = [row for row in rows[number::files] if row.get("rare_places")]
        if rare:
            table = pa.Table.from_pylist(rare, schema=dataset.RARE())
            pq.write_table(table, folder / "rare" / f"{number:06}-0000.parquet")
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
    """The clusters by plain Python; ``judged`` is not told."""
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
    compared = _compared(order, _pairs(order, distinct, chosen, choice), choice, distinct)
    star = _stars(
        distinct, ((pair, "") for pair in compared if choice.rule.evidence(pair.whole, pair.likeness))
    )
    for _ in range(clusters.MOST_JUDGED):
        duplicates, before = Counter(a for _, a, *_ in star.values()), star
        judged = ((pair, _judged(order, pair, duplicates[pair.a], choice)) for pair in compared)
        star = _stars(distinct, ((pair, evidence) for pair, evidence in judged if evidence is not None))
        if {b: a for b, (_, a, *_) in star.items()} == {b: a for b, (_, a, *_) in before.items()}:
            break
    relations = []
    for at, row in enumerate(order):
        if first[at] in star:
            differing, a, distance, evidence = star[first[at]]
            relations.append((order[a]["id"], row["id"], distance, differing, evidence))
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


class _Pair(NamedTuple):
    """Two pages by their places in the order of pages, and how they compare."""

    a: int
    b: int
    differing: int
    distance: int
    likeness: Likeness

    @property
    def whole(self) -> float:
        return max(0.0, 1.0 - 2.0 * self.differing / OPTIONS.sketch_size)


def _compared(
    order: Sequence[Row], pairs: Iterable[tuple[int, int]], choice: Choice, distinct: Sequence[int]
) -> list[_Pair]:
    sites = _Sites(order[at] for at in distinct)
    found = []
    for a, b in sorted(pairs):
        one, other = order[a], order[b]
        words = headlines.from_bytes(other["headline"])[np.newaxis]
        (likeness,) = compare_many(
            headlines.from_bytes(one["headline"]), one["host"], words, [other["host"]], sites
        )
        differing = (_bits(one["sketch"]) ^ _bits(other["sketch"])).bit_count()
        found.append(_Pair(a, b, differing, _distance(one, other), likeness))
    return found


def _judged(order: Sequence[Row], pair: _Pair, duplicates: int, choice: Choice) -> str | None:
    """Why a pair matches if its first page has so many duplicates."""
    one, other = order[pair.a], order[pair.b]
    own = Own(
        _of_rare(one, other, 0, pair.whole),
        _of_rare(one, other, duplicates, pair.whole),
        _agreeing(one, other, 0)[1],
        is_all=bool(other.get("is_all_rare")),
        is_article=bool(other.get("is_article")),
    )
    return _evidence(order, pair, own, choice)


def _evidence(order: Sequence[Row], pair: _Pair, own: Own, choice: Choice) -> str | None:
    one, other = ((headlines.from_bytes(order[at]["headline"]), order[at]["url"]) for at in (pair.a, pair.b))
    likeness = pair.likeness
    if likeness is Likeness.UNKNOWN and are_renumbered(*one, *other):
        likeness = Likeness.RENUMBERED
    evidence = choice.rule.evidence(pair.whole, likeness, own)
    if evidence is not None and are_named_apart(*one, *other):
        return choice.rule.evidence(pair.whole, Likeness.NAMED_APART, own)
    return evidence


def _stars(
    distinct: Sequence[int], edges: Iterable[tuple[_Pair, str]]
) -> dict[int, tuple[int, int, int, str]]:
    """Of each duplicate: places that differ, canonical page, distance and evidence."""
    earlier: dict[int, list[tuple[int, int, int, str]]] = defaultdict(list)
    for pair, evidence in edges:
        earlier[pair.b].append((pair.differing, pair.a, pair.distance, evidence))
    found: dict[int, tuple[int, int, int, str]] = {}
    for at in distinct:
        above = [edge for edge in earlier[at] if edge[1] not in found]
        if above:
            found[at] = min(above)
    return found


def _of_rare(one: Row, other: Row, duplicates: int, whole: float) -> float | None:
    """The resemblance of what is rare in ``other``, beside so many duplicates; None if it says nothing."""
    number, agreeing = _agreeing(one, other, duplicates)
    if agreeing is None:
        return None
    if number < SHARP_PLACES and whole < LEAST_WHOLE:
        return 0.0
    x = min(1.0, 2.0 * agreeing / (1.0 + whole))
    return x / (2.0 - x)


def _agreeing(one: Row, other: Row, duplicates: int) -> tuple[int, float | None]:
    """How many places of ``other`` are rare, beside so many duplicates, and what share of them agrees; None
    if it says nothing.
    """
    if other.get("rare_places") is None:
        return 0, None
    planes = other["rare_places"]
    size = len(planes) // len(rare_places.BESIDE)
    rare = 0
    for place, beside in enumerate(rare_places.BESIDE):
        rare |= _bits(planes[place * size : (place + 1) * size])
        if duplicates < other["rare_limit"] + beside:
            break
    else:
        return 0, None
    number = rare.bit_count()
    if not FEWEST_PLACES <= number < OPTIONS.sketch_size:
        return number, None
    differing = ((_bits(one["sketch"]) ^ _bits(other["sketch"])) & rare).bit_count()
    return number, max(0.0, 1.0 - 2.0 * differing / number)


def _bits(data: bytes) -> int:
    return int.from_bytes(data, "little")


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
