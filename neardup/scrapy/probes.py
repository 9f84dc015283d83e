"""Probes: requests for pages that surely do not exist, by which soft 404s are told."""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.utils.defer import deferred_from_coro

from neardup.address import place_of
from neardup.detection.verdict import Kind
from neardup.errors import PageTooLarge
from neardup.scrapy.options import Predict
from neardup.text.headline import titles_and_headings
from neardup.urls.soft_404 import MOST_WATCHED, Soft404s, named_in, without_name

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from neardup.detection.detector import Detector
    from neardup.detection.verdict import Found, Verdict
    from neardup.scrapy.outcomes import Outcomes
    from neardup.scrapy.predictions import Predictions
    from neardup.scrapy.recording import Onlooker, Recorder
    from neardup.urls.soft_404 import Probe

logger = logging.getLogger(__name__)

META_OF_PROBE = {
    "neardup": False,
    "dont_cache": True,
    "dont_merge_cookies": True,
    "dont_retry": True,
}
"""A probe is made once, leaves nothing in a cache, and has no part in a session."""

META_KEPT = ("proxy", "download_slot", "download_timeout")
"""What a probe is given of the meta of the request that it is due by: how a site is reached."""


class Probes:
    """Marks the soft 404s of one crawl (:mod:`neardup.urls.soft_404`), and makes the probes that tell.

    A probe goes past the scheduler and the spider, as Scrapy's request for ``robots.txt`` does. It passes all
    downloader middlewares, so ``ROBOTSTXT_OBEY``, delays and the guard hold for it as for any request. None
    is made unless URLs defer requests (``NEARDUP_PREDICT``).

    Of duplicates only sure ones count, because pages of one template are no soft 404s. Pages whose titles or
    headings name their own URLs count, too, if their whole texts are the same but for that.
    """

    def __init__(
        self,
        crawler: Crawler,
        recorder: Recorder | Onlooker,
        outcomes: Outcomes,
        predictions: Predictions,
    ) -> None:
        self._crawler = crawler
        self._recorder = recorder
        self._outcomes = outcomes
        self._predictions = predictions
        self._soft_404s = Soft404s()
        self._counted: OrderedDict[int, None] = OrderedDict()
        """Soft 404s by id, because their verdicts may be corrected."""
        self._named: OrderedDict[int, int] = OrderedDict()
        """By id: what the pages that name their own URLs are without that."""
        self._makes = predictions.predict in {Predict.DEFER, Predict.DROP}

    @property
    def _detector(self) -> Detector:
        return self._recorder.detector

    def read(self, verdict: Verdict, response: Response) -> None:
        """Take note of a page that names its own URL."""
        if not self._makes or verdict.page_id is None or verdict.kind in {Kind.TOO_SHORT, Kind.GONE}:
            return
        named = self._without_name(response.url, response)
        if named is not None:
            self._named[verdict.page_id] = named
            if len(self._named) > MOST_WATCHED:
                self._named.popitem(last=False)

    def _without_name(self, url: str, response: Response) -> int | None:
        """What a page is without the name of its URL; None if no title or heading has that name."""
        if not isinstance(response, HtmlResponse):
            return None
        root = response.selector.root
        if not named_in(url, ("".join(map(str, found.itertext())) for found in titles_and_headings(root))):
            return None
        text = self._detector.reader.text_of(url, root)
        return without_name(url, text.decode("utf-8", "surrogatepass"))

    def marked(self, verdict: Verdict) -> Verdict:
        """The verdict, marked if the page is a soft 404."""
        if not any(self._soft_404s.is_soft_404(verdict.url, of) for of in self._clusters(verdict)):
            return verdict
        assert verdict.page_id is not None
        self._count(verdict.page_id)
        return replace(verdict, soft_404=True)

    def _count(self, page_id: int) -> None:
        if page_id not in self._counted:
            self._outcomes.count("neardup/soft_404")
        self._counted[page_id] = None
        if len(self._counted) > MOST_WATCHED:
            self._counted.popitem(last=False)

    def _clusters(self, verdict: Verdict) -> list[int]:
        """What tells whether a page is a soft 404."""
        named = None if verdict.page_id is None else self._named.get(verdict.page_id)
        return [of for of in (_cluster(verdict), named) if of is not None]

    def judged(self, verdict: Verdict, request: Request | None) -> None:
        """Take note of a page that was judged, and make the probe that is due by that, if one is."""
        if not self._makes or request is None or request.method != "GET":
            return
        named = None if verdict.page_id is None else self._named.get(verdict.page_id)
        if named is not None:
            assert verdict.page_id is not None
            self._noted(verdict.url, verdict.page_id, named, request)
        cluster = _cluster(verdict)
        if cluster is None or not verdict.is_duplicate:
            return
        assert verdict.page_id is not None
        assert verdict.canonical_url is not None
        if place_of(verdict.canonical_url) == place_of(verdict.url):
            self._noted(verdict.canonical_url, cluster, cluster, request)
        self._noted(verdict.url, verdict.page_id, cluster, request)

    def _noted(self, url: str, page_id: int, cluster: int, request: Request) -> None:
        probe = self._soft_404s.copy(url, page_id, cluster)
        if probe is not None:
            kept = {name: request.meta[name] for name in META_KEPT if name in request.meta}
            asked = Request(probe.url, meta=kept | META_OF_PROBE)
            deferred_from_coro(self._make(probe, asked))

    async def _make(self, probe: Probe, request: Request) -> None:
        cluster: int | None = None
        try:
            cluster = await self._answer(probe, request)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the crawl goes on
            self._outcomes.failed_on(probe.url, exc)
        for page_id, url in self._soft_404s.answered(probe.site, cluster).items():
            self._count(page_id)
            self._recorder.soft_404(page_id)
            self._predictions.learner.observe_soft_404(url)

    async def _answer(self, probe: Probe, request: Request) -> int | None:
        """What the answer to a probe is a copy of, as :class:`Soft404s` names that; None: of nothing."""
        assert self._crawler.engine is not None
        try:
            response = await self._crawler.engine.download_async(request)
        except Exception as exc:  # noqa: BLE001  # robots.txt forbids it, the guard, or nobody answers
            logger.debug(
                "neardup: no answer to the probe %(url)s: %(reason)r", {"url": probe.url, "reason": exc}
            )
            return None
        self._outcomes.count("neardup/soft_404/probes")
        if not 200 <= response.status < 300 or place_of(response.url) != probe.site:
            return None
        named = self._without_name(probe.url, response)
        if named is not None:
            logger.info(
                "neardup: %(site)s serves pages that name what was asked for in place of pages that it does"
                " not have, such as %(probe)s: soft 404s",
                {"site": probe.site, "probe": probe.url},
                extra={"spider": self._crawler.spider},
            )
            return named
        found = self._canonical_like(response)
        if found is None:
            return None
        logger.info(
            "neardup: %(site)s serves copies of %(page)s in place of pages that it does not have, such as"
            " %(probe)s: soft 404s",
            {"site": probe.site, "page": self._detector.pages.urls[found.row], "probe": probe.url},
            extra={"spider": self._crawler.spider},
        )
        cluster = self._detector.pages.ids[found.row]
        self._recorder.flag(cluster)
        return cluster

    def _canonical_like(self, response: Response) -> Found | None:
        """The canonical page that a response is surely a copy of."""
        if not isinstance(response, HtmlResponse):
            return None
        try:
            found = self._detector.canonical_like(response.url, self._detector.reader.read_response(response))
        except PageTooLarge:
            return None
        return found if found is not None and found.evidence.is_sure else None


def _cluster(verdict: Verdict) -> int | None:
    """The cluster of a page that stands in it for sure; None: it stands in none."""
    if not verdict.is_duplicate:
        return verdict.page_id
    return verdict.canonical_id if verdict.is_sure else None
