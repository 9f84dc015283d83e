"""Canonical pages of the clusters of a collection, chosen anew by rules.

The rules are those of :mod:`neardup.store.election`. A page is canonical only if all others of its cluster
are within the rule of it. So clusters keep their pages.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.collection import clusters, rare_places, results
from neardup.collection.collected_ranks import ranks_of
from neardup.collection.dataset import page_files
from neardup.collection.pair_kernels import EVIDENCE, Judgement
from neardup.collection.rare_places import plane_of
from neardup.detection.rule import Evidence
from neardup.errors import ConfigurationError
from neardup.parquet import arrow_module, reading_parquet
from neardup.store.election import MOST_TRIED, PREFERENCES, Elections, Preferred

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from neardup.collection.clusters import Choice
    from neardup.collection.dataset import Collection
    from neardup.collection.engine import Engine

    Rows = npt.NDArray[np.int64]

_PAIRS_AT_ONCE = 1 << 16
_COLUMNS = ("id", "url", "host", "date", "hash_value", "sketch", "headline", "text_digest")
_RARE = ("rare_places", "rare_limit", "is_all_rare", "is_article")
_UNDATED = datetime.max.replace(tzinfo=UTC)


class _Page(NamedTuple):
    """What the rules compare."""

    actual_url: str
    first_seen: datetime
    pagerank: float


class _Relation(NamedTuple):
    """A duplicate and its canonical page, as rows of the members."""

    canonical: int
    duplicate: int
    distance: int
    differing: int
    evidence: str


def elect(
    collection: Collection,
    engine: Engine,
    choice: Choice,
    preferences: Sequence[str],
    *,
    dry: bool,
) -> Elections:
    """Make the page that comes first by the rules the canonical page of each cluster; ``dry``: write nothing.

    At most 100 pages of a cluster are tried. Memory holds the sketches of all pages of clusters of two or
    more. ConfigurationError: the clusters or the ranks are not known.
    """
    relations, clustered = (_read(collection, name) for name in ("relations", "clusters"))
    compute = arrow_module("pyarrow.compute", collection.folder)
    members = _Members(collection, clustered.filter(compute.field("size") > 1), preferences)
    templates = clusters.templates_of(collection, engine, choice)
    judge = _Judge(collection, members, Judgement(choice.rule, templates, collection.places))
    found = Elections(len(members.clusters))
    elected: list[_Relation] = []
    waiting = {head: members.ahead(head) for head in members.clusters}
    waiting = {head: ahead for head, ahead in waiting.items() if ahead}
    while waiting:
        candidates = {head: ahead.pop(0) for head, ahead in waiting.items()}
        for head, related in judge.stars(candidates).items():
            if len(related) == len(members.clusters[head]) - 1:
                elected += related
                found.changed.append(members.preferred(candidates[head], head))
                del waiting[head]
            elif not waiting[head]:
                found.kept += 1
                del waiting[head]
    found.changed.sort(key=lambda change: change.url)
    if elected and not dry:
        _write(collection, members, relations, clustered, elected)
    return found


class _Members:
    """The pages of clusters of two or more, as rows in the order of their ids.

    ``clusters``: the rows of each cluster by the row of its canonical page, in the order of the rules.
    ``heads``: the row of the canonical page of each page.
    """

    def __init__(self, collection: Collection, clustered: Any, preferences: Sequence[str]) -> None:
        self._preferences = preferences
        self.ids: Rows = clustered["id"].to_numpy()
        self.traits = _traits(collection, self.ids)
        ranks = (
            ranks_of(collection, self.ids) if "pagerank" in preferences else np.zeros(self.ids.size)
        ).tolist()
        urls, dates = self.traits["url"].to_pylist(), self.traits["date"].to_pylist()
        self._keys = []
        self.urls = urls
        for url, date, rank in zip(urls, dates, ranks, strict=True):
            page = _Page(url, _UNDATED if date is None else date.replace(tzinfo=UTC), rank)
            self._keys.append(tuple(PREFERENCES[name](page) for name in preferences))
        self.clusters: dict[int, list[int]] = {}
        heads = np.searchsorted(self.ids, clustered["canonical_id"].to_numpy()).tolist()
        self.heads = heads
        for row, head in enumerate(heads):
            self.clusters.setdefault(head, []).append(row)
        for rows in self.clusters.values():
            rows.sort(key=lambda row: (self._keys[row], row))

    def ahead(self, head: int) -> list[int]:
        """The pages that come before the canonical page, the first one first."""
        rows = self.clusters[head]
        return rows[: min(rows.index(head), MOST_TRIED)]

    def preferred(self, row: int, head: int) -> Preferred:
        """A page that is canonical instead of another."""
        keys = zip(self._preferences, self._keys[row], self._keys[head], strict=True)
        rule = next((name for name, key, other in keys if key != other), "stored first")
        return Preferred(self.urls[row], self.urls[head], len(self.clusters[head]) - 1, rule)


class _Judge:
    """Says which pages of a cluster are within the rule of a page."""

    def __init__(self, collection: Collection, members: _Members, judgement: Judgement) -> None:
        self._arrow = arrow_module("pyarrow", collection.folder)
        self._compute = arrow_module("pyarrow.compute", collection.folder)
        self._members, self._judgement = members, judgement

    def stars(self, candidates: dict[int, int]) -> dict[int, list[_Relation]]:
        """The relations of each candidate to the others of its cluster, by the canonical page of now."""
        found: dict[int, list[_Relation]] = {head: [] for head in candidates}
        head_of = {candidate: head for head, candidate in candidates.items()}
        pairs = np.array(
            [
                (candidate, row)
                for head, candidate in candidates.items()
                for row in self._members.clusters[head]
                if row != candidate
            ]
        )
        for start in range(0, len(pairs), _PAIRS_AT_ONCE):
            for relation in self._judged(pairs[start : start + _PAIRS_AT_ONCE]):
                found[head_of[relation.canonical]].append(relation)
        return found

    def _judged(self, pairs: Rows) -> Iterator[_Relation]:
        """The relations of the pairs that match. Copies are duplicates whatever their headlines say."""
        sides = [self._members.traits.take(self._arrow.array(side)) for side in pairs.T]
        same = np.ones(len(pairs), dtype=np.bool_)
        for name in ("hash_value", "sketch", "text_digest"):
            same &= self._compute.equal(*(side[name] for side in sides)).to_numpy()
        for canonical, duplicate in pairs[same].tolist():
            yield _Relation(canonical, duplicate, 0, 0, Evidence.TEXT.value)
        columns = {"a": self._arrow.array(pairs[:, 0]), "b": self._arrow.array(pairs[:, 1])}
        for end, side in zip("ab", sides, strict=True):
            for name, column in (
                ("value", "hash_value"),
                ("sketch",) * 2,
                ("headline",) * 2,
                ("url",) * 2,
                ("host",) * 2,
            ):
                columns[f"{name}_{end}"] = side[column].combine_chunks()
        for name in _RARE:
            columns[name] = sides[1][name].combine_chunks()
        batch = self._arrow.record_batch(columns).filter(self._arrow.array(~same))
        for judged in self._judgement(iter([batch]) if batch.num_rows else iter(())):
            for row in judged.to_pylist():
                duplicates = len(self._members.clusters[self._members.heads[row["a"]]]) - 1
                evidence = row[EVIDENCE[plane_of(duplicates, row["rare_limit"] or 0)]]
                if evidence is not None:
                    yield _Relation(row["a"], row["b"], row["distance"], row["differing"], evidence)


def _write(
    collection: Collection, members: _Members, relations: Any, clustered: Any, elected: list[_Relation]
) -> None:
    """The relations and clusters as they are now, in the place of those of before."""
    arrow = arrow_module("pyarrow", collection.folder)
    compute = arrow_module("pyarrow.compute", collection.folder)
    columns: dict[str, Any] = dict(zip(_Relation._fields, zip(*elected, strict=True), strict=True))
    for name in ("canonical", "duplicate"):
        columns[name] = members.ids[list(columns[name])]
    new = clusters.as_stored(arrow.table(columns), collection)
    # Of each cluster that has changed, all pages stand in the new relations, as one or the other.
    changed = arrow.array(np.unique([columns["canonical"], columns["duplicate"]]))
    kept = relations.filter(compute.invert(compute.is_in(relations["duplicate_hash_id"], value_set=changed)))
    ids, canonical = clustered["id"].to_numpy(), clustered["canonical_id"].to_numpy().copy()
    canonical[np.searchsorted(ids, columns["canonical"])] = columns["canonical"]
    canonical[np.searchsorted(ids, columns["duplicate"])] = columns["canonical"]
    table = clustered.set_column(1, "canonical_id", arrow.array(canonical))
    together = arrow.concat_tables([kept, new.cast(kept.schema)]).sort_by("duplicate_hash_id")
    clusters.write_tables(together, table, collection)


def _read(collection: Collection, name: str) -> Any:
    path = results.known(collection, f"{name}.parquet")
    with reading_parquet(path):
        return arrow_module("pyarrow.parquet", path).read_table(path)


def _traits(collection: Collection, ids: Rows) -> Any:
    """What pages are compared by, as an Arrow table in the order of the ids; each has a fingerprint."""
    arrow = arrow_module("pyarrow", collection.folder)
    parquet, compute = (arrow_module(f"pyarrow.{name}", collection.folder) for name in ("parquet", "compute"))
    found = []
    for path in page_files(collection):
        with reading_parquet(path):
            table = parquet.read_table(path, columns=list(_COLUMNS))
        found.append(table.filter(compute.is_in(table["id"], arrow.array(ids))))
    together, rare = arrow.concat_tables(found).sort_by("id"), rare_places.rows_of(collection, ids)
    if together.num_rows < ids.size:
        raise ConfigurationError(
            f"{collection.pages} has not all pages of the clusters any more: run neardup collection clusters"
            f" {collection.folder} again"
        )
    for name in _RARE:
        together = together.append_column(name, rare[name])
    return together.combine_chunks()
