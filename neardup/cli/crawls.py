"""``neardup crawls`` lists the crawls that the store knows.

Of the pages that are stored, ``pages_first`` were first seen by the crawl, and ``pages_last`` last seen.
``duplicates`` is what the crawl itself counted, as its log says; it is empty before the end of the crawl.

``neardup crawls remove N`` takes a crawl out again, with all that only this crawl brought. ``neardup crawls
share N`` shows the pages of a crawl to others.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from neardup.cli import database
from neardup.cli.arguments import count
from neardup.cli.output import FORMATS, Section, show_sections
from neardup.cli.removal import carry_out, in_words, refuse_while_running
from neardup.cli.rules import stored_rule
from neardup.errors import NeardupError
from neardup.store import removal, stats

if TYPE_CHECKING:
    from neardup.store.stats import CrawlPages
    from neardup.store.store import Store

_COLUMNS = (
    "crawl",
    "spider",
    "started",
    "finished",
    "reason",
    "shared",
    "pages_first",
    "pages_last",
    "duplicates",
    "scheme",
)
_MOST_NAMED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    verbs = parser.add_subparsers(dest="crawls_verb", metavar="VERB")
    text = "remove a crawl with the pages that only it saw; canonical pages are re-elected"
    remove = verbs.add_parser("remove", help=text, description=text)
    remove.add_argument("crawl", type=count, metavar="N", help="its number, as neardup crawls shows it")
    remove.add_argument(
        "--yes", action="store_true", help="do not ask, even if a crawl has not ended or seems to be running"
    )
    database.add_arguments(remove, default=argparse.SUPPRESS)
    text = "let other crawls see the pages of an unfinished crawl that was kept apart (NEARDUP_SHARE)"
    share = verbs.add_parser("share", help=text, description=text)
    share.add_argument("crawl", type=count, metavar="N", help="its number, as neardup crawls shows it")
    database.add_arguments(share, default=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> None:
    with database.open_store(database.read_options(arguments)) as store:
        if arguments.crawls_verb == "remove":
            _remove(store, arguments.crawl, yes=arguments.yes)
            return
        if arguments.crawls_verb == "share":
            if not store.share_crawl(arguments.crawl):
                with store.reading() as connection:
                    raise _no_such_crawl(store, arguments.crawl, list(removal.crawl_ids(connection)))
            print(f"{store.location}: other crawls see the pages of crawl {arguments.crawl}")
            return
        with store.reading() as connection:
            rows = stats.crawl_pages(connection)
    if arguments.format == "table":
        print(f"{store.location}\n")
    show_sections([Section("crawls", "Crawls", _COLUMNS, [_values(row) for row in rows])], arguments.format)


def _values(row: CrawlPages) -> tuple[object, ...]:
    return (
        row.crawl_id,
        row.spider,
        f"{row.started_at:%Y-%m-%d %H:%M:%S}",
        None if row.finished_at is None else f"{row.finished_at:%Y-%m-%d %H:%M:%S}",
        row.finish_reason or "not finished",
        "yes" if row.shared else "no",
        row.pages_first,
        row.pages_last,
        row.duplicates,
        row.scheme,
    )


def _remove(store: Store, crawl_id: int, *, yes: bool) -> None:
    with store.reading() as connection:
        ended = removal.crawl_ids(connection)
        if crawl_id not in ended:
            raise _no_such_crawl(store, crawl_id, list(ended))
        if not yes:
            if not ended[crawl_id]:
                raise NeardupError(
                    f"crawl {crawl_id} has not ended: it is running, or was killed. Give --yes if it does"
                    " not run any more"
                )
            refuse_while_running(removal.running(connection), "remove it")
        found = removal.to_remove(connection, removal.only_of(crawl_id))
    if not yes:
        _ask(f"{store.location}: remove crawl {crawl_id} with {in_words(found)}")
    done = carry_out(removal.remove_crawl(store, crawl_id, stored_rule(store)), found.pages)
    print(f"{store.location}: {done}; crawl {crawl_id} is gone")


def _ask(question: str) -> None:
    """Go on only if the user agrees."""
    if not sys.stdin.isatty():
        raise NeardupError(f"{question}? Give --yes to do it")
    if input(f"{question}? [y/N] ").strip().lower() not in {"y", "yes"}:
        raise NeardupError("nothing is removed")


def _no_such_crawl(store: Store, crawl_id: int, ids: list[int]) -> NeardupError:
    named = ", ".join(map(str, ids[-_MOST_NAMED:])) or "none at all"
    if len(ids) > _MOST_NAMED:
        named = f"{len(ids)} others, the last of them {named}"
    return NeardupError(f"there is no crawl {crawl_id} in {store.location}, but {named}")
