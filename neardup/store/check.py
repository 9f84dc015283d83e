"""What must be true of the tables at any moment, whoever has died meanwhile, as one query an invariant.

Some invariants hold only when changes are reconciled (:mod:`neardup.store.change_feed`). The duplicates of a
page that has changed stay its own until the end of the crawl that noticed, or of the next one. A page is
open while nobody has reconciled its batch, or while the crawl that wrote the page has not ended. A row that
breaks an invariant of this kind is *pending* while one of its pages is open. Otherwise the row is broken.

Queries join by keys only. Rows are read as they come: time grows with the rows, memory with the examples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import BigInteger, and_, exists, false, func, or_, select, true
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from neardup.address import Address
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.rule import Evidence
from neardup.detection.verdict import CANONICAL, COMPARED, Kind
from neardup.fingerprint.hamming import FINGERPRINT_BITS
from neardup.store.page_links import are_damaged
from neardup.store.schema import (
    crawls,
    duplicate_values,
    page_links,
    page_ranks,
    page_versions,
    rule_effects,
    simhash_values,
    url_rules,
)
from neardup.store.statements import BATCHES_PER_CRAWL
from neardup.store.url_rules import ROUNDING, key_of_rule
from neardup.urls.effects import Effect
from neardup.urls.rules import Rule as UrlRule
from neardup.urls.rules import Slot, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Select
    from sqlalchemy.sql.base import ReadOnlyColumnCollection
    from sqlalchemy.sql.compiler import SQLCompiler

    Columns = ReadOnlyColumnCollection[str, Any]

_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Invariant:
    """``query`` finds the rows that break the invariant, or only rows that may.

    ``is_broken`` (rows to bools) then tells which rows do. The column ``pending``, where there is one, says
    whether the next crawl is to reconcile the row.
    """

    name: str
    meaning: str
    query: Select[Any]
    is_broken: Callable[[Sequence[Any]], Sequence[bool]] | None = None


@dataclass(slots=True)
class Finding:
    """Rows that break an invariant, or wait to be reconciled: how many, and the first of them."""

    name: str
    meaning: str
    rows: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Found:
    """What is broken, and what is left to the next crawl."""

    invariants: int
    broken: list[Finding] = field(default_factory=list)
    pending: list[Finding] = field(default_factory=list)


def check(connection: Connection, distances: Mapping[int, int], *, limit: int) -> Found:
    """Check all invariants; ``distances``: the largest of each crawl's rule, by crawl; ``limit``: examples
    of each.

    The connection should see one state of the tables (:func:`neardup.store.transfer.snapshot_of`): a crawl
    may be writing.
    """
    invariants = [*INVARIANTS, _within_the_rule(distances)]
    found = Found(len(invariants))
    for invariant in (*invariants, *UNFINISHED):
        broken = Finding(invariant.name, invariant.meaning)
        pending = Finding(invariant.name, invariant.meaning)
        for row in _rows(connection, invariant):
            told = dict(row._mapping)
            finding = pending if told.pop("pending", False) else broken
            finding.rows += 1
            if len(finding.examples) < limit:
                finding.examples.append(told)
        found.broken += [broken] if broken.rows else []
        found.pending += [pending] if pending.rows else []
    return found


def _rows(connection: Connection, invariant: Invariant) -> Iterator[Any]:
    result = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(invariant.query)
    for rows in result.partitions():
        wrong = [True] * len(rows) if invariant.is_broken is None else invariant.is_broken(rows)
        yield from (row for row, is_wrong in zip(rows, wrong, strict=True) if is_wrong)


_crawl, _page, _relation, _version = crawls.c, simhash_values.c, duplicate_values.c, page_versions.c
_rule, _effect, _links, _rank = url_rules.c, rule_effects.c, page_links.c, page_ranks.c
_duplicate_table, _canonical_table = simhash_values.alias("duplicate"), simhash_values.alias("canonical")
_duplicate, _canonical = _duplicate_table.c, _canonical_table.c
_its_relation = duplicate_values.alias("its_relation")


class _quotient(FunctionElement[int]):  # noqa: N801  # a function of SQL
    """The quotient of two integers, rounded down; MySQL's ``/`` rounds to some decimals."""

    type = BigInteger()
    inherit_cache = True


@compiles(_quotient)
def _divided(element: _quotient, compiler: SQLCompiler, **options: Any) -> str:
    dividend, divisor = (compiler.process(clause, **options) for clause in element.clauses)
    return f"({dividend} {'DIV' if compiler.dialect.name == 'mysql' else '/'} {divisor})"


def _is_unreconciled(page: Columns) -> ColumnElement[bool]:
    """Whether a page was written in a batch that nobody has reconciled."""
    return _was_written(page, _crawl.reconciled_batches < page.batch_id % BATCHES_PER_CRAWL)


def _is_open(page: Columns) -> ColumnElement[bool]:
    """Whether a page was written in such a batch, or by a crawl that has not ended."""
    unreconciled = _crawl.reconciled_batches < page.batch_id % BATCHES_PER_CRAWL
    return _was_written(page, or_(unreconciled, _crawl.finished_at.is_(None)))


def _was_written(page: Columns, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether a page was written last by a crawl of this condition."""
    return exists().where(_crawl.id == _quotient(page.batch_id, BATCHES_PER_CRAWL), condition)


def _relations(*columns: ColumnElement[Any]) -> Select[Any]:
    """Relations with both of their pages."""
    pending = or_(_is_open(_duplicate), _is_open(_canonical)).label("pending")
    return (
        select(_relation.duplicate_hash_id, _relation.actual_hash_id, *columns, pending)
        .join_from(duplicate_values, _duplicate_table, _duplicate.id == _relation.duplicate_hash_id)
        .join(_canonical_table, _canonical.id == _relation.actual_hash_id)
    )


def _more_than_once(key: ColumnElement[Any], *shown: ColumnElement[Any]) -> Select[Any]:
    return select(*shown, func.count().label("rows")).group_by(key).having(func.count() > 1)


def _distances_differ(rows: Sequence[Any]) -> Sequence[bool]:
    ends = np.array([(row.duplicate_value, row.canonical_value) for row in rows], dtype=np.uint64)
    recorded = np.array([row.hamming_distance for row in rows])
    differs: list[bool] = (np.bitwise_count(ends[:, 0] ^ ends[:, 1]) != recorded).tolist()
    return differs


def _keys_differ(rows: Sequence[Any]) -> Sequence[bool]:
    return [bytes(row.url_key) != Address(row.actual_url).key for row in rows]


def _links_are_damaged(rows: Sequence[Any]) -> Sequence[bool]:
    numbers = are_damaged([row.numbers for row in rows])
    links = are_damaged([row.links for row in rows])
    return [either or other for either, other in zip(numbers, links, strict=True)]


def _rule_keys_differ(rows: Sequence[Any]) -> Sequence[bool]:
    return [
        bytes(row.rule_key) != key_of_rule(UrlRule(row.host, row.slot, row.value, row.context))
        for row in rows
    ]


_KINDS = [kind.value for kind in Kind if kind is not Kind.NOT_HTML]
_OF_THE_TEXT = (_page.hash_value, _page.weak_bits, _page.sketch, _page.text_digest)
_first_crawl = crawls.alias("first_crawl")

INVARIANTS = (
    Invariant(
        "duplicates have a relation",
        "Every page of the kind duplicate has a relation to its canonical page.",
        select(_page.id)
        .join_from(simhash_values, duplicate_values, _relation.duplicate_hash_id == _page.id, isouter=True)
        .where(_page.kind == Kind.DUPLICATE.value, _relation.id.is_(None)),
    ),
    Invariant(
        "relations are of duplicates",
        "Every relation is that of a page of the kind duplicate.",
        select(_relation.duplicate_hash_id, _page.kind)
        .join_from(duplicate_values, simhash_values, _page.id == _relation.duplicate_hash_id)
        .where(_page.kind != Kind.DUPLICATE.value),
    ),
    Invariant(
        "one relation a page",
        "No page has two relations.",
        _more_than_once(_relation.duplicate_hash_id, _relation.duplicate_hash_id),
    ),
    Invariant(
        "pages of relations are there",
        "Both pages of every relation are stored.",
        select(_relation.duplicate_hash_id, _relation.actual_hash_id).where(
            or_(
                ~exists().where(_page.id == _relation.duplicate_hash_id),
                ~exists().where(_page.id == _relation.actual_hash_id),
            )
        ),
    ),
    Invariant(
        "clusters are stars",
        "No canonical page of a relation is itself a duplicate, gone or too short.",
        _relations(_canonical.kind).where(_canonical.kind.not_in([kind.value for kind in CANONICAL])),
    ),
    Invariant(
        "distances are true",
        "The distance of every relation is the number of bits in which the stored fingerprints differ.",
        _relations(
            _relation.hamming_distance,
            _duplicate.hash_value.label("duplicate_value"),
            _canonical.hash_value.label("canonical_value"),
        ).where(_duplicate.hash_value.is_not(None), _canonical.hash_value.is_not(None)),
        _distances_differ,
    ),
    Invariant(
        "percentages are true",
        "The percentage of every relation is that of its distance.",
        select(_relation.duplicate_hash_id, _relation.hamming_distance, _relation.percentage).where(
            func.abs(
                _relation.percentage
                - (FINGERPRINT_BITS - _relation.hamming_distance) * (100.0 / FINGERPRINT_BITS)
            )
            > 1e-9
        ),
    ),
    Invariant(
        "evidence is known",
        "The evidence of every relation is one that a relation can have.",
        select(_relation.duplicate_hash_id, _relation.evidence).where(
            _relation.evidence.not_in([evidence.value for evidence in Evidence])
        ),
    ),
    Invariant(
        "fingerprints are there",
        "Every canonical page and every duplicate has a fingerprint, its weak bits, a sketch and a digest.",
        select(_page.id, _page.kind).where(
            or_(*(column.is_(None) for column in _OF_THE_TEXT)),
            _page.kind.in_([kind.value for kind in COMPARED]),
        ),
    ),
    Invariant(
        "kinds are known",
        "The kind of every page is one that a page can have.",
        select(_page.id, _page.kind).where(_page.kind.not_in(_KINDS)),
    ),
    Invariant(
        "one page an address",
        "No address is stored twice.",
        _more_than_once(_page.url_key, func.min(_page.id).label("id")),
    ),
    Invariant(
        "keys are those of the addresses",
        "The key of every page is the digest of its address.",
        select(_page.id, _page.actual_url, _page.url_key),
        _keys_differ,
    ),
    Invariant(
        "one scheme",
        "All crawls, and the pages that they stored last, have one scheme.",
        select(_page.id, _page.scheme, _crawl.scheme.label("crawl_scheme"))
        .join_from(simhash_values, crawls, _crawl.id == _page.last_crawl_id)
        .where(
            or_(
                _page.scheme != _crawl.scheme,
                _crawl.scheme != select(func.min(crawls.alias("any").c.scheme)).scalar_subquery(),
            )
        ),
    ),
    Invariant(
        "crawls of pages are there",
        "The first and the last crawl of every page is one of the crawls.",
        select(_page.id, _page.crawl_id, _page.last_crawl_id).where(
            or_(
                ~exists().where(_crawl.id == _page.crawl_id),
                ~exists().where(_crawl.id == _page.last_crawl_id),
            )
        ),
    ),
    Invariant(
        "crawls of relations are there",
        "The crawl that found a relation is one of the crawls.",
        select(_relation.duplicate_hash_id, _relation.crawl_id).where(
            ~exists().where(_crawl.id == _relation.crawl_id)
        ),
    ),
    Invariant(
        "versions belong to pages and crawls",
        "Every version is one of a page that is stored, seen by a crawl that is.",
        select(_version.id, _version.page_id, _version.crawl_id).where(
            or_(
                ~exists().where(_page.id == _version.page_id), ~exists().where(_crawl.id == _version.crawl_id)
            )
        ),
    ),
    Invariant(
        "links belong to pages and crawls",
        "Links are stored of pages that are stored, by crawls that are.",
        select(_links.page_id, _links.crawl_id).where(
            or_(~exists().where(_page.id == _links.page_id), ~exists().where(_crawl.id == _links.crawl_id))
        ),
    ),
    Invariant(
        "links can be read",
        "The links of every page are whole numbers in their order.",
        select(_links.page_id, _links.crawl_id, _links.numbers, _links.links),
        _links_are_damaged,
    ),
    Invariant(
        "ranks belong to pages",
        "Every PageRank is one of a page that is stored, and above 0.",
        select(_rank.page_id, _rank.pagerank).where(
            or_(~exists().where(_page.id == _rank.page_id), _rank.pagerank <= 0.0)
        ),
    ),
    Invariant(
        "visits are in order",
        "No page was last seen before it was first seen.",
        select(_page.id, _page.first_seen, _page.last_seen).where(_page.last_seen < _page.first_seen),
    ),
    Invariant(
        "crawls are in order",
        "No crawl ended before it began.",
        select(_crawl.id, _crawl.started_at, _crawl.finished_at).where(
            _crawl.finished_at < _crawl.started_at
        ),
    ),
    Invariant(
        "crawls of pages are in order",
        "The last crawl of a page has not ended before its first crawl began.",
        select(_page.id, _page.crawl_id, _page.last_crawl_id)
        .join_from(simhash_values, crawls, _crawl.id == _page.last_crawl_id)
        .join(_first_crawl, _first_crawl.c.id == _page.crawl_id)
        .where(_page.last_crawl_id < _page.crawl_id, _crawl.finished_at < _first_crawl.c.started_at),
    ),
    Invariant(
        "ids are those of the first crawl",
        "The id of a page is one that its first crawl gave out, or a crawl that has been removed.",
        select(_page.id, _page.crawl_id)
        .join_from(simhash_values, crawls, _crawl.id == _quotient(_page.id, PAGES_PER_CRAWL))
        .where(or_(_page.crawl_id != _crawl.id, _page.id % PAGES_PER_CRAWL == 0)),
    ),
    Invariant(
        "batches are counted",
        "No page was written in a batch that its crawl has not counted.",
        select(_page.id, _page.batch_id, _crawl.batches)
        .join_from(simhash_values, crawls, _crawl.id == _quotient(_page.batch_id, BATCHES_PER_CRAWL))
        .where(_page.batch_id % BATCHES_PER_CRAWL > _crawl.batches),
    ),
    Invariant(
        "reconciled batches are written",
        "No crawl has more batches reconciled than it has written.",
        select(_crawl.id, _crawl.batches, _crawl.reconciled_batches).where(
            _crawl.reconciled_batches > _crawl.batches
        ),
    ),
    Invariant(
        "crawls that have ended are shared",
        "Other crawls see the pages of every crawl that has ended.",
        select(_crawl.id, _crawl.shared).where(_crawl.finished_at.is_not(None), _crawl.shared == 0),
    ),
    Invariant(
        "rules are known",
        "The slot and the state of every rule of URLs are such as a rule can have.",
        select(_rule.host, _rule.slot, _rule.value, _rule.context, _rule.state).where(
            or_(
                _rule.slot.not_in([slot.value for slot in Slot]),
                _rule.state.not_in([state.value for state in State]),
            )
        ),
    ),
    Invariant(
        "keys of rules are those of what they say",
        "The key of every rule of URLs is the digest of its host, slot, value and context.",
        select(_rule.rule_key, _rule.host, _rule.slot, _rule.value, _rule.context),
        _rule_keys_differ,
    ),
    Invariant(
        "hits of rules are trials",
        "No rule of URLs has fewer trials than hits, nor fewer hits than none.",
        select(_rule.host, _rule.slot, _rule.value, _rule.context, _rule.trials, _rule.hits).where(
            or_(_rule.hits < 0.0, _rule.hits > _rule.trials * (1.0 + ROUNDING))
        ),
    ),
    Invariant(
        "crawls of rules are there",
        "The crawl that stored the trials of a rule of URLs is one of the crawls.",
        select(_rule.host, _rule.slot, _rule.value, _rule.context, _rule.crawl_id).where(
            _rule.crawl_id.is_not(None), ~exists().where(_crawl.id == _rule.crawl_id)
        ),
    ),
    Invariant(
        "effects belong to rules and crawls",
        "What came of a rule of URLs is that of a rule and of a crawl that are stored, and below 0 nowhere.",
        select(_effect.rule_key, _effect.crawl_id).where(
            or_(
                ~exists().where(_rule.rule_key == _effect.rule_key),
                ~exists().where(_crawl.id == _effect.crawl_id),
                *(_effect[name] < 0 for name in Effect._fields),
            )
        ),
    ),
)

UNFINISHED = (
    Invariant(
        "crawls have ended",
        "A crawl that has not is running, or was killed.",
        select(_crawl.id, _crawl.started_at, true().label("pending")).where(_crawl.finished_at.is_(None)),
    ),
    Invariant(
        "pages are reconciled",
        "A page that is not is compared with all others at the end of the next crawl.",
        select(_page.id, _page.kind, true().label("pending")).where(_is_unreconciled(_page)),
    ),
)
"""What a crawl that runs, or was killed, has left open: always pending, never broken."""


_IS_DECIDED = func.coalesce(_relation.evidence, "") == Evidence.DECISION.value
"""Somebody has said so, whatever the rule says."""


def _within_the_rule(distances: Mapping[int, int]) -> Invariant:
    """A relation keeps the crawl that found it first, though a later crawl may have measured it anew.

    So a relation is within the distance of one of these crawls. What is rare may have decided beside the
    distance, and its resemblance is not stored.
    """
    loosest, limits = 0, list[tuple[int, int]]()
    for crawl_id in sorted(distances, reverse=True):
        loosest = max(loosest, distances[crawl_id])
        limits.append((crawl_id, loosest))
    broken: list[ColumnElement[bool]] = [false()]
    for distance, group in groupby(limits, key=lambda limit: limit[1]):
        crawl_ids = [crawl_id for crawl_id, _ in group]
        of_these = _relation.crawl_id.between(crawl_ids[-1], crawl_ids[0])
        broken.append(and_(of_these, _relation.hamming_distance > distance, ~_IS_DECIDED))
    return Invariant(
        "relations are within the rule",
        "Every relation is within the distance of the crawl that found it, or of a later one.",
        select(
            _relation.duplicate_hash_id,
            _relation.hamming_distance,
            _relation.resemblance,
            _relation.evidence,
            _relation.crawl_id,
        ).where(or_(*broken)),
    )
