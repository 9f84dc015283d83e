"""Decisions of people: stored, carried out on the tables at once, undone, and read by crawls at their start.

A decision names pages by their keys, so it outlives pages that are removed and crawled again. A newer
decision about the same page, or the same pair, takes the place of the older one. What a decision changes is
marked as of a batch, so that crawls that run follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import and_, delete, func, insert, or_, select, true, update

from neardup.detection.decisions import Decision
from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind
from neardup.errors import StoreError
from neardup.fingerprint import hamming, sketch
from neardup.store import election
from neardup.store.schema import decisions, duplicate_values, simhash_values
from neardup.store.statements import SET_DUPLICATE, count_change, upsert_relation
from neardup.store.types import storable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Row

    from neardup.detection.rule import Rule

LONGEST_NOTE = 10_000
"""Characters."""

_row, _page, _relation = decisions.c, simhash_values.c, duplicate_values.c


MOST_DUPLICATES = 100_000
"""Of a page that ceases to be canonical. Each is judged anew while somebody waits: 50 µs and 2 kB."""


class Refused(StoreError):
    """A decision makes no sense for these pages."""


class Overtaken(StoreError):
    """Somebody else has decided, or a crawl has judged, since the pages were shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """A decision. ``other_*`` are None unless it is about a pair; ``undone_*`` are None while it holds."""

    decision_id: int
    decision: str
    page_key: str
    page_url: str
    other_key: str | None
    other_url: str | None
    note: str
    decided_by: str
    decided_at: datetime
    undone_by: str | None
    undone_at: datetime | None


def listed(
    connection: Connection, *, before: int | None = None, limit: int, undone: bool = True
) -> list[DecisionRow]:
    """Decisions, newest first; ``before``: those with a lower id; ``undone``: also those that were undone."""
    query = select(decisions).where(true() if before is None else _row.id < before)
    if not undone:
        query = query.where(_row.undone_at.is_(None))
    return [_decision_row(row) for row in connection.execute(query.order_by(_row.id.desc()).limit(limit))]


def about(connection: Connection, *keys: bytes) -> list[DecisionRow]:
    """The decisions that hold about a page, or about a pair and each of its pages, newest first."""
    one_of = or_(_row.page_key.in_(keys), _row.other_key.in_(keys))
    query = select(decisions).where(_row.undone_at.is_(None), one_of).order_by(_row.id.desc())
    found = [_decision_row(row) for row in connection.execute(query)]
    if len(keys) == 1:
        return found
    names = {key.hex() for key in keys}
    return [row for row in found if row.other_key is None or {row.page_key, row.other_key} == names]


def state_of(connection: Connection, *keys: bytes) -> str:
    """Equal texts: nothing has been decided or judged of these pages meanwhile."""
    last = connection.execute(
        select(func.max(_row.id), func.max(_row.undone_at)).where(
            or_(_row.page_key.in_(keys), _row.other_key.in_(keys))
        )
    ).one()
    pages = [_standing(connection, page.id) for page in _pages(connection, keys)]
    return "/".join(map(str, (*last, *pages)))


def decide(
    connection: Connection,
    decision: Decision,
    page: bytes,
    other: bytes | None = None,
    *,
    note: str,
    person: str,
    rule: Rule,
    seen: str | None = None,
) -> int:
    """Store a decision and carry it out; returns its id.

    ``seen``: what :func:`state_of` said when the person saw the pages. Raises Overtaken if something has
    changed since, Refused if the decision makes no sense.
    """
    keys = [page] if other is None else [page, other]
    found = {bytes(row.url_key): row for row in _pages(connection, keys, lock=True)}
    if seen is not None and seen != state_of(connection, *keys):
        raise Overtaken("somebody else has decided about these pages meanwhile; look at them again")
    if not found.keys() >= set(keys):
        raise Refused("a decision is about pages that are stored")
    one, two = _pair(connection, decision, found[page], None if other is None else found[other])
    before = _above(connection, one.id)
    if decision is Decision.PIN:
        two = None if before is None else _by_id(connection, before.actual_hash_id)
    now = datetime.now(UTC)
    by = storable(person)[:255]
    _supersede(connection, decision, one, two, {"undone_at": now, "undone_by": by})
    above = None if before is None else _by_id(connection, before.actual_hash_id)
    values = {
        "page_key": one.url_key,
        "page_url": one.actual_url,
        "other_key": None if two is None else two.url_key,
        "other_url": None if two is None else two.actual_url,
        "decision": decision.value,
        "note": storable(note)[:LONGEST_NOTE],
        "decided_by": by,
        "decided_at": now,
        "before_key": None if above is None else above.url_key,
        "before_distance": None if before is None else before.hamming_distance,
        "before_evidence": None if before is None else before.evidence,
    }
    key = connection.execute(insert(decisions).values(values)).inserted_primary_key
    assert key is not None
    _carry_out(connection, decision, one, two, rule)
    return int(key[0])


def undo(connection: Connection, decision_id: int, *, person: str, rule: Rule) -> DecisionRow:
    """Undo a decision. The page gets back the standing that it had, if that still can be.

    Raises Refused if there is no such decision, or it does not hold any more.
    """
    row = connection.execute(select(decisions).where(_row.id == decision_id).with_for_update()).one_or_none()
    if row is None:
        raise Refused(f"there is no decision {decision_id}")
    if row.undone_at is not None:
        raise Overtaken(f"decision {decision_id} has been undone already, by {row.undone_by}")
    undone = update(decisions).where(_row.id == decision_id)
    connection.execute(undone.values(undone_at=datetime.now(UTC), undone_by=storable(person)[:255]))
    page = _by_key(connection, bytes(row.page_key))
    if page is not None and row.decision != Decision.PIN.value:
        above = None if row.before_key is None else _by_key(connection, bytes(row.before_key))
        _give_back(connection, page, above, row, rule)
    return _decision_row(row)


def _pair(
    connection: Connection, decision: Decision, one: Row[Any], two: Row[Any] | None
) -> tuple[Row[Any], Row[Any] | None]:
    """The page that is decided about, and the other page; of a pair the duplicate, or else the later one."""
    if (two is None) is (decision in {Decision.SAME, Decision.DIFFERENT}):
        raise Refused(f"the decision {decision} is about {'two pages' if two is None else 'one page'}")
    if two is None:
        return one, None
    if one.id == two.id:
        raise Refused("these are not two pages but one")
    if _standing(connection, two.id) == one.id:
        return two, one
    related = _standing(connection, one.id) == two.id
    if not related and one.id < two.id:
        one, two = two, one
    if decision is Decision.SAME and (one.hash_value is None or two.hash_value is None):
        raise Refused("a page without words is no duplicate")
    return one, two


def _supersede(
    connection: Connection, decision: Decision, one: Row[Any], two: Row[Any] | None, values: dict[str, Any]
) -> None:
    """What contradicts a new decision does not hold any more; ``values`` say by whom and since when."""
    of_pair = None
    if two is not None:
        keys = (one.url_key, two.url_key)
        of_pair = and_(_row.page_key.in_(keys), _row.other_key.in_(keys))
    of_page = and_(_row.page_key == one.url_key, _row.decision != Decision.DIFFERENT.value)
    if decision is Decision.DIFFERENT:
        assert of_pair is not None
        contradicted = of_pair
    else:
        contradicted = of_page if of_pair is None else or_(of_page, of_pair)
    connection.execute(update(decisions).where(_row.undone_at.is_(None), contradicted).values(values))


def _carry_out(
    connection: Connection, decision: Decision, page: Row[Any], other: Row[Any] | None, rule: Rule
) -> None:
    above = _above(connection, page.id)
    if decision is Decision.SAME:
        assert other is not None
        top = _above(connection, other.id)
        canonical = other if top is None else _by_id(connection, top.actual_hash_id)
        if canonical is not None and canonical.id != page.id:
            _make_duplicate(connection, page, canonical, Evidence.DECISION.value, rule)
    elif decision is Decision.DIFFERENT:
        if above is not None and other is not None and above.actual_hash_id == other.id:
            _make_canonical(connection, page)
    elif decision is Decision.CANONICAL and above is not None:
        head = _by_id(connection, above.actual_hash_id)
        _make_canonical(connection, page)
        if head is not None:
            _make_duplicate(connection, head, page, above.evidence, rule)


def _give_back(
    connection: Connection, page: Row[Any], above: Row[Any] | None, before: Row[Any], rule: Rule
) -> None:
    """The standing before a decision: canonical, or a duplicate of ``above`` if both are as they were."""
    now = _above(connection, page.id)
    if above is None:
        if now is not None and now.evidence == Evidence.DECISION.value:
            _make_canonical(connection, page)
        return
    if now is not None and now.actual_hash_id == above.id and now.evidence != Evidence.DECISION.value:
        return
    as_it_was = (
        page.hash_value is not None
        and above.hash_value is not None
        and hamming.distance(page.hash_value, above.hash_value) == before.before_distance
    )
    of_above = _above(connection, above.id)
    if not as_it_was or (of_above is not None and of_above.actual_hash_id != page.id):
        if now is not None and now.evidence == Evidence.DECISION.value:
            _make_canonical(connection, page)
        return
    if of_above is not None:
        _make_canonical(connection, above)
    _make_duplicate(connection, page, above, before.before_evidence, rule)


def _make_canonical(connection: Connection, page: Row[Any]) -> None:
    connection.execute(delete(duplicate_values).where(_relation.duplicate_hash_id == page.id))
    if page.hash_value is not None:
        values = {"kind": Kind.NEW.value, "batch_id": count_change(connection)}
        connection.execute(update(simhash_values).where(_page.id == page.id).values(values))


def _make_duplicate(
    connection: Connection, page: Row[Any], canonical: Row[Any], evidence: str | None, rule: Rule
) -> None:
    """Whatever hangs on the page finds another canonical page, by the rule."""
    query = select(func.count()).select_from(duplicate_values).where(_relation.actual_hash_id == page.id)
    hanging = connection.execute(query).scalar_one()
    if hanging > MOST_DUPLICATES:
        raise Refused(
            f"{page.actual_url} has {hanging:,} duplicates; at most {MOST_DUPLICATES:,} can be given another"
            " canonical page at once. A decision about a pair, or a pin, is possible"
        )
    distance = hamming.distance(page.hash_value, canonical.hash_value)
    (resemblance,) = sketch.compact_estimates(
        sketch.from_bytes(page.sketch)[np.newaxis], sketch.from_bytes(canonical.sketch)
    )
    change = count_change(connection)
    relation = {
        "actual_hash_id": canonical.id,
        "duplicate_hash_id": page.id,
        "percentage": hamming.percentage(distance),
        "hamming_distance": distance,
        "resemblance": float(resemblance),
        "evidence": evidence,
        "crawl_id": page.last_crawl_id,
        "found_at": datetime.now(UTC),
    }
    connection.execute(upsert_relation(connection.dialect.name), relation)
    connection.execute(SET_DUPLICATE, {"ids": [page.id], "batch": change})
    election.resolve(connection, [page.id], rule, change)


def _pages(connection: Connection, keys: Sequence[bytes], *, lock: bool = False) -> list[Row[Any]]:
    """The pages with these keys, in the order of their ids; ``lock``: nobody else changes them meanwhile."""
    query = select(simhash_values).where(_page.url_key.in_(keys)).order_by(_page.id)
    return list(connection.execute(query.with_for_update() if lock else query))


def _by_key(connection: Connection, key: bytes) -> Row[Any] | None:
    return connection.execute(select(simhash_values).where(_page.url_key == key)).one_or_none()


def _by_id(connection: Connection, page_id: int) -> Row[Any] | None:
    return connection.execute(select(simhash_values).where(_page.id == page_id)).one_or_none()


def _above(connection: Connection, page_id: int) -> Row[Any] | None:
    """The relation of a page to its canonical page."""
    query = select(duplicate_values).where(_relation.duplicate_hash_id == page_id)
    return connection.execute(query).one_or_none()


def _standing(connection: Connection, page_id: int) -> int:
    above = _above(connection, page_id)
    return 0 if above is None else int(above.actual_hash_id)


def _decision_row(row: Row[Any]) -> DecisionRow:
    return DecisionRow(
        decision_id=row.id,
        decision=row.decision,
        page_key=bytes(row.page_key).hex(),
        page_url=row.page_url,
        other_key=None if row.other_key is None else bytes(row.other_key).hex(),
        other_url=row.other_url,
        note=row.note,
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        undone_by=row.undone_by,
        undone_at=row.undone_at,
    )
