"""What crawls have learned of URLs, as it is stored: a row a rule (:mod:`neardup.urls.rules`).

Crawls that run at once learn each for itself. Of two of them, the row of the crawl with more trials stays. A
crawl may always replace its own row, and the row that it began with: a rule that is revoked has few trials.

People decide, too: a rule is pinned, banned or revoked by hand. Each such decision is counted in the row. A
crawl that does not know of the last decision leaves the row as it is.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import UTC, datetime
from itertools import accumulate
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, select

from neardup.address import host_of, key_of
from neardup.store.schema import rule_effects, simhash_values, url_rules
from neardup.store.statements import in_parts, upsert_effect, upsert_rule
from neardup.store.types import storable, stored_host
from neardup.urls.effects import Effect, Effects
from neardup.urls.evidence import MIN_TRIALS
from neardup.urls.host_rules import MOST_CONTEXTS
from neardup.urls.learner import MOST_HOSTS, MOST_RULES, Learner
from neardup.urls.rules import LearnedRule, Rule, Slot, State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from sqlalchemy import Connection, Insert, Select

logger = logging.getLogger(__name__)

BY_HAND = frozenset({State.PINNED, State.BANNED})

_SECONDS = 60.0
"""Between two looks at the rules of a crawl that runs.

With very many rules the time is longer, so that the looks take a hundredth of it.
"""

_ROWS_AT_ONCE = 500
_HOSTS_AT_ONCE = 20
"""A host may have thousands of rules."""

ROUNDING = 1e-9
"""By so much of themselves the trials may be fewer than the hits."""

KEY_DIGITS = 32
"""Hexadecimal digits of a whole key."""

NO_EFFECT = Effect()


class StoredRule(NamedTuple):
    """A rule as it is stored.

    - ``crawl_id``: the crawl that stored the trials; None if there was none, or it has been removed.
    - ``decisions``: how often somebody has set the state by hand.
    - ``updated_at``: when the row was stored; None if that has not been read.
    - ``effect``: what came of the rule, in the crawl that stores it. Of a rule that is read, in all crawls.
    """

    learned: LearnedRule
    crawl_id: int | None = None
    decisions: int = 0
    updated_at: datetime | None = None
    effect: Effect = NO_EFFECT

    @property
    def key(self) -> bytes:
        """See :func:`key_of_rule`."""
        return key_of_rule(self.learned.rule)


def key_of_rule(rule: Rule) -> bytes:
    """16-byte digest of all that a rule says: the key of its row."""
    return key_of("\x00".join(rule).encode())  # no part of a rule that can be stored has a NUL


def is_storable(rule: Rule) -> bool:
    """Whether the tables can name a rule as it is; one that they cannot name is learned by each crawl."""
    return stored_host(rule.host) == rule.host and all(storable(part) == part for part in rule)


class UrlRules:
    """The learner of a crawl, what came of its rules, and what of both is stored as it is."""

    def __init__(self) -> None:
        self.learner = Learner()
        self.effects = Effects()
        self._stored: dict[Rule, StoredRule] = {}
        self._next_look = monotonic() + _SECONDS

    def begin_with(self, rules: Iterable[StoredRule]) -> None:
        """Have a crawl that begins know what is stored."""
        self._stored = {stored.learned.rule: stored for stored in rules}
        self.learner = Learner.from_rules(stored.learned for stored in self._stored.values())

    def to_store(self, *, all_changed: bool = False) -> dict[Rule, StoredRule]:
        """The rules that have changed since they were stored or loaded: all of them, or none if the last look
        was a short time ago.

        A rule that is not stored yet is left out while it has too few trials to count, and nothing has come
        of it. Another thread may learn meanwhile. Rules that this call does not come to are left to the next
        call.
        """
        started = monotonic()
        if not all_changed and started < self._next_look:
            return {}
        found: dict[Rule, StoredRule] = {}
        with suppress(RuntimeError):  # a host or a rule was met while they were listed
            for learned in self._learned():
                effect, known = self.effects.of(learned.rule), self._stored.get(learned.rule)
                if known is None:
                    few = learned.state is State.LEARNING and learned.trials < MIN_TRIALS
                    if (few and effect == NO_EFFECT) or not is_storable(learned.rule):
                        continue
                    known = StoredRule(learned)
                elif (known.learned, known.effect) == (learned, effect):
                    continue
                new = known._replace(learned=learned, effect=effect)
                found[learned.rule] = self._stored[learned.rule] = new
        ended = monotonic()
        self._next_look = ended + max(_SECONDS, 100 * (ended - started))
        return found

    def _learned(self) -> Iterator[LearnedRule]:
        """What the learner knows; and rules that predict before their first trial, such as of ``www.``."""
        yield from self.learner.rules()
        for rule in self.effects.rules():
            if not self.learner.knows(rule):
                yield LearnedRule(rule, 0.0, 0.0, 0, 0, State.LEARNING)


def store_rules(
    connection: Connection, upsert: Insert, crawl_id: int, changed: Mapping[Rule, StoredRule]
) -> None:
    """Store the rules of a crawl, but for those of which the tables know more; and what came of all of them.

    ``changed``: each as the crawl knows it, with crawl and decisions of the row that the crawl began with.
    """
    now = datetime.now(UTC)
    rows = {stored.key: stored for stored in changed.values()}
    column = url_rules.c
    for keys in in_parts(sorted(rows), _ROWS_AT_ONCE):  # all crawls lock the rows in the same order
        query = (
            select(column.rule_key, column.crawl_id, column.decisions, column.trials)
            .where(column.rule_key.in_(keys))
            .order_by(column.rule_key)
            .with_for_update()
        )
        there = {bytes(row.rule_key): row for row in connection.execute(query)}
        wins = [
            _row(rows[key]._replace(crawl_id=crawl_id), now)
            for key in keys
            if key not in there or _may_replace(rows[key], there[key], crawl_id)
        ]
        if wins:
            connection.execute(upsert, wins)
        effects = [
            {"rule_key": key, "crawl_id": crawl_id, **rows[key].effect._asdict()}
            for key in keys
            if rows[key].effect != NO_EFFECT
        ]
        if effects:
            connection.execute(upsert_effect(connection.dialect.name), effects)


def _may_replace(ours: StoredRule, there: Any, crawl_id: int) -> bool:
    if there.decisions > ours.decisions:
        return False
    return there.crawl_id in {crawl_id, ours.crawl_id} or bool(ours.learned.trials >= there.trials)


def load_rules(connection: Connection, rules: UrlRules) -> None:
    """Have a crawl that begins know the rules of the hosts that were learned of last, as many as the learner
    remembers.

    Of a host with too many rules those by hand and those with most trials are taken. A row that cannot be
    read is as good as none. One warning says how many there are.
    """
    host = url_rules.c.host
    query = select(host, func.count()).group_by(host).order_by(func.max(url_rules.c.updated_at).desc(), host)
    counts = connection.execute(query.limit(MOST_HOSTS)).all()
    sums = accumulate(min(count, MOST_CONTEXTS) for _, count in counts)
    hosts = [name for (name, _), rules_so_far in zip(counts, sums, strict=True) if rules_so_far <= MOST_RULES]
    found: list[StoredRule] = []
    damaged = 0
    for some in in_parts(reversed(hosts), _HOSTS_AT_ONCE):  # the first are forgotten first
        by_host: dict[str, list[StoredRule]] = {name: [] for name in some}
        for stored in _read(connection, select(url_rules).where(host.in_(some))):
            if stored is None:
                damaged += 1
            else:
                by_host[stored.learned.rule.host].append(stored)
        for of_host in by_host.values():
            of_host.sort(key=lambda stored: (stored.learned.state not in BY_HAND, -stored.learned.trials))
            found += of_host[:MOST_CONTEXTS]
    if damaged:
        logger.warning(
            "neardup: %(damaged)d rules of URLs cannot be read, and are learned anew; neardup db check tells"
            " which",
            {"damaged": damaged},
        )
    rules.begin_with(found)


def stored_rules(
    connection: Connection, *, host: str | None = None, states: Collection[State] = ()
) -> Iterator[StoredRule]:
    """Rules by host, those with most trials first; ``host``, ``states``: only these. Rows that cannot be read
    are left out.
    """
    column = url_rules.c
    query = _with_effects().order_by(column.host, column.trials.desc(), column.rule_key)
    if host is not None:
        query = query.where(column.host == stored_host(host))
    if states:
        query = query.where(column.state.in_([state.value for state in states]))
    yield from (stored for stored in _read(connection, query) if stored is not None)


def effects_by_crawl(connection: Connection, rule: Rule) -> dict[int, Effect]:
    """What came of a rule, by crawl."""
    effect = rule_effects.c
    query = select(effect.crawl_id, *(effect[name] for name in Effect._fields))
    found = connection.execute(query.where(effect.rule_key == key_of_rule(rule)).order_by(effect.crawl_id))
    return {crawl_id: Effect(*numbers) for crawl_id, *numbers in found}


def rules_about(connection: Connection, url: str) -> list[StoredRule]:
    """The active and pinned rules about parts of a URL, of each part the most special one."""
    stored = {one.learned.rule: one for one in stored_rules(connection, host=host_of(url))}
    learner = Learner.from_rules(one.learned for one in stored.values())
    return [stored[about.rule] for about in learner.rules_about(url)]


def rules_of_key(connection: Connection, digits: str) -> list[StoredRule]:
    """The rules whose keys begin with these hexadecimal digits, in the order of the keys."""
    key = url_rules.c.rule_key
    first, last = (bytes.fromhex(digits.ljust(KEY_DIGITS, fill)) for fill in "0f")
    query = _with_effects().where(key.between(first, last)).order_by(key)
    return [stored for stored in _read(connection, query) if stored is not None]


def hosts_of_pages(connection: Connection) -> set[str]:
    """The hosts of which pages are stored."""
    return set(connection.execute(select(simhash_values.c.host).distinct()).scalars())


def decide(connection: Connection, rules: Iterable[Rule], state: State) -> None:
    """Pin, ban or revoke rules by hand, whether they are stored or not.

    A learner tells what follows for others: with a rule that is revoked, what rests on the rule is doubted.
    """
    by_host: dict[str, list[Rule]] = {}
    for rule in rules:
        by_host.setdefault(rule.host, []).append(rule)
    upsert = upsert_rule(connection.dialect.name)
    for host in sorted(by_host):
        query = select(url_rules).where(url_rules.c.host == host).order_by(url_rules.c.rule_key)
        found = _read(connection, query.with_for_update())
        before = {stored.learned.rule: stored for stored in found if stored is not None}
        learner = Learner.from_rules(stored.learned for stored in before.values())
        for rule in by_host[host]:
            {State.PINNED: learner.pin, State.BANNED: learner.ban, State.REVOKED: learner.revoke}[state](rule)
        now = datetime.now(UTC)
        decided = set(by_host[host])
        rows = []
        for learned in learner.rules():
            stored = before.get(learned.rule, StoredRule(learned))
            if learned.rule in decided or stored.learned != learned:
                new = stored._replace(learned=learned, decisions=stored.decisions + 1)
                rows.append(_row(new, now))
        connection.execute(upsert, rows)


def _with_effects() -> Select[Any]:
    """The query of all rules, with what came of each in all crawls."""
    effect = rule_effects.c
    sums = [func.sum(effect[name]).label(name) for name in Effect._fields]
    of_rule = select(effect.rule_key, *sums).group_by(effect.rule_key).subquery()
    return select(url_rules, *(of_rule.c[name] for name in Effect._fields)).join_from(
        url_rules, of_rule, of_rule.c.rule_key == url_rules.c.rule_key, isouter=True
    )


def _row(stored: StoredRule, now: datetime) -> dict[str, Any]:
    learned = stored.learned
    return {
        "rule_key": stored.key,
        **learned.rule._asdict(),
        "slot": learned.rule.slot.value,
        "trials": learned.trials,
        "hits": learned.hits,
        "clusters": learned.clusters,
        "directories": learned.directories,
        "state": learned.state.value,
        "example_url": storable(learned.example),
        "partner_url": storable(learned.partner),
        "crawl_id": stored.crawl_id,
        "decisions": stored.decisions,
        "updated_at": now,
    }


def _read(connection: Connection, query: Select[Any]) -> Iterator[StoredRule | None]:
    """The rules of a query of rows, maybe with what came of them; None for a row that cannot be read."""
    for row in connection.execute(query, execution_options={"yield_per": _ROWS_AT_ONCE}):
        try:
            rule = Rule(row.host, Slot(row.slot), row.value, row.context)
            state = State(row.state)
        except ValueError:
            yield None
            continue
        if not 0.0 <= row.hits <= row.trials * (1.0 + ROUNDING):
            yield None
            continue
        learned = LearnedRule(
            rule,
            row.trials,
            row.hits,
            row.clusters,
            row.directories,
            state,
            row.example_url,
            row.partner_url,
        )
        effect = Effect(*(int(getattr(row, name, None) or 0) for name in Effect._fields))
        yield StoredRule(learned, row.crawl_id, row.decisions, row.updated_at, effect)
