"""Outcomes: verdicts and what follows from them, counted in stats, told in the log, and stored."""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, NamedTuple

from scrapy.utils.job import job_dir

from neardup.address import host_of
from neardup.detection.known_pages import NONE
from neardup.detection.latest import keep_latest
from neardup.detection.suspect_clusters import ClusterWatch
from neardup.detection.verdict import LEFT_ALONE, Kind
from neardup.scrapy import summary
from neardup.scrapy.curve import Curve
from neardup.store.endless_spaces import EndlessSpace, as_text

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from neardup.detection.rule import Evidence
    from neardup.detection.verdict import Verdict
    from neardup.scrapy.links import Links, PageLinks, Space
    from neardup.scrapy.options import Options
    from neardup.scrapy.recording import Onlooker, Recorder

logger = logging.getLogger(__name__)

_MOST_FLAGS_TOLD = 5
"""Pages with duplicates at many addresses that are warned of: a crawl of many hosts has one on each."""

_FLAGS_NOT_TOLD = " (further ones are not logged, but flagged in neardup report)"

_MOST_SPACES_TOLD = 5
"""Endless spaces that are warned of: a site with a calendar for each of its parts has many."""

_SPACES_NOT_TOLD = " (further ones are not logged, but listed by neardup report)"

_MOST_DOUBTFUL = 100_000
"""Duplicates that may be judged again. The detector keeps fewer of them, because it keeps their texts."""


class _AsBefore(NamedTuple):
    """What was counted of a duplicate that may be judged again."""

    evidence: Evidence
    distance: int | None
    canonical_id: int | None
    repeated: bool


class Outcomes:
    """The outcomes of one crawl, by the names of :mod:`neardup.scrapy.summary`."""

    def __init__(
        self, crawler: Crawler, options: Options, recorder: Recorder | Onlooker, links: Links
    ) -> None:
        self._crawler = crawler
        self._options = options
        self._recorder = recorder
        self._links = links
        self._watch = ClusterWatch()
        self._has_failed = False
        self._flagged = 0
        self._doubtful: OrderedDict[int, _AsBefore] = OrderedDict()
        self._curve = Curve()
        self._left: dict[Space, EndlessSpace] = {}
        """Endless spaces that were left, without their links, which are counted at the end."""

    def count(self, stat: str, number: int = 1) -> None:
        """Count so many more of what a stat counts."""
        self._crawler.stats.inc_value(stat, number)

    def record(self, verdict: Verdict) -> bool:
        """Count, log and store a verdict; whether the canonical page is flagged by that."""
        stats = self._crawler.stats
        stats.inc_value(summary.STAT_OF_KIND[verdict.kind])
        if verdict.limit is not None:
            self._count_unjudged(verdict, verdict.limit)
        if verdict.kind in LEFT_ALONE:
            return False
        self._recorder.put(verdict)
        if verdict.kind is Kind.GONE:
            return False
        stats.inc_value("neardup/pages")
        if not verdict.repeated:
            stats.inc_value("neardup/unique")
        self._add_to_curve()
        if verdict.is_duplicate:
            self._count_evidence(verdict)
            logger.debug(
                "Near-duplicate: %(url)s of %(canonical)s (%(percentage).1f %%): %(reason)s",
                {
                    "url": verdict.url,
                    "canonical": verdict.canonical_url,
                    "percentage": verdict.percentage,
                    "reason": verdict.reason,
                },
                extra={"spider": self._crawler.spider},
            )
        return self._is_flagged_by(verdict)

    def declared(self, verdict: Verdict, canonical_url: str) -> None:
        """Count a page that calls another one of its site its canonical page, and whether it is a copy of
        that.
        """
        self.count("neardup/declared")
        if verdict.canonical_url == canonical_url:
            self.count("neardup/declared/copies")

    def correct(self, verdict: Verdict) -> int | None:
        """Count, log and store the verdict of a page that was a doubtful duplicate until now.

        A page that is a duplicate of the same canonical page by other evidence is stored, and not counted as
        corrected. Returns the id of the canonical page that the page had, if that is known.
        """
        stats = self._crawler.stats
        assert verdict.page_id is not None
        before = self._doubtful.pop(verdict.page_id, None)
        if before is not None:
            self._count_as(before, -1)
            if before.repeated and not verdict.is_duplicate:
                stats.inc_value("neardup/unique")
                self._add_to_curve()
        if verdict.is_duplicate:
            self._count_evidence(verdict)
        else:
            stats.inc_value(summary.STAT_OF_KIND[Kind.DUPLICATE], -1)
            stats.inc_value(summary.STAT_OF_KIND[verdict.kind])
        self._recorder.put(verdict)
        if not verdict.is_duplicate:
            self._recorder.links_withheld(verdict.page_id, 0)
        canonical_id = None if before is None else before.canonical_id
        if canonical_id is None or canonical_id != verdict.canonical_id:
            stats.inc_value("neardup/judged_again")
            self._log_correction(verdict)
        return canonical_id

    def _add_to_curve(self) -> None:
        stats = self._crawler.stats
        self._curve.add(stats.get_value("neardup/requests", 0), stats.get_value("neardup/unique", 0))

    def _log_correction(self, verdict: Verdict) -> None:
        logger.debug(
            "Judged again: %(url)s: %(kind)s%(of)s: %(reason)s",
            {
                "url": verdict.url,
                "kind": verdict.kind.value,
                "of": f" of {verdict.canonical_url}" if verdict.is_duplicate else "",
                "reason": verdict.reason,
            },
            extra={"spider": self._crawler.spider},
        )

    def failed_on(self, url: str, failure: Exception) -> None:
        """Count a page that the add-on failed on; the first one is logged with what went wrong."""
        self.count("neardup/failures")
        if not self._has_failed:
            self._has_failed = True
            logger.warning(
                "neardup: %(url)s cannot be judged and passes untouched; this is a bug of neardup, please"
                " report it (further ones are counted, not logged)",
                {"url": url},
                exc_info=failure,
                extra={"spider": self._crawler.spider},
            )

    def exhausted(self, cluster: int, response: Response) -> None:
        """Leave the space of a canonical page, and flag the page: its duplicates have led to nothing new for
        too long. ``response`` is the last of them.
        """
        self._recorder.flag(cluster)
        pages = self._recorder.detector.pages
        (row,) = pages.rows_of_ids([cluster]).tolist()
        canonical_url = None if row == NONE else pages.urls[row]
        self._leave(
            cluster,
            EndlessSpace(host=host_of(response.url), canonical_url=canonical_url, last_url=response.url),
            "neardup: the near-duplicates of %(canonical)s have led to nothing new for so long"
            " (NEARDUP_ENDLESS_AFTER = %(limit)d) that their links are followed no further."
            " Is it an endless calendar? Does the site hand out ever new addresses? The last page:"
            " %(url)s%(more)s",
            canonical=canonical_url or f"page {cluster}",
            limit=self._options.endless_after,
        )

    def parameter_exhausted(self, url: str, name: str) -> None:
        """Leave the space that a parameter makes on the host of a URL, that of the last page."""
        host = host_of(url)
        self._leave(
            (host, name),
            EndlessSpace(host=host, parameter=name, last_url=url),
            "neardup: %(host)s hands out new values of the parameter %(name)r on each page, and for long they"
            " have led to copies only (NEARDUP_ENDLESS_AFTER). No more of such copies are requested. The last"
            " page: %(url)s%(more)s",
            host=host,
            name=name,
        )

    def _leave(self, key: Space, space: EndlessSpace, message: str, **values: object) -> None:
        """Count, keep and log a space that is left; of many spaces, the first ones are logged."""
        self.count("neardup/exhausted")
        self._left[key] = space
        if len(self._left) <= _MOST_SPACES_TOLD:
            more = _SPACES_NOT_TOLD if len(self._left) == _MOST_SPACES_TOLD else ""
            logger.warning(
                message,
                {**values, "url": space.last_url, "more": more},
                extra={"spider": self._crawler.spider},
            )

    def told_apart(self, verdict: Verdict) -> None:
        """Count a canonical page whose duplicates each say something of their own; the first one is told."""
        self.count("neardup/told_apart")
        if self._crawler.stats.get_value("neardup/told_apart") == 1:
            logger.info(
                "neardup: the near-duplicates of %(canonical)s keep their items and callbacks, because each"
                " says something of its own, as %(url)s does (further ones are counted, not logged)",
                {"canonical": verdict.canonical_url, "url": verdict.url},
                extra={"spider": self._crawler.spider},
            )

    def links_withheld(self, links: PageLinks, verdict: Verdict | None) -> None:
        """Have it stored how many links of a page were not followed."""
        if links.withheld and verdict is not None and verdict.is_duplicate and verdict.page_id is not None:
            self._recorder.links_withheld(verdict.page_id, links.withheld)

    def warn_of_starvation(self) -> None:
        """Say it aloud if this crawl may have missed pages."""
        if self._links.lost_candidates:
            logger.warning(
                "neardup: links of near-duplicates were not followed that stood on no other page: %(links)d,"
                " such as %(examples)s. They were taken for links of endless spaces. If they are not, an"
                " unknown number of pages may lie behind them: with a larger NEARDUP_ENDLESS_AFTER than"
                " %(limit)d, or 0, they are followed",
                {
                    "links": self._links.lost_candidates,
                    "limit": self._options.endless_after,
                    "examples": ", ".join(self._links.examples),
                },
                extra={"spider": self._crawler.spider},
            )
        last = self._recorder.last_crawl
        if last is not None and last.is_much_larger:
            self._crawler.stats.set_value("neardup/last_crawl_pages", last.pages)
            logger.warning(
                "neardup: this crawl has ended with %(now)d pages on hosts where the last one of this spider,"
                " crawl %(last)d, had %(before)d; it has not seen %(examples)s",
                {
                    "now": last.pages_now,
                    "last": last.crawl_id,
                    "before": last.pages,
                    "examples": ", ".join(last.missing),
                },
                extra={"spider": self._crawler.spider},
            )

    def log_audit(self, budget: float | None) -> None:
        """Say why the crawl ends before all requests are made."""
        stats = self._crawler.stats
        logger.info(
            "neardup: the crawl ends: %(sampled)d random requests out of those that waited led to %(unique)d"
            " unique pages. So it is 95 %% sure that the %(left)d requests that are left lead to at most"
            " %(budget)g of the unique pages (NEARDUP_LOSS_BUDGET)",
            {
                "sampled": stats.get_value("neardup/audit/sampled", 0),
                "unique": stats.get_value("neardup/audit/unique", 0),
                "left": stats.get_value("neardup/audit/left", 0),
                "budget": budget,
            },
            extra={"spider": self._crawler.spider},
        )

    def log_summary(self) -> None:
        stats = self._crawler.stats.get_stats()
        logger.info(
            "%(summary)s",
            {"summary": summary.of_crawl(stats, self._recorder.location)},
            extra={"spider": self._crawler.spider},
        )

    def log_progress(self) -> None:
        self.update_stats()
        logger.info(
            "%(progress)s",
            {"progress": summary.progress(self._crawler.stats.get_stats(), self._recorder.backlog)},
            extra={"spider": self._crawler.spider},
        )

    def counts(self) -> dict[str, int | str | None]:
        """What the ``crawls`` table keeps of the crawl, which ends."""
        self.update_stats()
        counts = summary.counts_of_crawl(self._crawler.stats.get_stats())
        links = self._links.lost_by_space()
        left = (replace(space, links=links[key]) for key, space in self._left.items())
        return {**counts, "curve": json.dumps(self._curve.points), "endless_spaces": as_text(left)}

    def update_stats(self) -> None:
        """Set the stats that are sums kept elsewhere."""
        stats, detector = self._crawler.stats, self._recorder.detector
        # With a job directory, what is left in the queue is made by the next run.
        left = max(self._links.still_deferred, stats.get_value("neardup/audit/left", 0))
        saved = 0 if job_dir(self._crawler.settings) else left
        saved += stats.get_value("neardup/predicted/dropped", 0)
        saved -= stats.get_value("neardup/predicted/requeued", 0)
        values = {
            "requests_saved_at_least": saved,
            "lost_candidates": self._links.lost_candidates,
            "index_size": len(detector.index),
            "queries": detector.index.stats.queries,
            "probes": detector.index.stats.probes,
            "empty_probes": detector.index.stats.empty_probes,
            "candidates": detector.index.stats.candidates,
            **{f"seconds/{step}": round(spent, 6) for step, spent in asdict(detector.reader.seconds).items()},
            "seconds/search": round(detector.search_seconds, 6),
            **self._recorder.stats(),
        }
        for name, value in values.items():
            stats.set_value(f"neardup/{name}", value)
        estimate = detector.recall.estimate() if detector.recall is not None else None
        if estimate is not None:
            stats.set_value("neardup/recall_checked", estimate.checked)
            stats.set_value("neardup/recall_found", estimate.found)
            stats.set_value("neardup/recall", round(estimate.recall, 4))
            stats.set_value("neardup/recall_low", round(estimate.low, 4))
            stats.set_value("neardup/recall_high", round(estimate.high, 4))

    def _count_evidence(self, verdict: Verdict) -> None:
        """Count a duplicate by its evidence, and remember that if the duplicate may be judged again."""
        assert verdict.evidence is not None
        assert verdict.page_id is not None
        counted = _AsBefore(verdict.evidence, verdict.distance, verdict.canonical_id, verdict.repeated)
        self._count_as(counted, 1)
        if verdict.is_doubtful:
            keep_latest(self._doubtful, verdict.page_id, counted, _MOST_DOUBTFUL)

    def _count_as(self, duplicate: _AsBefore, number: int) -> None:
        stats = self._crawler.stats
        stats.inc_value(summary.STAT_OF_EVIDENCE[duplicate.evidence], number)
        if duplicate.distance == 0:
            stats.inc_value("neardup/exact_duplicates", number)

    def _count_unjudged(self, verdict: Verdict, limit: str) -> None:
        stats = self._crawler.stats
        stats.inc_value(summary.STAT_OF_LIMIT[limit])
        if stats.get_value(summary.STAT_OF_KIND[Kind.UNJUDGED]) == 1:
            logger.warning(
                "neardup: %(url)s passes untouched: %(reason)s (further ones are not logged)",
                {"url": verdict.url, "reason": verdict.reason},
                extra={"spider": self._crawler.spider},
            )

    def _is_flagged_by(self, verdict: Verdict) -> bool:
        """Flag a canonical page that gathers duplicates from many addresses: a person should look at it."""
        flag = self._watch.judged(verdict.url, verdict.copy_of)
        if flag is None:
            return False
        assert verdict.canonical_id is not None
        self.count("neardup/flagged")
        self._recorder.flag(verdict.canonical_id)
        self._flagged += 1
        if self._flagged <= _MOST_FLAGS_TOLD:
            logger.warning(
                "neardup: %(canonical)s has near-duplicates at %(addresses)d addresses, among %(pages)d"
                " pages: is it an error page, a login wall, an empty listing, or filled by scripts?"
                " The last of them: %(url)s%(more)s",
                {
                    "canonical": verdict.canonical_url,
                    "addresses": flag.addresses,
                    "pages": flag.pages,
                    "url": verdict.url,
                    "more": _FLAGS_NOT_TOLD if self._flagged == _MOST_FLAGS_TOLD else "",
                },
                extra={"spider": self._crawler.spider},
            )
        return True
