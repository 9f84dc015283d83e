"""``neardup check``: how much a page duplicates what is stored (the form of Khan & Ali, section III.H),
without storing it.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from neardup.cli import database
from neardup.cli.arguments import count
from neardup.cli.fetch import fetch
from neardup.cli.output import complain, printable, show_json, show_table
from neardup.collection.lookup import known_pages, look_up
from neardup.errors import NeardupError

if TYPE_CHECKING:
    import argparse

    from neardup.collection.lookup import Checked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument(
        "pages", nargs="+", metavar="URL-OR-FILE", help="http(s) URL, file:// URL or path of an HTML file"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    parser.add_argument("--limit", type=count, default=10, help="stored pages shown (default: 10)")
    parser.add_argument("--private", action="store_true", help="follow redirects into private networks, too")


def run(arguments: argparse.Namespace) -> None:
    options = database.read_options(arguments)
    reader = options.detector.make_reader()
    checked: list[Checked] = []
    failed = False
    with database.open_store(options, scheme=str(reader.scheme)) as store:
        known = known_pages(store, options.detector, reader)
        for page in arguments.pages:
            try:
                response = fetch(page, private=arguments.private)
                reading = reader.read_response(response)
                checked.append(look_up(known, response.url, reading, limit=arguments.limit))
            except NeardupError as exc:
                failed = True
                complain(exc)
    if arguments.format == "json":
        show_json([asdict(one) for one in checked])
    else:
        for one in checked:
            _show(one)
    if failed:
        raise SystemExit(1)


def _show(one: Checked) -> None:
    percentage = (
        "" if one.percentage is None else f", {one.percentage:.1f} % of the bits of the nearest stored page"
    )
    print(f"{printable(one.url)}: {one.verdict}{percentage}; {one.features} distinct words")
    show_table(
        ("percentage", "distance", "resemblance", "confidence", "evidence", "url"),
        [
            (
                other.percentage,
                other.distance,
                other.resemblance,
                other.confidence,
                other.evidence,
                other.url,
            )
            for other in one.resembles
        ],
    )
