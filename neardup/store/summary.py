"""What the report with charts shows of a store: one value that the HTML file and the live page share."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from neardup.address import host_of
from neardup.store import figures, reports, url_shares
from neardup.store.canonical_tags import Tagged, canonical_tags
from neardup.store.endless_spaces import LeftSpace, endless_spaces
from neardup.store.reports import Filters
from neardup.store.types import stored_host
from neardup.store.url_rules import BY_HAND, stored_rules
from neardup.urls.rules import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import Connection

    from neardup.detection.rule import Rule
    from neardup.store.store import Store

_Row = TypeVar("_Row")

ROWS = 20
"""Rows of a table."""

OF_A_HOST = 50
"""Folders or parameters of a host that are told on its own."""

_DAYS = 60
_CRAWLS = 30
_POINTS = 200
"""Of the curve."""

_ALL = Filters()
_SHOWN_STATES = (State.ACTIVE, State.REVOKED, *sorted(BY_HAND))


@dataclass(frozen=True, slots=True)
class Part(Generic[_Row]):
    """The first rows of a table, and how many there are."""

    rows: Sequence[_Row]
    total: int

    @property
    def is_cut(self) -> bool:
        return len(self.rows) < self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlFigures:
    """A crawl, the pages that it saw last, and what it did not fetch."""

    crawl_id: int
    spider: str
    started_at: datetime
    finished_at: datetime | None
    finish_reason: str | None
    pages: int
    duplicates: int
    rate: float
    links_withheld: int
    requests_saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRule:
    """A rule of URLs that counts, or did: what does not matter on a host, and where, "" for everywhere.

    ``example`` is the URL of a page, ``copy_of`` that of the page that it is a copy of; "" if there is none.
    """

    host: str
    says: str
    where: str
    state: str
    trials: float
    hits: float
    example: str
    copy_of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A store at one moment. ``made_at`` says when it was counted."""

    location: str
    made_at: datetime
    max_distance: int
    verify: float
    overview: reports.Overview
    links_withheld: int
    requests_saved: int
    hosts: Part[reports.Share]
    folders: Part[reports.Share]
    parameters: Part[url_shares.OfParameter]
    days: Part[reports.Share]
    crawls: Part[CrawlFigures]
    distances: list[reports.AtDistance]
    resemblances: list[figures.AtResemblance]
    evidence: list[reports.WithEvidence]
    growth: list[figures.Growth]
    curve: figures.Curve | None
    clusters: list[reports.Cluster]
    flagged: list[reports.Cluster]
    endless_spaces: Part[LeftSpace]
    soft_404s: Part[reports.Soft404s]
    canonical_tags: list[Tagged]
    across_hosts: Part[reports.Crossing]
    across_domains: Part[reports.Crossing]
    url_rules: Part[UrlRule]
    newest_crawl: int | None
    new_pages: Part[figures.NewPage]


@dataclass(frozen=True, slots=True)
class HostFigures:
    """The pages of a host, how many of them are soft 404s, and its endless spaces.

    Of its folders those with most pages, of its parameters those with most duplicates.
    """

    pages: reports.Share
    soft_404s: int
    folders: Part[reports.Share]
    parameters: Part[reports.Share]
    endless_spaces: Part[LeftSpace]


def summarise(
    store: Store, rule: Rule, progress: Callable[[str], None] = lambda _: None
) -> tuple[Summary, Mapping[str, HostFigures]]:
    """Count all that the report shows, and the same of each host; ``progress`` is told what is counted next.

    The whole store is read several times: some seconds for a million pages.
    """
    with store.reading() as connection:
        counted = _Counting(connection, progress)
        hosts = counted("hosts", lambda on: reports.by_host(on, _ALL))
        by_url = counted("folders and parameters", lambda on: url_shares.by_url(on, _ALL))
        crawls = counted("crawls", _crawls)
        across_hosts = counted("sites", lambda on: reports.across_hosts(on, _ALL))
        newest, new_count, new_pages = counted("new pages", lambda on: figures.new_pages(on, limit=ROWS))
        days = counted("days", figures.by_day)
        soft_404s = counted("soft 404s", lambda on: reports.soft_404s(on, _ALL))
        left = counted("endless spaces", endless_spaces)
        summary = Summary(
            location=store.location,
            made_at=datetime.now(UTC),
            max_distance=rule.max_distance,
            verify=rule.verify,
            overview=counted("pages", lambda on: reports.overview(on, _ALL)),
            links_withheld=sum(crawl.links_withheld for crawl in crawls),
            requests_saved=sum(crawl.requests_saved for crawl in crawls),
            hosts=_first(hosts),
            folders=_first(by_url.folders),
            parameters=_first(by_url.parameters),
            days=Part(days[-_DAYS:], len(days)),
            crawls=Part(crawls[: -_CRAWLS - 1 : -1], len(crawls)),
            distances=counted("distances", lambda on: reports.by_distance(on, _ALL)),
            resemblances=counted("resemblances", figures.by_resemblance),
            evidence=counted("evidence", lambda on: reports.by_evidence(on, _ALL)),
            growth=counted("growth", lambda on: figures.growth(on, points=_POINTS)),
            curve=counted("requests", figures.curve),
            clusters=counted("largest clusters", lambda on: reports.largest_clusters(on, _ALL, limit=ROWS)),
            flagged=counted("flags", lambda on: reports.largest_clusters(on, _ALL, limit=ROWS, flagged=True)),
            endless_spaces=_first(left),
            soft_404s=_first(soft_404s),
            canonical_tags=counted("canonical tags", lambda on: canonical_tags(on, _ALL)),
            across_hosts=_first(across_hosts),
            across_domains=_first(reports.across_domains(across_hosts)),
            url_rules=_first(counted("rules of URLs", url_rules)),
            newest_crawl=newest,
            new_pages=Part(new_pages, new_count),
        )
    return summary, _of_hosts(hosts, by_url, soft_404s, left)


def _of_hosts(
    hosts: Sequence[reports.Share],
    by_url: url_shares.ByUrl,
    soft_404s: Sequence[reports.Soft404s],
    left: Sequence[LeftSpace],
) -> dict[str, HostFigures]:
    missing = {found.host: found.pages for found in soft_404s}
    folders = _parts_of_hosts((stored_host(host_of(folder.name)), folder) for folder in by_url.folders)
    parameters = _parts_of_hosts((of.host, of.share) for of in by_url.parameters)
    spaces = _parts_of_hosts((stored_host(one.space.host), one) for one in left)
    nothing: Part[reports.Share] = Part((), 0)
    return {
        share.name: HostFigures(
            share,
            missing.get(share.name, 0),
            folders.get(share.name, nothing),
            parameters.get(share.name, nothing),
            spaces.get(share.name, Part((), 0)),
        )
        for share in hosts
    }


def _parts_of_hosts(rows: Iterable[tuple[str, _Row]]) -> dict[str, Part[_Row]]:
    """The first rows of each host, in their order."""
    of_hosts: dict[str, list[_Row]] = defaultdict(list)
    for host, row in rows:
        of_hosts[host].append(row)
    return {host: Part(found[:OF_A_HOST], len(found)) for host, found in of_hosts.items()}


class _Counting:
    """Runs one query after the other, and says which."""

    def __init__(self, connection: Connection, progress: Callable[[str], None]) -> None:
        self._connection, self._progress = connection, progress

    def __call__(self, what: str, query: Callable[[Connection], _Row]) -> _Row:
        self._progress(what)
        return query(self._connection)


def _first(rows: list[_Row]) -> Part[_Row]:
    return Part(rows[:ROWS], len(rows))


def _crawls(connection: Connection) -> list[CrawlFigures]:
    return [
        CrawlFigures(
            crawl_id=crawl["id"],
            spider=crawl["spider"],
            started_at=crawl["started_at"],
            finished_at=crawl["finished_at"],
            finish_reason=crawl["finish_reason"],
            pages=share.pages,
            duplicates=share.duplicates,
            rate=share.rate,
            links_withheld=crawl["links_withheld"] or 0,
            requests_saved=crawl["requests_saved"] or 0,
        )
        for crawl, share in reports.by_crawl(connection, _ALL)
    ]


def url_rules(connection: Connection, *, host: str | None = None) -> list[UrlRule]:
    """The rules of URLs that count, or did; the active ones first, those with most trials first.

    ``host``: only those of this host.
    """
    found = [
        UrlRule(
            host=learned.rule.host,
            says=f"{learned.rule.slot} {learned.rule.value}".strip(),
            where=learned.rule.context,
            state=learned.state.value,
            trials=learned.trials,
            hits=learned.hits,
            example=learned.example,
            copy_of=learned.partner,
        )
        for learned, *_ in stored_rules(connection, host=host, states=_SHOWN_STATES)
    ]
    return sorted(found, key=lambda rule: (rule.state != State.ACTIVE, -rule.trials, rule.host))
