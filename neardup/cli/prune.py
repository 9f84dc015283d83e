"""``neardup db prune``: remove pages that have not been seen for long."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from neardup.cli import database
from neardup.cli.arguments import utc_time
from neardup.cli.removal import carry_out, in_words, refuse_while_running
from neardup.cli.rules import stored_rule
from neardup.store import removal
from neardup.store.age import parse_age

HELP = "remove pages last seen before a time; canonical pages are re-elected"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument(
        "--older-than",
        required=True,
        type=moment,
        metavar="AGE",
        help="last seen so long ago (12h, 90d, 8w), or before an ISO date or time (UTC)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    parser.add_argument("--yes", action="store_true", help="even if a crawl seems to be running")


def run(arguments: argparse.Namespace) -> None:
    condition = removal.older_than(arguments.older_than)
    before = f"last seen before {arguments.older_than:%Y-%m-%d %H:%M:%S} UTC"
    with database.open_store(database.read_options(arguments)) as store:
        with store.reading() as connection:
            found = removal.to_remove(connection, condition)
            if arguments.dry_run:
                print(f"{store.location}: would remove {in_words(found)} ({before})")
                return
            if not arguments.yes:
                refuse_while_running(removal.running(connection), "prune")
        done = carry_out(removal.remove_pages(store, condition, stored_rule(store)), found.pages)
    print(f"{store.location}: {done} ({before})")


def moment(text: str) -> datetime:
    """The moment that an age or an ISO date means; now, or one to come, would take all pages along."""
    now = datetime.now(UTC)
    try:
        found = now - parse_age(text)
    except (ValueError, OverflowError):
        try:
            found = utc_time(text)
        except ValueError as exc:
            raise argparse.ArgumentTypeError(
                f"{text!r} is neither an age like 12h, 90d or 8w nor a time like 2026-11-21"
            ) from exc
    if found >= now:
        raise argparse.ArgumentTypeError(f"{text!r} does not lie in the past; every page is older than that")
    return found
