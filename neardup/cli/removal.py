"""What removing a crawl and pruning share: the refusal while a crawl runs, and what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.cli.progress import Progress, interruptible, number
from neardup.errors import NeardupError
from neardup.store import removal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.store.removal import Removed, ToRemove


def refuse_while_running(running: list[int], what: str) -> None:
    """NeardupError if there are running crawls, which know pages that are about to go."""
    if running:
        ids = ", ".join(map(str, running))
        raise NeardupError(
            f"crawl {ids} seems to be running: it would miss what is removed, and what it finds about that"
            " would not be"
            f" stored. Wait for its end, or {what} with --yes if it has died"
        )


def in_words(found: ToRemove) -> str:
    """What would be removed."""
    text = f"{number(found.pages, 'page')}, {found.duplicates:,} of them duplicates"
    if found.left_behind:
        text += (
            f"; {number(found.canonical_with_others, 'canonical page')} among them"
            f" {'has' if found.canonical_with_others == 1 else 'have'}"
            f" {number(found.left_behind, 'duplicate')} that"
            " stay, of which new canonical pages are elected"
        )
    return text


def carry_out(batches: Iterator[Removed], total: int) -> str:
    """Remove with progress; what has been done, in words."""
    progress = Progress("pages", total)
    removed = removal.Removed()
    with interruptible("what is removed is removed; the same command goes on from there"):
        for removed in batches:
            progress(removed.pages)
    text = f"removed {number(removed.pages, 'page')}, {removed.duplicates:,} of them duplicates"
    if removed.elected.canonical:
        text += (
            f"; elected {number(removed.elected.canonical, 'new canonical page')}, with"
            f" {number(removed.elected.duplicates, 'duplicate')}"
        )
    return text
