"""``neardup db``: the database as a whole: its tables, its size, old pages, and the way into another
database.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from neardup.cli import arguments as values
from neardup.cli import database, prune, transfer
from neardup.cli.output import Section, show_fields, show_json, show_sections, show_table
from neardup.cli.rules import distances_by_crawl
from neardup.errors import NeardupError
from neardup.store import check, page_report, stats, store
from neardup.store.transfer import snapshot_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from neardup.store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="db_verb", required=True, metavar="VERB")
    for name, (text, add, _) in _VERBS.items():
        add(verbs.add_parser(name, help=text, description=text))


def run(arguments: argparse.Namespace) -> None:
    _VERBS[arguments.db_verb][2](arguments)


def _info(arguments: argparse.Namespace) -> None:
    with database.open_store(database.read_options(arguments)) as opened, opened.reading() as connection:
        sizes = page_report.store_sizes(connection)
        scheme = page_report.stored_scheme(connection)
    print(opened.location)
    show_fields(
        {"scheme": scheme or "none yet", **{f"rows of {name}": f"{rows:,}" for name, rows in sizes.items()}}
    )


def _upgrade(arguments: argparse.Namespace) -> None:
    location = store.upgrade(database.read_options(arguments).database_url)
    print(f"{location}: the tables are those of this version")


def _add_stats_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")


def _stats(arguments: argparse.Namespace) -> None:
    with database.open_store(database.read_options(arguments)) as opened:
        sections = _sections(opened)
    if arguments.format == "table":
        print(f"{opened.location}\n")
    show_sections(sections, arguments.format)


def _add_check_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    parser.add_argument("--limit", type=values.count, default=5, help="rows shown of each (default: 5)")


def _check(arguments: argparse.Namespace) -> None:
    with database.open_store(database.read_options(arguments)) as opened, snapshot_of(opened) as connection:
        found = check.check(
            connection, distances_by_crawl(stats.settings_by_crawl(connection)), limit=arguments.limit
        )
    if arguments.format == "json":
        show_json(asdict(found))
    else:
        if not found.broken:
            print(f"{opened.location}: {found.invariants} invariants hold")
        for title, findings in (("Broken", found.broken), ("Left to the next crawl", found.pending)):
            _show_findings(title, findings)
    if found.broken:
        raise NeardupError(
            f"{opened.location}: {len(found.broken)} of {found.invariants} invariants are broken"
        )


def _show_findings(title: str, findings: list[check.Finding]) -> None:
    for finding in findings:
        print(f"\n{title}: {finding.name} ({finding.rows:,})\n  {finding.meaning}")
        show_table(list(finding.examples[0]), [list(example.values()) for example in finding.examples])


def _sections(opened: Store) -> list[Section]:
    with opened.reading() as connection:
        tables, file = stats.table_sizes(connection), stats.file_size(connection)
        kinds, schemes = stats.pages_by_kind(connection), stats.pages_by_scheme(connection)
    size = sum(table.bytes_on_disk or 0 for table in tables) if file is None else file.bytes_on_disk
    return [
        Section(
            "tables",
            "Tables",
            ("table", "rows", "bytes"),
            [(table.name, table.rows, table.bytes_on_disk) for table in tables],
        ),
        Section(
            "disk", "On disk", ("bytes", "bytes_free"), [(size, None if file is None else file.bytes_free)]
        ),
        Section("kinds", "Pages by last verdict", ("kind", "pages"), list(kinds.items())),
        Section(
            "schemes",
            "Pages by scheme",
            ("pages", "canonical", "duplicates", "flagged", "oldest", "newest", "scheme"),
            [
                (
                    row.pages,
                    row.canonical,
                    row.duplicates,
                    row.flagged,
                    f"{row.oldest:%Y-%m-%d %H:%M:%S}",
                    f"{row.newest:%Y-%m-%d %H:%M:%S}",
                    row.scheme,
                )
                for row in schemes
            ],
        ),
    ]


_VERBS: dict[
    str, tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], None]]
] = {
    "info": ("where it is and what it holds", database.add_arguments, _info),
    "upgrade": ("make or migrate its tables", database.add_arguments, _upgrade),
    "stats": ("rows and bytes by table, pages by kind and by scheme", _add_stats_arguments, _stats),
    "check": (
        "whether what must be true of the tables is; exit code 1 if it is not",
        _add_check_arguments,
        _check,
    ),
    "prune": (prune.HELP, prune.add_arguments, prune.run),
    "export": (transfer.EXPORT_HELP, transfer.add_arguments, transfer.run_export),
    "import": (transfer.IMPORT_HELP, transfer.add_arguments, transfer.run_import),
}
