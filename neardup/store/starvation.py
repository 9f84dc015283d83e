"""Whether a crawl has ended much smaller than the last one of its spider, on the hosts that both have
crawled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, or_, select

from neardup.detection.verdict import Kind
from neardup.store.schema import crawls, simhash_values

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FINISHED = "finished"
"""Scrapy's reason for a crawl that had nothing left to do; others are limits of the user."""

_EXAMPLES = 5

_page = simhash_values.c


class LastCrawl(NamedTuple):
    """The last crawl of a spider before this one, if both came to their own end.

    ``pages`` are those of the last crawl on the hosts of this crawl, ``pages_now`` those of this crawl.
    ``missing`` are URLs of some pages that only the last crawl has.
    """

    crawl_id: int
    pages: int
    pages_now: int
    missing: list[str]

    @property
    def is_much_larger(self) -> bool:
        """Whether the crawl after it has seen less than half as many pages."""
        return 2 * self.pages_now < self.pages


def last_crawl(connection: Connection, crawl_id: int) -> LastCrawl | None:
    """The crawl of the same spider before a crawl, or None.

    None if there is no crawl before, or if one of the two crawls did not come to its own end. None, too, if
    the spider has had another crawl meanwhile: workers of one queue share the pages among them. Pages in
    files are left out: two crawls of files have no more in common than the spider.
    """
    this = connection.execute(
        select(crawls.c.spider, crawls.c.finish_reason, crawls.c.started_at).where(crawls.c.id == crawl_id)
    ).one_or_none()
    if this is None or this.finish_reason != _FINISHED:
        return None
    meanwhile = or_(crawls.c.id > crawl_id, crawls.c.finished_at > this.started_at)
    others = (crawls.c.spider == this.spider, crawls.c.id != crawl_id)
    if connection.execute(select(crawls.c.id).where(*others, meanwhile).limit(1)).first():
        return None
    before = connection.execute(
        select(crawls.c.id, crawls.c.finish_reason)
        .where(crawls.c.spider == this.spider, crawls.c.id < crawl_id)
        .order_by(crawls.c.id.desc())
        .limit(1)
    ).one_or_none()
    if before is None or before.finish_reason != _FINISHED:
        return None
    hosts = connection.execute(
        select(_page.host).where(_page.last_crawl_id == crawl_id, _page.host != "").distinct()
    ).scalars()
    on_hosts = _page.host.in_(list(hosts))
    not_gone = _page.kind != Kind.GONE.value
    now = connection.execute(
        select(func.count()).where(_page.last_crawl_id == crawl_id, on_hosts, not_gone)
    ).scalar_one()
    again = connection.execute(
        select(func.count()).where(
            _page.last_crawl_id == crawl_id, _page.crawl_id <= before.id, on_hosts, not_gone
        )
    ).scalar_one()
    not_again = (_page.last_crawl_id == before.id, on_hosts, not_gone)
    missed = connection.execute(select(func.count()).where(*not_again)).scalar_one()
    examples = connection.execute(
        select(_page.actual_url).where(*not_again).order_by(_page.id).limit(_EXAMPLES)
    )
    return LastCrawl(before.id, again + missed, now, list(examples.scalars()))
