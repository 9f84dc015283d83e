"""What a database does to answer: the plans of the statements that were run, in one form for all three."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Engine, event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    Statements = list[tuple[str, Any]]

_ALIAS = re.compile(r"\b(simhash_values|duplicate_values|crawls|page_versions) AS (\w+)", re.IGNORECASE)


class Access(NamedTuple):
    """One step of a plan: a table and the index through which it is read, if any; ``whole``: all of its rows
    or entries.
    """

    table: str
    key: str
    whole: bool

    def __str__(self) -> str:
        table = {"simhash_values": "pages", "duplicate_values": "relations"}.get(self.table, self.table)
        return f"{'all of ' if self.whole else ''}{table}{f' by {self.key}' if self.key else ''}"


@contextmanager
def recorded() -> Iterator[Statements]:
    """All that is sent to any database, with its parameters."""
    statements: Statements = []

    def note(
        connection: object, cursor: object, statement: str, parameters: Any, context: object, many: bool
    ) -> None:
        statements.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def plans(connection: Connection, statements: Statements) -> list[Access]:
    """How the tables are read, each way once."""
    explain = _EXPLAIN[connection.dialect.name]
    found = [
        access
        for statement, parameters in statements
        if statement.lstrip().startswith("SELECT") and "information_schema" not in statement
        for access in explain(connection, statement, parameters)
    ]
    return list(dict.fromkeys(found))


def _sqlite(connection: Connection, statement: str, parameters: Any) -> Iterator[Access]:
    names = _names(statement)
    rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
    for *_, detail in rows:
        how, _, rest = str(detail).partition(" ")
        name = rest.split(" ")[0]
        if how in {"SCAN", "SEARCH"} and name in names:
            index = re.search(r"INDEX (\w+)", rest)
            yield Access(names[name], _short(index.group(1)) if index else "", how == "SCAN")


def _postgresql(connection: Connection, statement: str, parameters: Any) -> Iterator[Access]:
    (text,) = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).one()
    plan = text if isinstance(text, list) else json.loads(text)
    nodes = [plan[0]["Plan"]]
    while nodes:
        node = nodes.pop(0)
        nodes += node.get("Plans", [])
        index = node.get("Index Name", "")
        kind = node["Node Type"]
        if "Relation Name" in node and kind != "Bitmap Heap Scan":
            whole = kind == "Seq Scan" or not ("Index Cond" in node or "Filter" in node)
            yield Access(node["Relation Name"], _short(index), whole)
        elif kind == "Bitmap Index Scan":
            yield Access(
                index.removeprefix("ix_").rsplit("_values")[0] + "_values", _short(index), whole=False
            )


def _mysql(connection: Connection, statement: str, parameters: Any) -> Iterator[Access]:
    names = _names(statement)
    for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).mappings():
        if row["table"] in names:
            yield Access(names[row["table"]], _short(row["key"] or ""), row["type"] in {"ALL", "index"})


_EXPLAIN = {"sqlite": _sqlite, "postgresql": _postgresql, "mysql": _mysql}


def _names(statement: str) -> dict[str, str]:
    """Tables by the names that a statement gives them."""
    aliases = {alias: table for table, alias in _ALIAS.findall(statement)}
    return {
        name: name for name in ("simhash_values", "duplicate_values", "crawls", "page_versions")
    } | aliases


def _short(index: str) -> str:
    """The columns of an index, from its name."""
    if index == "PRIMARY" or index.startswith(("pk_", "sqlite_autoindex_crawls")):
        return "id"
    automatic = {"sqlite_autoindex_simhash_values_1": "id", "sqlite_autoindex_simhash_values_2": "url_key"}
    if index.startswith("sqlite_autoindex_duplicate_values"):
        return "duplicate_hash_id"
    return automatic.get(index) or re.sub(r"^(ix|uq|fk)_(simhash|duplicate)_values_", "", index)
