"""All near-duplicates of a collection, as stars (``docs/explanation/collections.md``).

One job in SQL, on DuckDB or Spark (:mod:`neardup.collection.engine`):

1. Pages are numbered in the order in which a page may be the canonical page of another: by date, URL and id.
2. Of pages with one text, fingerprint and sketch, only the first goes on.
3. Headlines are counted by host: what many pages of a host have is template.
4. Bands of sketches and fingerprints (:mod:`neardup.collection.bands`) bring pairs together.
5. The rule of the crawl judges the pairs, by what is rare on their hosts as well
   (:mod:`neardup.collection.rare_places`).
6. Rounds choose the canonical pages: a page without an earlier neighbour is canonical, and its neighbours are
   duplicates. The next round looks at the pages that are left.
7. What a cluster has in common is no template. So the pairs are judged again by the clusters that were found,
   until these stay.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.collection import bands, rare_places, results
from neardup.collection.dataset import identity, page_files
from neardup.collection.failing import failing
from neardup.collection.pair_kernels import EVIDENCE, HeadlineKeys, Judgement, Sites, Templates
from neardup.detection.document_frequencies import RARE_PAGES, RARE_SHARE
from neardup.detection.rule import MIN_FEATURES, Evidence, Rule
from neardup.detection.scope import ANY, Scope
from neardup.errors import ConfigurationError
from neardup.fingerprint.hamming import FINGERPRINT_BITS
from neardup.parquet import arrow_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import numpy.typing as npt

    from neardup.collection.bands import Bands
    from neardup.collection.dataset import Collection
    from neardup.collection.engine import Engine

HEADS = 2
"""With how many pages of a block each page of the block is compared: the first ones. So a template page of a
million copies costs a bounded work for each copy.
"""

MOST_JUDGED = 8
"""How often pairs are judged at most by clusters that the rule has made. Five real sites took 2 times."""

_SIGNED = (
    "CAST(CASE WHEN hash_value >= 9223372036854775808 THEN hash_value - 18446744073709551616"
    " ELSE hash_value END AS BIGINT)"
)
"""A fingerprint as a number that all engines have; the bits are the same."""


_HEX = "hex(CAST(sketch AS BINARY))"
"""The digits of a sketch; Sail takes no binary column that it has read from Parquet without the cast."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What decides: the rule, the recall wanted of bands, and the words that a page must have.

    With ``last_captures``, only the last capture of each URL counts. ``scope`` is the name of one.
    """

    rule: Rule
    recall: float = bands.RECALL
    min_features: int = MIN_FEATURES
    last_captures: bool = False
    scope: str = ANY


@dataclass(frozen=True, slots=True)
class Found:
    """The clusters of a collection, as Arrow tables; see :func:`find`.

    ``relations``: a row a duplicate, by its id. ``clusters``: a row a page, by its id. ``judged``: how many
    times the pairs were judged by what was known of the clusters. ``too_short``: how many pages have too few
    words to be compared with any.
    """

    relations: Any
    clusters: Any
    bands: Bands
    judged: int
    too_short: int = 0


def find(
    collection: Collection, engine: Engine, choice: Choice, on_stage: Callable[[str], None] = lambda _: None
) -> Found:
    """Find the clusters; ``on_stage`` is told what is done next.

    The folder of the engine should be that of :func:`job_folder`. What is made there is kept if something
    fails.
    """
    job = _Job(collection, engine, choice, on_stage)
    job.number_pages()
    chosen = job.choose_bands()
    job.find_pairs(chosen)
    job.judge()
    judged = job.choose_canonical()
    relations = job.relations(f"star_{judged}")
    too_short = engine.count("capture") - engine.count("numbered")
    return Found(relations, job.clusters(relations), chosen, judged, too_short)


def job_folder(collection: Collection, choice: Choice) -> Path:
    """The folder in which the tables of a job stand until the job is done.

    What stands there of another job, or of pages that have changed since, is removed. NeardupError: the
    folder cannot be written.
    """
    folder = collection.clusters / "work"
    files = [*page_files(collection), *sorted(collection.rare.glob("*.parquet"))]
    known_by = json.dumps(
        {
            "scheme": collection.scheme,
            "pages": identity(collection, files),
            "max_distance": choice.rule.max_distance,
            "verify": choice.rule.verify,
            "recall": choice.recall,
            "min_features": choice.min_features,
            "last_captures": choice.last_captures,
            "scope": choice.scope,
            "heads": HEADS,
        },
        indent=1,
    )
    path = folder / "job.json"
    with failing(folder):
        if not path.exists() or path.read_text() != known_by:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            path.write_text(known_by)
    return folder


def templates_of(collection: Collection, engine: Engine, choice: Choice) -> Templates:
    """What many headlines of a host have, as :func:`find` knows it when it judges pairs."""
    job = _Job(collection, engine, choice, lambda _: None)
    job.number_pages()
    return job.templates()


def write(found: Found, collection: Collection) -> None:
    """Write what was found; see :func:`write_tables`."""
    write_tables(found.relations, found.clusters, collection)


def write_tables(relations: Any, clusters: Any, collection: Collection) -> None:
    """Write ``relations.parquet`` and ``clusters.parquet``; equal results are equal bytes."""
    parquet = arrow_module("pyarrow.parquet", collection.clusters)
    for name, table in (("relations", relations), ("clusters", clusters)):
        path = collection.clusters / f"{name}.parquet"
        begun = path.with_suffix(".begun")
        parquet.write_table(
            table, begun, row_group_size=1 << 20, compression="zstd", version="2.6", store_schema=False
        )
        os.replace(begun, path)  # noqa: PTH105
    results.renewed(collection, results.CLUSTERS)


def as_stored(found: Any, collection: Collection) -> Any:
    """Relations with the columns of ``duplicate_values``, of canonical, duplicate, distance, differing and
    evidence.
    """
    arrow = arrow_module("pyarrow", collection.folder)
    distances = found["distance"].to_numpy().astype(np.int16)
    differing = found["differing"].to_numpy()
    return arrow.table(
        {
            "actual_hash_id": found["canonical"].to_numpy().astype(np.int64),
            "duplicate_hash_id": found["duplicate"].to_numpy().astype(np.int64),
            "hamming_distance": distances,
            "percentage": 100.0 * (FINGERPRINT_BITS - distances) / FINGERPRINT_BITS,
            "resemblance": np.maximum(0.0, 1.0 - 2.0 * differing / collection.places),
            "evidence": found["evidence"].cast(arrow.string()),
        }
    )


class _Job:
    """The tables of one job, in their order."""

    def __init__(
        self, collection: Collection, engine: Engine, choice: Choice, on_stage: Callable[[str], None]
    ) -> None:
        self._collection, self._engine, self._choice = collection, engine, choice
        self._on_stage = on_stage
        if not choice.rule.verify > 0.0:
            raise ConfigurationError(
                "clusters need sketches: verify must be above 0; neardup pairs does without"
            )
        engine.source("pages", collection.pages)
        engine.source("rare", rare_places.folder_of(collection, engine.folder))
        self._scope = Scope(choice.scope)

    def number_pages(self) -> None:
        """Four tables.

        - ``capture`` (id): the pages that count.
        - ``scoped`` (id, site): only if the scope is bounded.
        - ``numbered`` (id, ordinal, first): ``first`` is the ordinal of the first page of the same text.
        - ``page`` (ordinal and traits): what is compared of these first pages.
        """
        self._on_stage("numbering the pages")
        choice, places = self._choice, self._collection.places
        odd = self._engine.fetch(
            "SELECT min(id) AS id FROM pages"
            f" WHERE hash_value IS NOT NULL AND (sketch IS NULL OR length({_HEX}) <> {places // bands.DIGIT})"
        )["id"][0].as_py()
        if odd is not None:
            raise ConfigurationError(
                f"{self._collection.pages}: the sketch of page {odd} has not the {places} places of the"
                f" scheme {self._collection.scheme}"
            )
        capture = "row_number() OVER (PARTITION BY url ORDER BY date DESC NULLS LAST, id DESC)"
        if not choice.last_captures:
            capture = "1"
        self._engine.make(
            "capture",
            f"SELECT id FROM (SELECT id, {capture} AS number FROM pages) AS captures WHERE number = 1",
        )
        site, scoped = "", ""
        if self._scope.is_bounded:
            kernel = Sites(self._scope)
            self._engine.map("scoped", "SELECT id, url FROM pages", kernel, kernel.schema())
            site, scoped = ", site", "JOIN scoped ON pages.id = scoped.id"
        self._engine.make(
            "numbered",
            f"""
            SELECT id, ordinal,
                min(ordinal) OVER (PARTITION BY text_digest, hash_value, sketch{site}) AS first
            FROM (
                SELECT pages.id AS id, text_digest, hash_value, sketch{site},
                    row_number() OVER (ORDER BY date NULLS LAST, url, pages.id) AS ordinal
                FROM pages JOIN capture ON pages.id = capture.id {scoped}
                WHERE hash_value IS NOT NULL AND features >= {choice.min_features}
            ) AS ordered
            """,
        )
        self._engine.make(
            "page",
            f"""
            SELECT ordinal, url, host, {_SIGNED} AS value, sketch, headline,
                rare_places, rare_limit, is_all_rare, is_article{site}
            FROM pages JOIN numbered ON pages.id = numbered.id {scoped}
            LEFT JOIN rare ON pages.id = rare.id
            WHERE ordinal = first
            """,
        )

    def choose_bands(self) -> Bands:
        rule, pages = self._choice.rule, self._engine.count("page")
        return bands.choose(pages, rule.verify, self._choice.recall, self._collection.places)

    def find_pairs(self, chosen: Bands) -> None:
        """Table ``pair`` (a, b): ordinals of the candidates, a < b, within the maximum distance."""
        pages, starts = self._engine.count("page"), list(chosen.starts())
        at_once = len(starts)
        if self._engine.rows_at_once is not None:
            at_once = max(1, min(at_once, self._engine.rows_at_once // max(1, pages)))
        parts = [starts[first : first + at_once] for first in range(0, len(starts), at_once)]
        # Named by their bands: another engine, which takes others at once, may go on.
        names = [f"pair_{part[0]}_{part[-1]}" for part in parts]
        for number, (name, part) in enumerate(zip(names, parts, strict=True), start=1):
            self._on_stage(f"candidates, part {number} of {len(parts)}")
            self._engine.make(name, self._pairs(part, chosen.width // bands.DIGIT))
        self._engine.make("pair", " UNION ".join(f"SELECT a, b FROM {name}" for name in names))

    def _pairs(self, starts: Iterable[int], digits: int) -> str:
        """Pairs of a page and of one of the first pages of a block: of those with one band in common.

        With a bounded scope, a band is that of a site.
        """
        band = f"substr(digits, start + 1, {digits})"
        site = ""
        if self._scope.is_bounded:
            band, site = f"concat({band}, ' ', site)", ", site"
        differing = self._engine.differing("head.value", "other.value")
        return f"""
            WITH banded AS (
                SELECT ordinal, value, start, {band} AS band
                FROM (
                    SELECT ordinal, value{site},
                        concat({_HEX}, lpad(hex(value), {FINGERPRINT_BITS // bands.DIGIT}, '0')) AS digits
                    FROM page
                ) AS page_digits
                CROSS JOIN (VALUES {", ".join(f"({start})" for start in starts)}) AS starts(start)
            ),
            shared AS (SELECT start, band FROM banded GROUP BY start, band HAVING count(*) > 1),
            head AS (
                SELECT start, band, ordinal, value
                FROM (
                    SELECT banded.start, banded.band, ordinal, value,
                        row_number() OVER (PARTITION BY banded.start, banded.band ORDER BY ordinal) AS number
                    FROM banded JOIN shared ON banded.start = shared.start AND banded.band = shared.band
                ) AS block
                WHERE number <= {HEADS}
            )
            SELECT DISTINCT head.ordinal AS a, other.ordinal AS b
            FROM head JOIN banded AS other ON head.start = other.start AND head.band = other.band
            WHERE head.ordinal < other.ordinal AND {differing} <= {self._choice.rule.max_distance}
            """

    def judge(self) -> None:
        """Table ``compared``: what the rule says of the pairs, as :class:`Judgement` tells it."""
        self._on_stage("judging the candidates")
        judgement = Judgement(self._choice.rule, self.templates(), self._collection.places)
        columns = ", ".join(
            f"{side}.{name} AS {name}_{end}"
            for side, end in (("one", "a"), ("other", "b"))
            for name in ("value", "sketch", "headline", "url", "host")
        )
        self._engine.map(
            "compared",
            f"""
            SELECT a, b, {columns},
                other.rare_places, other.rare_limit, other.is_all_rare, other.is_article
            FROM pair JOIN page AS one ON a = one.ordinal JOIN page AS other ON b = other.ordinal
            """,
            judgement,
            judgement.schema(),
        )

    def templates(self) -> Templates:
        return Templates(self._template_keys())

    def _template_keys(self) -> dict[str, npt.NDArray[np.uint64]]:
        """Keys of headlines that are not rare on their hosts, by host, as
        :attr:`neardup.detection.document_frequencies.HostFrequencies.limit` says.
        """
        kernel = HeadlineKeys()
        self._engine.make(
            "site", f"SELECT host, count(*) AS pages FROM page GROUP BY host HAVING count(*) > {RARE_PAGES}"
        )
        self._engine.map(
            "headline_key",
            """
            SELECT page.host, headline FROM page JOIN site ON page.host = site.host
            WHERE headline IS NOT NULL
            """,
            kernel,
            kernel.schema(),
        )
        found = self._engine.fetch(
            f"""
            SELECT site.host AS host, key FROM headline_key JOIN site ON headline_key.host = site.host
            GROUP BY site.host, pages, key
            HAVING count(*) > {RARE_PAGES} AND count(*) * {round(1 / RARE_SHARE)} > pages
            """
        ).sort_by([("host", "ascending"), ("key", "ascending")])
        hosts, keys = found["host"].to_numpy(), found["key"].to_numpy().view(np.uint64)
        begins = (
            np.flatnonzero(np.r_[True, hosts[1:] != hosts[:-1]]) if len(hosts) else np.empty(0, dtype=int)
        )
        return (
            dict(zip(hosts[begins].tolist(), np.split(keys, begins[1:]), strict=True)) if len(hosts) else {}
        )

    def choose_canonical(self) -> int:
        """Tables ``star_N`` (a, b, distance, differing, evidence): duplicates and their canonical pages, by
        what was known of clusters before; returns the last N.

        What a canonical page and its duplicates share is no evidence of a template. So the rule has to know
        the clusters that the rule makes. The first stars are those of whole texts. With the sizes of these,
        the pairs are judged again, until the stars stay as they are.
        """
        self._make_stars(0, "SELECT a, b, distance, differing, '' AS evidence FROM compared WHERE is_whole")
        for number in range(1, MOST_JUDGED + 1):
            last = f"star_{number - 1}"
            self._make_stars(
                number,
                f"""
                SELECT a, b, distance, differing, evidence
                FROM (
                    SELECT compared.a AS a, b, distance, differing,
                        {rare_places.plane_sql(EVIDENCE)} AS evidence
                    FROM compared
                    LEFT JOIN (SELECT a, count(*) AS duplicates FROM {last} GROUP BY a) AS known
                    ON compared.a = known.a
                ) AS judged
                WHERE evidence IS NOT NULL
                """,
            )
            if not self._differ(last, f"star_{number}"):
                break
        return number

    def _differ(self, one: str, other: str) -> bool:
        """Whether two tables of stars have not the same pairs."""
        query = (
            f"SELECT count(*) AS rows FROM {one} JOIN {other} ON {one}.a = {other}.a AND {one}.b = {other}.b"
        )
        both = self._engine.fetch(query)["rows"][0].as_py()
        return {both} != {self._engine.count(one), self._engine.count(other)}

    def _make_stars(self, number: int, edges: str) -> None:
        """Table ``star_N`` of the pairs that a query finds.

        On the way there are tables ``left_N_R`` (a, b: edges of pages that are undecided) and ``taken_N_R``
        (b: duplicates found in round R). A duplicate is that of the canonical page that it agrees most with;
        of several the first.
        """
        engine, rounds, edge = self._engine, 0, f"edge_{number}"
        engine.make(edge, edges)
        engine.make(f"left_{number}_0", f"SELECT a, b FROM {edge}")
        while left := engine.count(f"left_{number}_{rounds}"):
            self._on_stage(f"choosing canonical pages, {number + 1}, round {rounds + 1}, {left:,} pairs")
            before, taken = f"left_{number}_{rounds}", f"taken_{number}_{rounds + 1}"
            engine.make(
                taken,
                f"""
                SELECT DISTINCT edge.b AS b
                FROM {before} AS edge LEFT JOIN (SELECT DISTINCT b FROM {before}) AS later ON edge.a = later.b
                WHERE later.b IS NULL
                """,
            )
            rounds += 1
            engine.make(
                f"left_{number}_{rounds}",
                f"""
                SELECT edge.a AS a, edge.b AS b
                FROM {before} AS edge
                LEFT JOIN {taken} AS one ON edge.a = one.b LEFT JOIN {taken} AS other ON edge.b = other.b
                WHERE one.b IS NULL AND other.b IS NULL
                """,
            )
        parts = [f"SELECT b FROM taken_{number}_{part}" for part in range(1, rounds + 1)]
        taken = f"taken_{number}"
        engine.make(taken, " UNION ALL ".join(parts) or f"SELECT b FROM left_{number}_0")
        engine.make(
            f"star_{number}",
            f"""
            SELECT a, b, distance, differing, evidence
            FROM (
                SELECT edge.a, edge.b, distance, differing, evidence,
                    row_number() OVER (PARTITION BY edge.b ORDER BY differing, edge.a) AS number
                FROM {edge} AS edge JOIN {taken} AS taken ON edge.b = taken.b
                LEFT JOIN {taken} AS above ON edge.a = above.b
                WHERE above.b IS NULL
            ) AS canonical
            WHERE number = 1
            """,
        )

    def relations(self, star: str) -> Any:
        """The relations of all duplicates, as an Arrow table in the order of their ids; ``star`` names the
        table of stars.
        """
        self._on_stage("gathering the relations")
        found = self._engine.fetch(
            f"""
            SELECT coalesce(of_star.id, of_text.id) AS canonical, numbered.id AS duplicate,
                coalesce(distance, 0) AS distance, coalesce(differing, 0) AS differing,
                coalesce(evidence, '{Evidence.TEXT}') AS evidence
            FROM numbered LEFT JOIN {star} AS star ON numbered.first = star.b
            LEFT JOIN numbered AS of_star ON star.a = of_star.ordinal
            LEFT JOIN numbered AS of_text ON numbered.first = of_text.ordinal
            WHERE star.b IS NOT NULL OR numbered.ordinal <> numbered.first
            """
        ).sort_by("duplicate")
        return as_stored(found, self._collection)

    def clusters(self, relations: Any) -> Any:
        """A row a page that counts, as an Arrow table in the order of ids.

        The row has the canonical page, or the page itself, and how many pages the cluster has.
        """
        arrow = arrow_module("pyarrow", self._collection.folder)
        ids = np.sort(self._engine.fetch("SELECT id FROM capture")["id"].to_numpy())
        canonical = ids.copy()
        duplicates = relations["duplicate_hash_id"].to_numpy()
        canonical[np.searchsorted(ids, duplicates)] = relations["actual_hash_id"].to_numpy()
        _, which, sizes = np.unique(canonical, return_inverse=True, return_counts=True)
        return arrow.table({"id": ids, "canonical_id": canonical, "size": sizes[which]})
