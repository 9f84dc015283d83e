"""``neardup decisions``: what people have said about pages, also as labelled pairs."""

from __future__ import annotations

import argparse
import getpass
import json
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.cli import database
from neardup.cli.arguments import count
from neardup.cli.fetch import fetch
from neardup.cli.output import FORMATS, Section, complain, show_sections
from neardup.cli.progress import Progress, interruptible
from neardup.cli.rules import stored_rule
from neardup.detection.decisions import Decision
from neardup.errors import ConfigurationError, NeardupError
from neardup.store import deciding, texts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from neardup.fingerprint.reader import Reader

_OF_TABLE = (
    "decision_id",
    "decision",
    "page_url",
    "other_url",
    "decided_by",
    "decided_at",
    "undone_by",
    "note",
)
_LABELS = {Decision.SAME.value: 1, Decision.DIFFERENT.value: 0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    parser.add_argument("--limit", type=count, default=100, help="decisions shown (default: 100)")
    verbs = parser.add_subparsers(dest="decisions_verb", metavar="VERB")
    undoing = verbs.add_parser(
        "undo", help="undo a decision", description="The page gets back the standing that it had."
    )
    database.add_arguments(undoing, default=argparse.SUPPRESS)
    undoing.add_argument(
        "decision", type=count, metavar="N", help="its number, as neardup decisions shows it"
    )
    exporting = verbs.add_parser(
        "export",
        help="write the pairs that are the same or different as JSON lines",
        description="The texts are those that crawls kept, else those of the pages as they are now.",
    )
    database.add_arguments(exporting, default=argparse.SUPPRESS)
    exporting.add_argument("file", type=Path, help="a .jsonl file, for neardup evaluate")
    exporting.add_argument(
        "--private", action="store_true", help="fetch from private networks and files, too"
    )


def run(arguments: argparse.Namespace) -> None:
    if arguments.decisions_verb == "undo":
        _undo(arguments)
    elif arguments.decisions_verb == "export":
        _export(arguments)
    else:
        _list(arguments)


def _list(arguments: argparse.Namespace) -> None:
    with database.open_store(database.read_options(arguments)) as store, store.looking() as connection:
        rows = deciding.listed(connection, limit=arguments.limit)
    columns = tuple(field.name for field in fields(deciding.DecisionRow))
    if arguments.format == "table":
        print(f"{store.location}\n")
        columns = _OF_TABLE
    values = [[_value(row, column) for column in columns] for row in rows]
    show_sections([Section("decisions", "Decisions", columns, values)], arguments.format)


def _value(row: deciding.DecisionRow, column: str) -> object:
    value = getattr(row, column)
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else value


def _undo(arguments: argparse.Namespace) -> None:
    with database.open_store(database.read_options(arguments)) as store:
        rule, person = stored_rule(store), getpass.getuser()
        row = store.transact(
            lambda connection: deciding.undo(connection, arguments.decision, person=person, rule=rule)
        )
    print(f"decision {row.decision_id} ({row.decision}) is undone")


def _export(arguments: argparse.Namespace) -> None:
    options = database.read_options(arguments)
    reader = options.detector.make_reader()
    with database.open_store(options) as store, store.looking() as connection:
        rows = deciding.listed(connection, limit=1_000_000, undone=False)
        pairs = [row for row in rows if row.decision in _LABELS]
        keys = {key for row in pairs for key in (row.page_key, row.other_key) if key is not None}
        kept = {key: texts.text_of_key(connection, bytes.fromhex(key)) for key in keys}
    progress = Progress("pairs", len(pairs))
    written = 0
    with interruptible("the file has the pairs so far"), _opened(arguments.file) as file:
        for done, row in enumerate(pairs, start=1):
            try:
                line = _labelled(row, reader, kept, private=arguments.private)
            except NeardupError as exc:
                complain(exc)
            else:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                written += 1
            progress(done)
    print(f"{arguments.file}: {written:,} of {len(pairs):,} pairs")
    if written < len(pairs):
        raise SystemExit(1)


def _opened(path: Path) -> TextIO:
    try:
        return path.open("w", encoding="utf-8")
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be written: {exc.strerror or exc}") from exc


def _labelled(
    row: deciding.DecisionRow, reader: Reader, kept: Mapping[str, str | None], *, private: bool
) -> dict[str, object]:
    """A pair as ``neardup evaluate`` reads it, with the URLs beside the texts."""
    assert row.other_url is not None
    assert row.other_key is not None

    def text(key: str, url: str) -> str:
        found = kept[key]
        if found is None:
            found = reader.content.text_of_html(
                url, fetch(url, private=private, trusted=False, as_stored=True).text
            )
        return found

    return {
        "label": _LABELS[row.decision],
        "a_url": row.page_url,
        "b_url": row.other_url,
        "a_text": text(row.page_key, row.page_url),
        "b_text": text(row.other_key, row.other_url),
        "note": row.note,
    }
