"""``neardup report``: how much of what was crawled is duplicate, and where it comes from."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.cli import database, mirrors
from neardup.cli.arguments import count, utc_time
from neardup.cli.output import FORMATS, MARKDOWN, Section, show_sections
from neardup.cli.progress import interruptible
from neardup.cli.rules import stored_rule
from neardup.collection.stored_mirrors import mirrors_of
from neardup.errors import NeardupError
from neardup.fingerprint import hamming
from neardup.store import explore, figures, reports, url_shares
from neardup.store.canonical_tags import Tagged, canonical_tags
from neardup.store.endless_spaces import LeftSpace, endless_spaces
from neardup.store.types import stored_host
from neardup.web import html_report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from neardup.store.store import Store

_SHARE = ("pages", "distinct", "duplicates", "rate")

_POINTS = 20
"""Of the curve."""

_WIDTH = 40
"""Characters of the longest bar of the curve."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument("--format", choices=(*FORMATS, MARKDOWN), default="table", help="default: table")
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a report with charts of the whole store into one HTML file; needs neardup[web]",
    )
    parser.add_argument("--host", help="only pages of this host")
    parser.add_argument(
        "--since", type=_moment, metavar="TIME", help="only pages last seen at this time or later"
    )
    parser.add_argument("--until", type=_moment, metavar="TIME", help="only pages last seen before this time")
    parser.add_argument("--limit", type=count, default=10, help="rows of the longer tables (default: 10)")
    parser.add_argument(
        "--clusters-by",
        choices=("size", "pagerank"),
        default="size",
        help="which clusters are told: the largest, or those whose canonical pages have the highest PageRank"
        " (default: size)",
    )


def run(arguments: argparse.Namespace) -> None:
    host = None if arguments.host is None else stored_host(arguments.host.lower())
    filters = reports.Filters(host=host, since=arguments.since, until=arguments.until)
    if arguments.html is not None and filters != reports.Filters():
        raise NeardupError("--html is about the whole store: --host, --since and --until do not go with it")
    if arguments.html is not None and arguments.format != "table":
        raise NeardupError("--html writes one HTML file: --format does not go with it")
    with database.open_store(database.read_options(arguments)) as store:
        _check_host(store, host)
        if arguments.html is not None:
            _write_html(store, arguments.html)
            return
        by_rank = arguments.clusters_by == "pagerank"
        sections = _sections(store, filters, arguments.limit, by_rank=by_rank)
    if arguments.format == "table":
        print(f"{store.location}\n")
    show_sections(sections, arguments.format)


def _check_host(store: Store, host: str | None) -> None:
    if host is None:
        return
    with store.reading() as connection:
        if not explore.has_host(connection, host):
            raise NeardupError(f"no page of the host {host!r} is stored in {store.location}")


def _write_html(store: Store, path: Path) -> None:
    def progress(what: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[Kcounting {what}", end="", file=sys.stderr, flush=True)

    with interruptible("no report is written"):
        html_report.write(store, stored_rule(store), path, progress)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    print(f"{path}: {path.stat().st_size:,} bytes")


def _sections(store: Store, filters: reports.Filters, limit: int, *, by_rank: bool) -> list[Section]:
    with store.reading() as connection:
        overview = reports.overview(connection, filters)
        by_host = reports.by_host(connection, filters)
        folders, parameters = url_shares.by_url(connection, filters)
        by_evidence = reports.by_evidence(connection, filters)
        by_crawl = reports.by_crawl(connection, filters)
        across_hosts = reports.across_hosts(connection, filters)
        clusters = reports.largest_clusters(connection, filters, limit=limit, by_rank=by_rank)
        flagged = reports.largest_clusters(connection, filters, limit=limit, flagged=True)
        tags = _canonical_tags(canonical_tags(connection, filters))
        soft_404s = _soft_404s(reports.soft_404s(connection, filters), limit)
        by_distance = _by_distance(reports.by_distance(connection, filters))
        is_whole = filters == reports.Filters()
        curve = figures.curve(connection) if is_whole else None
        # Crawls keep no time of them.
        is_of_all_times = filters.since is None and filters.until is None
        spaces = endless_spaces(connection, host=filters.host) if is_of_all_times else []
    across_domains = reports.across_domains(across_hosts)
    return [
        _overview(overview, across_hosts, across_domains),
        _shares("by_host", "By host", "host", by_host, limit),
        _shares("by_path", "By path prefix", "path", folders, limit),
        *_parameters(parameters, limit),
        by_distance,
        _evidence(by_evidence),
        Section(
            "by_crawl",
            "By the crawl that saw the pages last",
            ("crawl", "spider", "started", "finish_reason", *_SHARE, "links_withheld", "requests_saved"),
            [
                (
                    crawl["id"],
                    crawl["spider"],
                    f"{crawl['started_at']:%Y-%m-%d %H:%M:%S}",
                    crawl["finish_reason"] or "not finished",
                    *_values(of_crawl),
                    # Known of whole crawls only.
                    *((crawl["links_withheld"], crawl["requests_saved"]) if is_whole else (None, None)),
                )
                for crawl, of_crawl in by_crawl
            ],
        ),
        _crossings("cross_host", "Relations that cross hosts", "host", across_hosts, limit),
        _crossings(
            "cross_domain", "Relations that cross registered domains", "domain", across_domains, limit
        ),
        _clusters("clusters", "Clusters of highest PageRank" if by_rank else "Largest clusters", clusters),
        _clusters("flagged", "Flagged: duplicates at many addresses", flagged),
        *_endless_spaces(spaces, limit),
        *soft_404s,
        *tags,
        *([] if curve is None else [_curve(curve)]),
        *_mirrors(store, filters, limit),
    ]


def _mirrors(store: Store, filters: reports.Filters, limit: int) -> list[Section]:
    """Of the host, if one is asked for. Mirrors are told by all pages, whenever these were seen."""
    if filters.since is not None or filters.until is not None:
        return []
    found = mirrors_of(store).found
    if filters.host is not None:
        found = [mirror for mirror in found if mirror.is_of(filters.host)]
    return [mirrors.section(found[:limit], _title("Mirrors", found, limit, "support"))]


def _by_distance(found: list[reports.AtDistance]) -> Section:
    return Section(
        "by_distance",
        "Duplicates by distance to the canonical page",
        ("distance", "percentage", "duplicates", "resemblance", "least_resemblance"),
        [
            (
                at.distance,
                hamming.percentage(at.distance),
                at.duplicates,
                at.resemblance,
                at.least_resemblance,
            )
            for at in found
        ],
    )


def _overview(
    overview: reports.Overview, across_hosts: list[reports.Crossing], across_domains: list[reports.Crossing]
) -> Section:
    row = (
        *_values(overview.share),
        overview.exact,
        overview.too_short,
        overview.clusters,
        sum(between.duplicates for between in across_hosts),
        sum(between.duplicates for between in across_domains),
    )
    columns = (*_SHARE, "same_fingerprint", "too_short", "clusters", "cross_host", "cross_domain")
    return Section("overview", "All pages", columns, [row])


def _curve(curve: figures.Curve) -> Section:
    """Some points of a curve, as far apart as they can be, with a bar each."""
    points, last = curve.points[1:], max(1, curve.points[-1][1])
    step = max(1, -(-len(points) // _POINTS))
    shown = points[::-1][::step][::-1]
    rows = [
        (requests, unique, round(100.0 * unique / last, 1), "#" * round(_WIDTH * unique / last))
        for requests, unique in shown
    ]
    title = f"Unique pages by requests made, crawl {curve.crawl_id}"
    return Section("curve", title, ("requests", "unique", "found", "drawn"), rows)


def _evidence(found: list[reports.WithEvidence]) -> Section:
    rows = [
        (
            row.evidence or "not recorded",
            row.confidence,
            row.duplicates,
            row.resemblance,
            row.least_resemblance,
        )
        for row in found
    ]
    columns = ("evidence", "confidence", "duplicates", "resemblance", "least_resemblance")
    return Section("by_evidence", "Duplicates by evidence", columns, rows)


def _crossings(name: str, title: str, column: str, crossings: list[reports.Crossing], limit: int) -> Section:
    rows = [
        (between.duplicates, between.site or "(files)", between.canonical_site or "(files)")
        for between in crossings[:limit]
    ]
    title = _title(title, crossings, limit, "duplicates")
    return Section(name, title, ("duplicates", column, f"canonical_{column}"), rows)


def _clusters(name: str, title: str, clusters: list[reports.Cluster]) -> Section:
    rows = [(cluster.duplicates, cluster.canonical_url, cluster.example_url) for cluster in clusters]
    return Section(name, title, ("duplicates", "canonical_url", "example_url"), rows)


def _endless_spaces(found: list[LeftSpace], limit: int) -> list[Section]:
    """A section if crawls have left any."""
    rows = [
        (
            left.space.host,
            left.space.parameter,
            left.space.canonical_url,
            left.space.links,
            left.crawl_id,
            left.space.last_url,
        )
        for left in found[:limit]
    ]
    title = "Endless spaces whose links were followed no further"
    if len(found) > limit:
        title += f" (the {limit} of the newest crawls, of {len(found)})"
    columns = ("host", "parameter", "copies_of", "links", "crawl", "last_url")
    return [Section("endless_spaces", title, columns, rows)] if rows else []


def _soft_404s(hosts: list[reports.Soft404s], limit: int) -> list[Section]:
    """A section if there are any."""
    rows = [(of_host.host, of_host.pages, of_host.example_url) for of_host in hosts[:limit]]
    title = "Soft 404: pages that stand for others that are not there"
    return [Section("soft_404", title, ("host", "pages", "example_url"), rows)] if rows else []


def _canonical_tags(found: list[Tagged]) -> list[Section]:
    """A section if any page names another one."""
    rows = [(tagged.says.value, tagged.pages, tagged.example_url, tagged.named_url) for tagged in found]
    columns = ("says", "pages", "example_url", "named_url")
    return [Section("canonical_tags", "Canonical tags beside texts", columns, rows)] if rows else []


def _shares(name: str, title: str, column: str, shares: list[reports.Share], limit: int) -> Section:
    return Section(
        name,
        _title(title, shares, limit, "pages"),
        (column, *_SHARE),
        [(share.name or "(files)", *_values(share)) for share in shares[:limit]],
    )


def _parameters(parameters: list[url_shares.OfParameter], limit: int) -> list[Section]:
    """A section if any URL has a parameter."""
    title = _title("By parameter of the URL", parameters, limit, "duplicates")
    rows = [(of.host, of.share.name or "(none)", *_values(of.share)) for of in parameters[:limit]]
    return [Section("by_parameter", title, ("host", "parameter", *_SHARE), rows)] if rows else []


def _title(title: str, found: Sequence[object], limit: int, most: str) -> str:
    """The title of a section that shows so many of what was found at most, those with most of something."""
    return title if len(found) <= limit else f"{title} (the {limit} with most {most}, of {len(found)})"


def _values(share: reports.Share) -> tuple[int, int, int, float]:
    return share.pages, share.distinct, share.duplicates, share.rate


def _moment(text: str) -> datetime:
    try:
        return utc_time(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time; give one like 2026-11-21 or 2026-11-21T04:30"
        ) from exc
