"""When to stop following the links of near-alike pages.

Such pages are those of endless calendars, of session ids handed out anew, and beyond the last page of a
listing. Requests that come out of duplicates are made last, but they are made. In an endless space each such
request leads to another duplicate with links of its own, and the crawl would never end. So the requests that
the duplicates of one canonical page have led to are counted:

=================================================================  ==========================================
a request has led to                                               the count of the cluster that it came from
=================================================================  ==========================================
a page that is new to this crawl                                   begins anew
a page that cannot be judged, or a duplicate with a phrase that    falls by ``WORTH``, to 0 at the least
no page has that the cluster has led to (numbers aside)
another duplicate of a page that the cluster has led to            stays
``OFTEN`` times at most, as old versions and mirrors do
another duplicate without new links, but with numbers of its own   stays: what leads no further is not endless
any of the next two, near to a page that did not wait              stays, see ``neardup.scrapy.links``
another duplicate without new links                                rises by 1/2
any other duplicate                                                rises by 1
=================================================================  ==========================================

A cluster is exhausted when its count reaches the limit. A shop's listings are near-alike, but lead to
products. The count of listings stays low even where the products are near-alike, too, because each product
has a name or a number. The months of a calendar differ in numbers and in the twelve names of months, which
are soon known. The days of a calendar have no numbers of their own. In phrases, words with a digit are all
alike, so that a clock, a counter or a session id says nothing.

Of a page without new links, each three words with a number tell as well: the draws of a lottery, the readings
of a day. All pairs of small numbers are soon known. Numbers of dates do not tell, nor those that stand in the
URL. Else no day of a calendar would count.

A space whose every page has a random word would never be exhausted by that. So after each ``IN_DOUBT`` times
the limit it is doubted that the last words of a page's own are content. Whoever asks for that page again can
tell: random words are others then. And ``MOST_WITHOUT_NEW`` times the limit is the end, whatever the pages
say, unless one of them is new.

A chain of alike pages that ends looks endless from within. So whoever has learned that a cluster is exhausted
may :meth:`~EndlessWatch.question` that, at once, look at what comes further on, and let it
:meth:`~EndlessWatch.go_on`.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from neardup.text.headline import date_words
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Iterable

LIMIT = 200
"""Count at which a cluster is exhausted, unless said otherwise."""

WORTH = 4
"""What a page with something to say of its own is worth. So an endless space ends if fewer than a fifth of
its pages say something of their own. Random ids of four hexadecimal letters have no digit on one page of
fifty.
"""

IN_DOUBT = 2
"""Times the limit: requests in a row without a page that is new, after which words are doubted."""

MOST_WITHOUT_NEW = 50
"""Times the limit: requests in a row without a page that is new, after which a cluster is exhausted whatever
its pages say.
"""

OFTEN = 8
"""Duplicates of one page that a cluster may lead to before they count. The start pages of eight versions of a
manual are near-copies of each other. These start pages lead to eight copies of most pages, and to changed
ones between them.
"""

MOST_QUESTIONS = 3
"""Times that the end of a cluster may be put into question without a page that is new."""

_PHRASE = 3
"""Words of a phrase, as many as in the shingles of the sketches: names are often made of words that are known
one by one.
"""

_NUMBER = re.compile("[0-9]+")
_YEAR = re.compile("(?:19|20)[0-9]{2}")

_MOST_REMEMBERED = 1_000_000
"""Phrases and pages remembered, 100 MB. When there are more, all are forgotten: that makes crawls longer, and
loses nothing.
"""

_MOST_CLUSTERS = 100_000
"""Clusters that are remembered; the one that has been quiet the longest is forgotten first."""


class Led(Enum):
    """What a request that came out of a duplicate has led to."""

    NEW = "new to this crawl"
    OWN_WORDS = "not judged, or with something to say of its own"
    LITTLE = "little that is new, or near the way in, so that it is no sign of an endless space"
    LEAF = "nothing new, and no new links"
    NOTHING = "nothing new, but new links"


class Own(NamedTuple):
    """The last page that had words of its own: its URL, and the hashes of the phrases that no page had."""

    url: str
    phrases: set[int]


@dataclass(slots=True, eq=False)
class _Cluster:
    count: float = 0.0
    without_new: int = 0
    phrases: set[int] = field(default_factory=set)
    """Hashes of the phrases of the pages that the cluster has led to; they live as long as this process."""
    times: dict[int, int] = field(default_factory=dict)
    """How many duplicates of a canonical page, by its id, the cluster has led to."""
    allowed: float = 0.0
    """What the count may reach beyond the limit, because of what was seen further on."""
    questions: int = 0
    question: int | None = None
    """The number of the question that is open."""
    own: Own | None = None
    """The last one since the cluster was exhausted."""
    doubted: int = 0
    """Requests in a row without a page that is new, when the cluster was exhausted last."""
    in_doubt: Own | None = None
    news: int = 0
    """Pages that were new."""

    def add(self, phrases: Iterable[int]) -> bool:
        """Whether one of the phrases was not known."""
        known = len(self.phrases)
        self.phrases.update(phrases)
        return len(self.phrases) > known

    @property
    def size(self) -> int:
        return len(self.phrases) + len(self.times)


class EndlessWatch:
    """Counts what the duplicates of each canonical page have led to, in one crawl.

    With a ``limit`` of 0, nothing is ever exhausted.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._clusters: OrderedDict[int, _Cluster] = OrderedDict()
        self._exhausted: set[int] = set()
        self._remembered = 0
        self._questions = 0

    def is_exhausted(self, canonical_id: int) -> bool:
        """Whether the links of the duplicates of a canonical page are to be followed no further."""
        return canonical_id in self._exhausted

    def compare(
        self, cluster_id: int, canonical_id: int, text: str, *, new_links: bool, url: str = ""
    ) -> Led:
        """What it is worth that a cluster has led to a duplicate of a canonical page, with this text.

        ``new_links``: the duplicate has links that no page had. ``url`` is remembered if it has words so.
        """
        if not self.limit:
            return Led.LITTLE
        cluster = self._cluster(cluster_id)
        before = cluster.size
        times = cluster.times.get(canonical_id, 0)
        cluster.times[canonical_id] = times + 1
        found = words(text)
        own_words = set(_phrases_without_numbers(found)) - cluster.phrases
        cluster.phrases |= own_words
        own_numbers = cluster.add(_phrases(found, 2)) | cluster.add(_phrases_with_numbers(found, url))
        self._remembered += cluster.size - before
        if self._remembered > _MOST_REMEMBERED:
            self._forget()
        if own_words:
            cluster.own = Own(url, own_words)
            return Led.OWN_WORDS
        if times < OFTEN or (own_numbers and not new_links):
            return Led.LITTLE
        return Led.NOTHING if new_links else Led.LEAF

    def led(self, canonical_id: int, to: Led) -> bool:
        """Count what a request of a cluster has led to; whether that exhausts the cluster, the one time that
        it does.
        """
        if not self.limit:
            return False
        cluster = self._cluster(canonical_id)
        if to is Led.NEW:
            cluster.count, cluster.without_new, cluster.allowed = 0.0, 0, 0.0
            cluster.questions, cluster.question = 0, None
            cluster.doubted, cluster.own = 0, None
            cluster.news += 1
            self._exhausted.discard(canonical_id)
            return False
        if to is Led.LITTLE:
            return False
        cluster.without_new += 1
        if to is Led.OWN_WORDS:
            cluster.count = max(0.0, cluster.count - WORTH)
        else:
            cluster.count += 1.0 if to is Led.NOTHING else 0.5
        over = (
            cluster.count >= self.limit + cluster.allowed
            or cluster.without_new >= MOST_WITHOUT_NEW * self.limit + cluster.allowed
        )
        if cluster.question is not None or canonical_id in self._exhausted:
            return False
        in_doubt = not over and cluster.without_new - cluster.doubted >= IN_DOUBT * self.limit
        if not over and not (in_doubt and cluster.own):
            return False
        cluster.doubted = cluster.without_new
        cluster.in_doubt, cluster.own = (cluster.own if in_doubt else None), None
        self._exhausted.add(canonical_id)
        return True

    def in_doubt(self, canonical_id: int) -> Own | None:
        """The words because of which a cluster has just been exhausted; None: it was for another reason."""
        return self._cluster(canonical_id).in_doubt

    def question(self, canonical_id: int, *, in_doubt: bool = False) -> int | None:
        """Put the end of a cluster into question, and return the number of the question.

        The links of the cluster are followed until :meth:`go_on` or :meth:`end` gets that number. None: that
        has been done often enough. With a doubt, it never has.
        """
        cluster = self._cluster(canonical_id)
        if cluster.questions >= MOST_QUESTIONS and not in_doubt:
            return None
        cluster.questions += not in_doubt
        self._questions += 1
        cluster.question = self._questions
        self._exhausted.discard(canonical_id)
        return cluster.question

    def go_on(self, canonical_id: int, question: int, further: float) -> None:
        """Let a cluster whose end is in question count so much further, from what it counts by now."""
        cluster = self._cluster(canonical_id)
        if cluster.question == question:
            cluster.question = None
            cluster.allowed = max(cluster.count - self.limit, 0.0) + further

    def trust(self, canonical_id: int, question: int) -> None:
        """Let a cluster go on whose words were doubted, and have turned out to be content."""
        cluster = self._cluster(canonical_id)
        if cluster.question == question:
            cluster.question = None

    def count_anew(self, canonical_id: int, question: int | None = None) -> bool:
        """Let a cluster go on whose pages have turned out to say something of their own, though not in words.
        False: it has done so for too long, or ``question`` is not the one that is open.
        """
        cluster = self._cluster(canonical_id)
        if cluster.question != question or cluster.without_new >= MOST_WITHOUT_NEW * self.limit:
            return False
        cluster.count, cluster.question = 0.0, None
        self._exhausted.discard(canonical_id)
        return True

    def end(self, canonical_id: int, question: int) -> bool:
        """Take a cluster whose end is in question as exhausted. False: the question is not open any more, as
        when the cluster has led to a new page.
        """
        cluster = self._cluster(canonical_id)
        if cluster.question != question:
            return False
        cluster.question = None
        self._exhausted.add(canonical_id)
        return True

    def nears_end(self, canonical_id: int) -> bool:
        """Whether a cluster has led to nothing new for half as long as exhausts it at the earliest."""
        return 2 * self._cluster(canonical_id).without_new >= self.limit > 0

    @staticmethod
    def has_phrases(text: str, own: Own) -> bool:
        """Whether a text has some of the phrases that only one page had."""
        return not own.phrases.isdisjoint(_phrases_without_numbers(words(text)))

    def news(self, canonical_id: int) -> int:
        """How many pages that were new a cluster has led to: with each, the count begins anew."""
        return self._cluster(canonical_id).news

    def is_of(self, cluster_id: int, canonical_id: int) -> bool:
        """Whether a duplicate of a canonical page is one of those that the cluster has led to."""
        return canonical_id == cluster_id or canonical_id in self._cluster(cluster_id).times

    def says_nothing(self, cluster_id: int, text: str) -> bool:
        """Whether pages that the cluster has led to have said all that a text says; the text is forgotten."""
        return self._cluster(cluster_id).phrases.issuperset(_phrases_without_numbers(words(text)))

    def _cluster(self, canonical_id: int) -> _Cluster:
        cluster = self._clusters.setdefault(canonical_id, _Cluster())
        self._clusters.move_to_end(canonical_id)
        if len(self._clusters) > _MOST_CLUSTERS:
            _, quiet = self._clusters.popitem(last=False)
            self._remembered -= quiet.size
        return cluster

    def _forget(self) -> None:
        for cluster in self._clusters.values():
            cluster.phrases.clear()
            cluster.times.clear()
            cluster.own = cluster.in_doubt = None
        self._remembered = 0


def _phrases_without_numbers(found: list[str]) -> Iterable[int]:
    # Most words are letters only. To ask for those first takes a fourth of the time.
    return _phrases([word if word.isalpha() or not _has_digit(word) else "" for word in found], _PHRASE)


def _phrases_with_numbers(found: list[str], url: str) -> Iterable[int]:
    """Hashes of the phrases with a number that is no part of a date, and does not stand in the URL."""
    of_url = {number.lstrip("0") for number in _NUMBER.findall(url)}
    said, starts = list(found), set[int]()
    for place in [place for place, word in enumerate(found) if not word.isalpha() and _has_digit(word)]:
        first = max(0, place - _PHRASE + 1)
        near = found[first : place + _PHRASE]
        if found[place].lstrip("0") in of_url or any(map(_is_of_date, near)):
            said[place] = ""
        else:
            starts.update(range(first, place + 1))
    return [hash((_PHRASE, *said[start : start + _PHRASE])) for start in starts]


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _is_of_date(word: str) -> bool:
    return word in date_words() or _YEAR.fullmatch(word) is not None


def _phrases(found: list[str], width: int) -> Iterable[int]:
    """Hashes of the runs of so many words."""
    if len(found) < width:
        return [hash((width, *found))]
    return map(hash, zip(*(found[place:] for place in range(width)), strict=False))
