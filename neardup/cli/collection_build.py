"""``neardup collection build``: stored pages into a dataset of fingerprints, a row a page.

Pages are read as a crawl with the settings of this project reads them. So a page has the same fingerprint
whichever way it came. The command can be interrupted: given again, it goes on.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.utils.project import get_project_settings

from neardup.cli.arguments import cores, count
from neardup.cli.outdated import tell_outdated
from neardup.cli.output import complain, show_fields, show_json
from neardup.cli.progress import Progress, interruptible, number
from neardup.collection.build import build
from neardup.collection.inputs.tables import Names
from neardup.scrapy.options import Options
from neardup.scrapy.stored_responses import stored_page

if TYPE_CHECKING:
    import argparse

    from neardup.collection.build import Built

INCOMPLETE = 3
"""Exit code if the collection is built, but inputs are damaged: a script may go on with it, or not."""

_KILOBYTE = 1_000
_MOST_NAMED = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="WARC, WET, ARC, WACZ, JSON Lines, Parquet, a feed of Scrapy (.jsonl, .json, .csv, .xml), an"
        " HTML file, a folder of any of these, Scrapy's HTTP cache (its folder or its .db), or the URL of a"
        " database of neardup",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="the dataset, made or gone on with"
    )
    names = Names()
    for field, what in (
        ("url", "URLs of pages"),
        ("html", "HTML"),
        ("text", "visible text, read where there is no HTML"),
        ("date", "dates"),
    ):
        default = getattr(names, field)
        parser.add_argument(
            f"--{field}-column",
            default=default,
            metavar="NAME",
            help=f"column of tables and feeds with {what} (default: {default})",
        )
    parser.add_argument("--processes", type=count, metavar="N", help="default: one for each core")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")


def run(arguments: argparse.Namespace) -> None:
    names = Names(
        url=arguments.url_column,
        html=arguments.html_column,
        text=arguments.text_column,
        date=arguments.date_column,
    )
    options = Options.from_settings(get_project_settings())
    shown: list[Progress] = []

    def on_progress(done: int, total: int) -> None:
        if not shown:
            shown.append(Progress("kB", total // _KILOBYTE))
        shown[0](done // _KILOBYTE)

    with interruptible("what was done is kept; the same command goes on from there"):
        built = build(
            arguments.out,
            arguments.inputs,
            names,
            options.detector,
            stored_page,
            arguments.processes or cores(),
            on_progress,
        )
    if arguments.format == "json":
        show_json(_told(built))
    else:
        _show(arguments.out, built)
    tell_outdated(arguments.out)
    if unread := built.unread:
        inputs = f"{len(unread):,} of {number(len(built.notes), 'input')}"
        complain(
            f"{number(sum(unread.values()), 'place')} in {inputs} could not be read; all else is in the"
            f" collection (exit code {INCOMPLETE})"
        )
        raise SystemExit(INCOMPLETE)


def _told(built: Built) -> dict[str, object]:
    return {
        "pages": built.pages,
        "links": built.links,
        "revisits": built.revisits,
        "undated": built.undated,
        "skipped": dict(sorted(built.skipped.items())),
        "examples": [
            {"file": name, "place": place, "reason": why, "detail": detail}
            for name, notes in built.notes.items()
            for note in notes
            for place, why, detail in note.examples
        ],
    }


def _show(folder: Path, built: Built) -> None:
    inputs = number(len(built.notes), "input")
    print(f"{folder}: {number(built.pages, 'page')} and {number(built.links, 'link')} of {inputs}")
    if built.revisits:
        print(f"{built.revisits:,} of the pages are revisits of others")
    if built.undated:
        print(f"{number(built.undated, 'page')} with a date that cannot be read: without a date here")
    if not built.skipped:
        return
    print("Records skipped, by reason")
    show_fields(dict(sorted(built.skipped.items())))
    damaged = [
        f"{name}, {place}: {why}{f' ({detail})' if detail else ''}"
        for name, notes in built.notes.items()
        for note in notes
        for place, why, detail in note.examples
        if detail
    ]
    for line in damaged[:_MOST_NAMED]:
        complain(line)
    if len(damaged) > _MOST_NAMED:
        complain(f"{len(damaged) - _MOST_NAMED} more are named by --format json")
