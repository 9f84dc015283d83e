"""What people have decided, as crawls and elections read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from neardup.detection.decisions import Decision, Decisions
from neardup.store.schema import decisions

if TYPE_CHECKING:
    from sqlalchemy import Connection


def load_decisions(connection: Connection) -> Decisions:
    """All decisions that hold."""
    found = Decisions()
    query = select(decisions.c.decision, decisions.c.page_key, decisions.c.other_key).where(
        decisions.c.undone_at.is_(None)
    )
    for decision, page, other in connection.execute(query.order_by(decisions.c.id)):
        found.add(Decision(decision), bytes(page), None if other is None else bytes(other))
    return found
