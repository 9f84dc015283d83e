"""``neardup show``: all that is known about one page, or what is taken for template on a host."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from neardup.address import page_url
from neardup.cli import database, template, url_rules
from neardup.cli.arguments import count
from neardup.cli.output import printable, show_fields, show_json, show_table
from neardup.errors import NeardupError
from neardup.store import page_report
from neardup.store.url_rules import rules_about

if TYPE_CHECKING:
    import argparse

    from neardup.store.history import Version

_RELATION = ("percentage", "distance", "resemblance", "confidence", "evidence", "differing bits", "url")
_VERSION = ("seen first", "crawl", "verdict", "bits changed", "features", "fingerprint")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument("url", nargs="?", help="URL as the crawl stored it")
    parser.add_argument(
        "--template", metavar="HOST", help="mark what of a page of this host is taken for template"
    )
    parser.add_argument(
        "--page",
        metavar="URL-OR-FILE",
        help="with --template: the page (default: a canonical page of the host, which is fetched)",
    )
    parser.add_argument("--private", action="store_true", help="follow redirects into private networks, too")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    parser.add_argument("--limit", type=count, default=20, help="duplicates and versions shown (default: 20)")


def run(arguments: argparse.Namespace) -> None:
    if (arguments.url is None) == (arguments.template is None):
        raise NeardupError("show takes either the URL of a page, or --template HOST")
    if arguments.template is not None:
        template.show(arguments)
        return
    if arguments.page is not None:
        raise NeardupError("--page goes with --template HOST")
    with database.open_store(database.read_options(arguments)) as store, store.reading() as connection:
        report = page_report.page_report(connection, arguments.url, limit=arguments.limit)
        rules = [url_rules.values(rule) for rule in rules_about(connection, page_url(arguments.url))]
    if report is None and not rules:
        raise NeardupError(f"{printable(arguments.url)} is not stored in {store.location}")
    if arguments.format == "json":
        page = {"url": arguments.url} if report is None else asdict(report)
        show_json(page | {"rules": [dict(zip(url_rules.COLUMNS, rule, strict=True)) for rule in rules]})
        return
    print(printable(arguments.url if report is None else report.url))
    if report is None:
        print("  is not stored")
    else:
        _show_page(report)
    if rules:
        print("\nRules about its URL")
        show_table(url_rules.COLUMNS, rules)


def _show_page(report: page_report.PageReport) -> None:
    show_fields(
        {
            "verdict": report.kind,
            "fingerprint": _hexadecimal(report.fingerprint),
            "scheme": report.scheme,
            "features": report.features,
            "first seen": f"{report.first_seen:%Y-%m-%d %H:%M:%S} UTC by crawl {report.first_crawl}",
            "last seen": f"{report.last_seen:%Y-%m-%d %H:%M:%S} UTC by crawl {report.last_crawl}",
            "links not followed": report.links_withheld,
            "duplicates": report.duplicate_count,
            **({"calls canonical": report.declared_url} if report.declared_url else {}),
            **({"soft 404": "stands for a page that is not there"} if report.soft_404 else {}),
            **({"flagged": f"{report.flagged_at:%Y-%m-%d %H:%M:%S} UTC"} if report.flagged_at else {}),
        }
    )
    if report.canonical is not None:
        print("\nDuplicate of its canonical page")
        show_table(_RELATION, [_row(report.canonical)])
    if report.duplicates:
        more = (
            f" (the {len(report.duplicates)} nearest)"
            if report.duplicate_count > len(report.duplicates)
            else ""
        )
        print(f"\nCanonical page of {report.duplicate_count} duplicates{more}")
        show_table(_RELATION, [_row(relation) for relation in report.duplicates])
    if report.versions:
        more = f" (the {len(report.versions)} newest)" if report.version_count > len(report.versions) else ""
        print(f"\nHistory: {report.version_count} versions{more}")
        show_table(_VERSION, [_version_row(version) for version in report.versions])


def _row(relation: page_report.Relation) -> tuple[object, ...]:
    return (
        relation.percentage,
        relation.distance,
        relation.resemblance,
        relation.confidence,
        relation.evidence,
        " ".join(map(str, relation.differing_bits)) or "none",
        relation.url,
    )


def _version_row(version: Version) -> tuple[str, int, str, int | None, int, str]:
    return (
        f"{version.seen_at:%Y-%m-%d %H:%M:%S} UTC",
        version.crawl_id,
        version.kind,
        version.own_distance,
        version.features,
        _hexadecimal(version.fingerprint),
    )


def _hexadecimal(fingerprint: int | None) -> str:
    return "none" if fingerprint is None else f"{fingerprint:#018x}"
