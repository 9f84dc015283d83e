"""What a crawl has had of pages beside their texts: before a page is dropped, nothing of it may be new."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from scrapy.extensions.httpcache import rfc1123_to_epoch
from scrapy.http import HtmlResponse

from neardup.address import host_of, may_be_one_site
from neardup.detection.rule import Evidence
from neardup.detection.wordings import Wordings, wording
from neardup.text.amounts import amounts
from neardup.text.anchors import anchor_texts, links
from neardup.text.beside import beside, data, title, written_addresses
from neardup.text.media import not_shown, symbols
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from scrapy.http import Response

    from neardup.detection.verdict import Verdict

MOST_REMEMBERED = 1_000_000
"""Names that are remembered, some 100 MB; as many links, and as many contents. When there are more, all are
forgotten: then fewer pages are dropped, and none is lost.
"""


FEW_LINKS = 3
"""Links that were not met by which a copy is taken for one of a chain. Where session ids are handed out anew,
all links of a page are such ones.
"""


class Content(NamedTuple):
    """What a page has beside its words: names of media and files; amounts, and what is not shown or leads
    elsewhere. ``said`` is the wording of all that, and of its words, if words are compared.
    """

    names: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()
    said: bytes = b""


class Had:
    """What pages had, by cluster, and links of the pages whose callbacks this crawl has called."""

    def __init__(
        self,
        expects_copy: Callable[[str], bool],
        text: Callable[[Response], str],
        *,
        compares_words: bool = False,
    ) -> None:
        """``expects_copy`` tells of a URL whether its page is next to surely a copy. ``text`` gives the
        visible text of an HTML page. ``compares_words``: words count as what stands beside a text does.
        """
        self._expects_copy = expects_copy
        self._text = text
        self._holders: dict[int, int] = {}
        self._names: set[int] = set()
        self._links: set[int] = set()
        self._wordings = Wordings() if compares_words else None

    def content(self, response: Response) -> Content:
        """What a page has beside its text."""
        if not isinstance(response, HtmlResponse):
            return Content()
        root = response.selector.root
        names = beside(response.url, root, links(response.url, root), _requested(response))
        told = {f"title {title(root)}", *(f"data {each}" for each in data(root))}
        hidden, numbers = not_shown(response.url, root)
        told.update(f"word {each}" for each in hidden)
        told.update(f"number {each}" for each in numbers)
        told.update(f"anchor {each}" for each in anchor_texts(root))
        text = self._text(response)
        told.update(f"amount {each}" for each in amounts(text))
        told.update(f"symbol {each}" for each in symbols(text))
        told.update(f"address {each}" for each in written_addresses(response.url, root))
        said = b"" if self._wordings is None else wording([*words(text), *told, *names])
        return Content(frozenset(names), frozenset(told), said)

    def has_more(self, content: Content, verdict: Verdict) -> bool:
        """Whether a page has something beside its text that no page of its cluster had; from now on one has.

        Media, files, the title, data for scripts, words and numbers that are not shown, and symbols count.
        The texts of anchors do, too: of a list of a hundred rows, one row may be another. So do amounts:
        adverts of one text may differ in a price. So do addresses that are written out, which are no part of
        a text. If people have said that the page is a copy, only media and files count. If words are
        compared, one page of the cluster must have said and shown all that it does, and have kept its items.
        """
        has_more = self._new(self._names, self._of_cluster(verdict, content.names))
        is_told = self._new(self._names, self._of_cluster(verdict, content.told))
        if self._wordings is not None:
            is_told |= not self._wordings.have(verdict.page_stood_for, content.said)
        return has_more or (is_told and verdict.evidence is not Evidence.DECISION)

    def item_has_more(self, words: frozenset[str], verdict: Verdict) -> bool:
        """Whether an item has words from elsewhere as no item of its page's cluster had; from now on one has.

        Each of the words may be known: names are often made of few words.
        """
        return bool(words) and self._new(self._names, {hash((verdict.page_stood_for, words))})

    def holder(self, content: Content, verdict: Verdict) -> int | None:
        """The id of another page of the cluster that had all that a page has, and kept its items. None: there
        is none.

        A canonical page is one of many: the page may be a copy of another duplicate, of an old version, say.
        """
        holder = self._holders.get(_whole(content, verdict))
        return None if holder == verdict.page_id else holder

    def keep(self, content: Content, verdict: Verdict) -> None:
        """Take note that a page, which has an id, keeps its items."""
        assert verdict.page_id is not None
        if len(self._holders) >= MOST_REMEMBERED:
            self._holders.clear()
        self._holders.setdefault(_whole(content, verdict), verdict.page_id)
        if self._wordings is not None:
            self._wordings.add(verdict.page_stood_for, content.said)

    def leads_on(self, response: Response) -> bool:
        """Whether a page has links that this crawl may not have had, if its callback is not called.

        Links must have been met, or their pages must be copies next to surely. Even under the very text of
        another page, links may lead to other versions of pages. Few links that were not met may be those of a
        chain of copies, such as removed entries, behind which others come.
        """
        unmet = [link for link in self._links_of(response) if hash(link) not in self._links]
        return 0 < len(unmet) <= FEW_LINKS or not all(map(self._expects_copy, unmet))

    def heard(self, response: Response) -> None:
        """Take note of the links of a page whose callback is called."""
        self._new(self._links, map(hash, self._links_of(response)))

    def not_heard(self, response: Response) -> None:
        """Take note that the callback of a page may not have followed its links."""
        self._links.difference_update(map(hash, self._links_of(response)))

    def _links_of(self, response: Response) -> Collection[str]:
        """The links of a page to its own site."""
        if not isinstance(response, HtmlResponse):
            return ()
        host = host_of(response.url)
        found = links(response.url, response.selector.root)
        return [link for link in found if may_be_one_site(host_of(link), host)]

    @staticmethod
    def _of_cluster(verdict: Verdict, names: Iterable[str]) -> set[int]:
        return {hash((verdict.page_stood_for, name)) for name in names}

    @staticmethod
    def _new(known: set[int], found: Iterable[int]) -> bool:
        """Whether something of ``found`` was not known; from now on it is."""
        new = set(found) - known
        if len(known) + len(new) > MOST_REMEMBERED:
            known.clear()
        known |= new
        return bool(new)


def _whole(content: Content, verdict: Verdict) -> int:
    """A hash of a page's text and of all that stands beside it, in its cluster."""
    value = None if verdict.fingerprint is None else verdict.fingerprint.value
    return hash((verdict.page_stood_for, verdict.text_digest, value, content))


def _requested(response: Response) -> float:
    """When a page was made, by the clock of the site; by ours if the site does not say."""
    said = rfc1123_to_epoch(response.headers.get("Date"))
    return time.time() if said is None else float(said)
