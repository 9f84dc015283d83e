"""``neardup db export`` and ``neardup db import``: a whole store into files, and from there into another
database.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from neardup.cli import database
from neardup.cli.progress import Progress, interruptible, number
from neardup.store import transfer
from neardup.store.archive import formats
from neardup.store.store import Store

if TYPE_CHECKING:
    import argparse

    from neardup.store.archive.layout import Header

EXPORT_HELP = "write all tables to FILE: .jsonl, .jsonl.gz, or .parquet (a folder)"
IMPORT_HELP = "read an export into an empty database"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help=".jsonl, .jsonl.gz, or .parquet (a folder)")
    database.add_arguments(parser)


def run_export(arguments: argparse.Namespace) -> None:
    formats.check_new(arguments.file)
    with (
        interruptible(f"{arguments.file} is not written"),
        database.open_store(database.read_options(arguments)) as store,
        transfer.snapshot_of(store) as connection,
    ):
        header = transfer.header_of(connection)
        progress = Progress("rows", sum(header.rows.values()))
        rows = transfer.stored_rows(connection, progress)
        formats.save(arguments.file, header, transfer.EXPORTED, rows)
    print(f"{arguments.file}: {_in_words(header)}")


def run_import(arguments: argparse.Namespace) -> None:
    archive = formats.open_archive(arguments.file, transfer.EXPORTED)
    url = database.read_options(arguments).database_url
    with (
        interruptible("nothing is imported"),
        Store.open(url, scheme=archive.header.scheme) as store,
    ):
        transfer.import_rows(store, archive, Progress("rows", sum(archive.header.rows.values())))
    print(f"{store.location}: {_in_words(archive.header)}")


def _in_words(header: Header) -> str:
    names = (
        "crawl", "page", "relation", "version", "link list", "rank", "host", "rule", "rule effect",
        "decision", "text", "server IP",
    )  # fmt: skip
    rows = [
        number(header.rows.get(table.name, 0), name)
        for table, name in zip(transfer.EXPORTED, names, strict=True)
    ]
    return f"{', '.join(rows)} of the scheme {header.scheme or 'none yet'}"
