"""What removing a crawl and pruning share: the rule for re-elections, the refusal while a crawl runs, and what is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from neardup.commands.progress import Progress, interruptible, number
from neardup.detector import DetectorOptions
from neardup.errors import ConfigurationError, NeardupError
from neardup.features import Features
from neardup.rule import VERIFY, Rule
from neardup.store import removal, stats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.store.removal import Doomed, Removed
    from neardup.store.store import Store


def stored_rule(store: Store) -> Rule:
    """The rule by which the newest crawl judged; what it did not record is as by default."""
    with store.reading() as connection:
        settings: dict[str, Any] = json.loads(stats.newest_settings(connection))
    given = {
        field: settings[name]
        for field, name in (
            ("features", "NEARDUP_FEATURES"),
            ("verify", "NEARDUP_VERIFY"),
            ("max_distance", "NEARDUP_MAX_DISTANCE"),
        )
        if settings.get(name) is not None
    }
    if "max_distance" in given:  # the features are not needed, nor their table
        return Rule(given["max_distance"], given.get("verify", VERIFY))
    try:
        options = DetectorOptions(**given)
        return options.make_rule(Features(options.features))
    except ConfigurationError as exc:
        raise ConfigurationError(f"the rule of the newest crawl cannot be told: {exc}") from exc


def refuse_while_running(running: list[int], what: str) -> None:
    """NeardupError if there are running crawls, which know pages that are about to go."""
    if running:
        ids = ", ".join(map(str, running))
        raise NeardupError(
            f"crawl {ids} seems to be running: it would miss what is removed, and what it finds about that would not be"
            f" stored. Wait for its end, or {what} with --yes if it has died"
        )


def in_words(found: Doomed) -> str:
    """What would be removed."""
    text = f"{number(found.pages, 'page')}, {found.duplicates:,} of them duplicates"
    if found.left_behind:
        text += (
            f"; {number(found.canonical_with_others, 'canonical page')} among them"
            f" {'has' if found.canonical_with_others == 1 else 'have'} {number(found.left_behind, 'duplicate')} that"
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
