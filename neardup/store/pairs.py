"""Pairs of near-copies that two crawls had both called new, on their way into the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.fingerprint import hamming
from neardup.store import statements

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.sql.dml import Insert

_ENDS = ("duplicate_hash_id", "actual_hash_id")


def store_pairs(
    connection: Connection, rows: list[dict[str, Any]], upsert: Insert, batch_id: int
) -> tuple[list[dict[str, Any]], set[int]]:
    """Store the relations that still are as they were compared: other crawls may have changed their pages
    since.

    Returns them, and the ids of the pages of the others.
    """
    ids = {row[end] for row in rows for end in _ENDS}
    values = {
        page_id: value
        for page_id, value in connection.execute(statements.VALUES, {"ids": sorted(ids)})
        if value is not None
    }
    true = [row for row in rows if _still_holds(row, values)]
    duplicates = {row["duplicate_hash_id"] for row in true}
    if true:
        connection.execute(upsert, true)
        connection.execute(statements.SET_DUPLICATE, {"ids": sorted(duplicates), "batch": batch_id})
    return true, {row[end] for row in rows if row["duplicate_hash_id"] not in duplicates for end in _ENDS}


def _still_holds(row: dict[str, Any], values: dict[int, int]) -> bool:
    """Whether the pages of a relation have the distance that it says, by the fingerprints that are stored."""
    one, other = (values.get(row[end]) for end in _ENDS)
    return one is not None and other is not None and hamming.distance(one, other) == row["hamming_distance"]
