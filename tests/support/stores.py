"""Databases with their tables made, what is written to them, and what stands in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from neardup.cli.main import main
from neardup.detection.document_frequencies import DocumentFrequencies
from neardup.store import migrate
from neardup.store.engine import database_url as checked
from neardup.store.engine import make_engine
from neardup.store.schema import document_frequencies, duplicate_values, simhash_values
from neardup.store.url_rules import UrlRules, stored_rules
from neardup.store.writer import Writer
from neardup.text.headline import none

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from neardup.detection.verdict import Verdict
    from neardup.store.page_links import StoredLinks
    from neardup.store.store import Store
    from neardup.store.url_rules import StoredRule
    from neardup.urls.rules import Rule

SHOPS = ("boots", "hats", "coats", "socks")
"""Directories of the sites that a learner is taught."""


def upgraded(url: str) -> str:
    """The database with its tables made, as ``neardup db upgrade`` does it."""
    engine = make_engine(checked(url))
    with engine.begin() as connection:
        migrate.upgrade(connection)
    engine.dispose()
    return url


def copy_store(source: str, target: str, folder: Path) -> None:
    """All rows of a database into another, by ``neardup db export`` and ``import``."""
    file = str(folder / "rows.jsonl")
    assert main(["db", "export", "--database", source, file]) == 0
    assert main(["db", "import", "--database", target, file]) == 0


def write(
    store: Store,
    *verdicts: Verdict,
    crawl: int | None = None,
    links: dict[int, int] | None = None,
    flags: Iterable[int] = (),
    history: bool = False,
    frequencies: DocumentFrequencies | None = None,
    rules: UrlRules | None = None,
    page_links: Mapping[int, StoredLinks] | None = None,
) -> Writer:
    crawl_id = crawl or store.begin_crawl(spider="s", settings={})
    writer = Writer(store, crawl_id, history=history, frequencies=frequencies, rules=rules)
    for verdict in verdicts:
        writer.put(verdict)
    for page_id, number in (links or {}).items():
        writer.links_withheld(page_id, number)
    for page_id, stored in (page_links or {}).items():
        writer.put_links(page_id, stored)
    for page_id in flags:
        writer.flag(page_id)
    writer.put_learned()
    writer.close()
    return writer


def learned(pages: Mapping[str, int]) -> DocumentFrequencies:
    """What is learned of hosts of so many pages, the first tenth of whose shingles is on all of them."""
    frequencies = DocumentFrequencies()
    chance = np.random.default_rng(1)
    for host, number in pages.items():
        template = chance.integers(0, 2**64, 10, dtype=np.uint64)
        for _ in range(number):
            own = chance.integers(0, 2**64, 90, dtype=np.uint64)
            frequencies.count(host, np.concatenate((template, own)), none())
    return frequencies


def frequencies_of(store: Store) -> dict[str, dict[str, Any]]:
    with store.engine.connect() as connection:
        rows = connection.execute(sa.select(document_frequencies)).mappings()
        return {row["host"]: dict(row) for row in rows}


def taught(store: Store | None, *hosts: str, items: int = 20) -> UrlRules:
    """What a crawl has learned that began with what is stored: so many items of each host stand under three
    session ids, and a second parameter chooses the item.
    """
    rules = UrlRules()
    if store is not None:
        store.load_rules(rules)
    for number, host in enumerate(hosts):
        for item in range(items):
            for sid in "abc":
                url = f"http://{host}/{SHOPS[item % 4]}/list.html?id={item}&sid={sid}"
                rules.learner.observe(url, cluster=1 + item + 1_000 * number)
    return rules


def rules_of(store: Store) -> dict[Rule, StoredRule]:
    with store.reading() as connection:
        return {stored.learned.rule: stored for stored in stored_rules(connection)}


def pages_of(store: Store) -> list[dict[str, Any]]:
    with store.engine.connect() as connection:
        return [dict(row) for row in connection.execute(sa.select(simhash_values).order_by("id")).mappings()]


def relations_of(store: Store) -> list[dict[str, Any]]:
    with store.engine.connect() as connection:
        return [
            dict(row) for row in connection.execute(sa.select(duplicate_values).order_by("id")).mappings()
        ]


def relations(store: Store) -> dict[str, str]:
    """Canonical URLs by those of their duplicates."""
    duplicate_page, canonical = simhash_values.alias(), simhash_values.alias()
    query = (
        sa.select(duplicate_page.c.actual_url, canonical.c.actual_url)
        .join_from(
            duplicate_values, duplicate_page, duplicate_page.c.id == duplicate_values.c.duplicate_hash_id
        )
        .join(canonical, canonical.c.id == duplicate_values.c.actual_hash_id)
    )
    with store.reading() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def kinds(store: Store) -> dict[str, str]:
    with store.reading() as connection:
        query = sa.select(simhash_values.c.actual_url, simhash_values.c.kind)
        return {row[0]: row[1] for row in connection.execute(query)}


def fail_twice(store: Store, beginning: str) -> list[str]:
    """Have the first two statements that begin so find the database locked; the list holds them then."""
    failures: list[str] = []

    def listener(connection: object, cursor: object, statement: str, *_: object) -> None:
        if statement.startswith(beginning) and len(failures) < 2:
            failures.append(statement)
            raise sa.exc.OperationalError(statement, {}, Exception("database is locked"))

    sa.event.listen(store.engine, "before_cursor_execute", listener)
    return failures


def before_statement(
    store: Store, is_it: Callable[[str, Any], bool], action: Callable[[], None]
) -> list[str]:
    """Do ``action`` once, just before the first statement that ``is_it``; the list holds the statement
    then.
    """
    met: list[str] = []

    def listener(connection: object, cursor: object, statement: str, values: Any, *_: object) -> None:
        if not met and is_it(statement, values):
            met.append(statement)
            action()

    sa.event.listen(store.engine, "before_cursor_execute", listener)
    return met
