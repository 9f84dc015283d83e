"""What a crawl has had of pages beside their texts: before a page is dropped, nothing of it may be new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse

from neardup.address import host_of, may_be_one_site
from neardup.detection.rule import Evidence
from neardup.text.anchors import links
from neardup.text.beside import beside, data, title
from neardup.text.media import words_not_shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from scrapy.http import Response

    from neardup.detection.verdict import Verdict

MOST_REMEMBERED = 1_000_000
"""Names and links that are remembered, some 100 MB. When there are more, all are forgotten: then fewer pages
are dropped, and none is lost.
"""


class Had:
    """Texts and names of media, by cluster, and links of the pages whose callbacks this crawl has called."""

    def __init__(self, expects_copy: Callable[[str], bool]) -> None:
        """``expects_copy`` tells of a URL whether its page is next to surely a copy."""
        self._expects_copy = expects_copy
        self._texts: set[int] = set()
        self._names: set[int] = set()
        self._links: set[int] = set()

    def has_text(self, verdict: Verdict) -> bool:
        """Whether a page of the cluster had the very text of a page; from now on one has.

        A canonical page is one of many: the text may be that of another duplicate, of an old version, say.
        """
        if verdict.fingerprint is None:
            return False
        text = f"text {verdict.text_digest} {verdict.fingerprint.value}"
        return not self._new(self._texts, self._of_cluster(verdict, (text,)))

    def has_more(self, response: Response, verdict: Verdict) -> bool:
        """Whether a page has something beside its text that no page of its cluster had; from now on one has.

        Media, files, the title, data for scripts and words that are not shown count. If people have said that
        the page is a copy, only media and files do.
        """
        if not isinstance(response, HtmlResponse):
            return False
        root = response.selector.root
        names = beside(response.url, root, links(response.url, root))
        has_more = self._new(self._names, self._of_cluster(verdict, names))
        told = [f"title {title(root)}", *(f"data {each}" for each in data(root))]
        told += [f"word {each}" for each in words_not_shown(response.url, root)]
        is_told = self._new(self._names, self._of_cluster(verdict, told))
        return has_more or (is_told and verdict.evidence is not Evidence.DECISION)

    def leads_on(self, response: Response) -> bool:
        """Whether a page has links that this crawl may not have had, if its callback is not called.

        Links must have been met, or their pages must be copies next to surely. Even under the very text of
        another page, links may lead to other versions of pages.
        """
        own = self._links_of(response)
        return any(hash(link) not in self._links and not self._expects_copy(link) for link in own)

    def heard(self, response: Response) -> None:
        """Take note of the links of a page whose callback is called."""
        self._new(self._links, map(hash, self._links_of(response)))

    def _links_of(self, response: Response) -> Collection[str]:
        """The links of a page to its own site."""
        if not isinstance(response, HtmlResponse):
            return ()
        host = host_of(response.url)
        found = links(response.url, response.selector.root)
        return [link for link in found if may_be_one_site(host_of(link), host)]

    @staticmethod
    def _of_cluster(verdict: Verdict, names: Iterable[str]) -> set[int]:
        cluster = verdict.canonical_id if verdict.is_duplicate else verdict.page_id
        return {hash((cluster, name)) for name in names}

    @staticmethod
    def _new(known: set[int], found: Iterable[int]) -> bool:
        """Whether something of ``found`` was not known; from now on it is."""
        new = set(found) - known
        if len(known) + len(new) > MOST_REMEMBERED:
            known.clear()
        known |= new
        return bool(new)
