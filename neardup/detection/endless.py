"""When to stop following the links of near-alike pages.

Such pages are those of endless calendars, of session ids handed out anew, and beyond the last page of a
listing. Requests that come out of duplicates are made last, but they are made. In an endless space each such
request leads to another duplicate with links of its own, and the crawl would never end. So the requests that
the duplicates of one canonical page have led to are counted:

=================================================================  ==========================================
a request has led to                                               the count of the cluster that it came from
=================================================================  ==========================================
a page that is new to this crawl, and says something of its own    begins anew
a page that cannot be judged, or a duplicate with a phrase that    falls by ``WORTH``, to 0 at the least
no page has that the cluster has led to (numbers aside)
a duplicate with new links, and with numbers of its own that last  falls by ``WORTH``, to 0 at the least
another duplicate of a page that the cluster has led to            stays
``OFTEN`` times at most, as old versions and mirrors do
another page that says and shows just what a page has that the    stays
cluster has led to, ``OFTEN`` times at most
another page that stands where a page does that the cluster has    stays; seven of eight at most
led to, but for the first directory: in another version, say
another duplicate without new links, but with numbers of its own   stays: what leads no further is not endless
any of the next three, near to a page that did not wait, or at an  stays, see ``neardup.scrapy.links``
address that the spider has made up
a page that says nothing which an exhausted cluster has not said   rises by 1; ten in a row are enough
another page without new links                                     rises by 1/2
any other page                                                     rises by 1
=================================================================  ==========================================

A cluster is exhausted when its count reaches the limit. A shop's listings are near-alike, but lead to
products. The count of listings stays low even where the products are near-alike, too, because each product
has a name or a number. The months of a calendar differ in numbers and in the twelve names of months, which
are soon known. The days of a calendar have no numbers of their own. In phrases, words with a digit are all
alike, so that a clock, a counter or a session id says nothing.

The numbers of a page tell as well: the draws of a lottery, the readings of a day. Two words in a row tell, of
which one is a number, and so do all numbers together that do not stand in the URL. Numbers of dates do not
tell. Else no day of a calendar would count. Clocks and counters have numbers, too. So a page with numbers of
its own is asked for once more from time to time. Numbers in places where others stand then are made up, on
all pages of the host. If the rest is the same, numbers tell as much as words. They do not if the URLs of the
pages count, and show no end.

A page that is new by its verdict may say nothing of its own but a date. Such a page joins the cluster that
has led to the page: the duplicates of the page count for that cluster. Pages that say the same but for dates
(:mod:`neardup.detection.skeletons`) count as one page, and links of theirs wait as those of duplicates do.

A space whose every page has a random word would never be exhausted by that. So after each ``IN_DOUBT`` times
the limit it is doubted that the last words of a page's own are content. Whoever asks for that page again can
tell: random words are others then. Only some kinds of pages may have random words: recommendations, but not
the products beside them. So the last such page of each kind can be asked for, by the shapes of URLs. If all
were random, words of these kinds count no longer, and the cluster begins at half the limit. And
``MOST_WITHOUT_NEW`` times the limit is the end, whatever the pages say, unless one of them is new.

A space may lead to new pages by some of its pages only: by months, but not by days. Where days are asked for
first, they exhaust the cluster before the months have their turn. So pages of a kind that has led to new ones
are followed for a while beyond the end (:mod:`neardup.detection.fruitful`).

A chain of alike pages that ends looks endless from within. So whoever has learned that a cluster is exhausted
may :meth:`~EndlessWatch.question` that, at once, look at what comes further on, and let it
:meth:`~EndlessWatch.go_on`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from neardup.address import host_of
from neardup.detection.fruitful import FruitfulShapes
from neardup.detection.latest import keep_latest
from neardup.detection.page_numbers import Said, changed, numbers_beside
from neardup.detection.skeletons import Skeletons
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from neardup.detection.page_numbers import Numbers, Place
    from neardup.text.headline import Headline

LIMIT = 200
"""Count at which a cluster is exhausted, unless said otherwise."""

WORTH = 4
"""What a page with something to say of its own is worth. So an endless space ends if fewer than a fifth of
its pages say something of their own. Random ids of four hexadecimal letters have no digit on one page of
fifty.
"""

IN_DOUBT = 2
"""Times the limit: requests in a row without a page that is new, after which words are doubted."""

_MOST_KINDS = 4
"""Kinds of pages of which the last one with words of its own is remembered in each cluster."""

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

_OF_ENDED = 10
"""Pages in a row that an exhausted cluster has led to as well, after which another one is exhausted."""

_MOST_ENDED = 100
"""Exhausted clusters that are asked what they have led to, the last ones."""

_MOST_RANDOM = 1_000
"""Shapes of URLs of pages with random words that are remembered, the last ones."""

_FIRST_ASKED = 0.25
"""Times the limit: pages with numbers of their own, after which the last of them is asked for once more. If
its numbers last, the next one is asked for after twice as many pages.
"""

_PHRASE = 3
"""Words of a phrase, as many as in the shingles of the sketches: names are often made of words that are known
one by one.
"""

_MOST_REMEMBERED = 1_000_000
"""Phrases and pages remembered, 100 MB. When there are more, all are forgotten: that makes crawls longer, and
loses nothing.
"""

_MOST_CLUSTERS = 100_000
"""Clusters that are remembered; the one that has been quiet the longest is forgotten first."""


class Led(Enum):
    """What a request that came out of a duplicate has led to."""

    NEW = "new to this crawl"
    NEW_NUMBERS = "new to this crawl by numbers alone, which may be made up"
    OWN_WORDS = "not judged, or with something to say of its own"
    OWN_NUMBERS = "numbers of its own, which last, and new links"
    LITTLE = "little that is new, or near the way in, so that it is no sign of an endless space"
    OF_ENDED = "nothing that an exhausted cluster has not led to"
    LEAF = "nothing new, and no new links"
    NOTHING = "nothing new, but new links"


class Own(NamedTuple):
    """A page that had words of its own: its URL, and the hashes of the phrases that no page had."""

    url: str
    phrases: set[int]
    shape: str = ""
    """That of the URL."""


@dataclass(slots=True, eq=False)
class _Cluster:
    count: float = 0.0
    without_new: int = 0
    phrases: set[int] = field(default_factory=set)
    """Hashes of the phrases of the pages that the cluster has led to; they live as long as this process."""
    times: dict[int, int] = field(default_factory=dict)
    """How many duplicates of a canonical page, by its id, the cluster has led to."""
    saying: dict[int, int] = field(default_factory=dict)
    """How many pages the cluster has led to that say and show the same, by a hash of that."""
    places: set[int] = field(default_factory=set)
    """Where the pages stand that the cluster has led to, as hashes."""
    of_versions: int = 0
    """Pages that did not count because of their places, since the last one that was new."""
    allowed: float = 0.0
    """What the count may reach beyond the limit, because of what was seen further on."""
    questions: int = 0
    of_ended: int = 0
    """Pages in a row that an exhausted cluster has led to as well."""
    question: int | None = None
    """The number of the question that is open."""
    own: OrderedDict[str, Own] = field(default_factory=OrderedDict)
    """The last one of each shape of URL since the cluster was exhausted."""
    doubted: int = 0
    """Requests in a row without a page that is new, when the cluster was exhausted last."""
    in_doubt: tuple[Own, ...] = ()
    news: int = 0
    """Pages that were new."""
    numbers_last: bool = False
    """Whether all numbers were the same when a page was asked for last."""
    with_numbers: int = 0
    """Pages with numbers of their own since then."""
    ask_after: float = 0.0
    """So many such pages are waited for; 0: nothing was asked yet."""
    to_ask: Numbers | None = None
    """The numbers of the last page, if that page is to be asked for once more."""

    def add(self, phrases: Iterable[int]) -> bool:
        """Whether one of the phrases was not known."""
        known = len(self.phrases)
        self.phrases.update(phrases)
        return len(self.phrases) > known

    def lets_version_pass(self) -> bool:
        """Whether a page that stands where another one does, in another version, does not count.

        Seven of eight do not: a circle of links makes such addresses without end.
        """
        passes = self.of_versions < (OFTEN - 1) * self.without_new
        self.of_versions += passes
        return passes

    @property
    def size(self) -> int:
        return len(self.phrases) + len(self.times) + len(self.saying) + len(self.places)


class EndlessWatch:
    """Counts what the duplicates of each canonical page have led to, in one crawl.

    With a ``limit`` of 0, nothing is ever exhausted.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._fruitful = FruitfulShapes(limit)
        self._random: OrderedDict[str, None] = OrderedDict()
        """Shapes of the URLs of pages whose words were others when such a page was asked for once more."""
        self._skeletons = Skeletons()
        """Canonical pages that say the same but for dates are one page here: the first of them."""
        self._clusters: OrderedDict[int, _Cluster] = OrderedDict()
        self._exhausted: dict[int, None] = {}
        self._joined: dict[int, int] = {}
        """Clusters of canonical pages that said nothing of their own."""
        self._made_up: dict[str, set[Place]] = {}
        """Where numbers stand, by host, that were others when a page was asked for once more."""
        self._remembered = 0
        self._questions = 0

    def is_exhausted(self, canonical_id: int) -> bool:
        """Whether the links of the duplicates of a canonical page are to be followed no further."""
        return canonical_id in self._exhausted

    def is_fruitful(self, canonical_id: int, shape: str) -> bool:
        """Whether an exhausted cluster still leads to pages of this shape of URL: not long ago, such pages
        were new, or led to new ones.
        """
        is_at_end = self._cluster(canonical_id).without_new >= MOST_WITHOUT_NEW * self.limit
        return not is_at_end and shape in self._fruitful

    def cluster_of(self, canonical_id: int) -> int:
        """The cluster that the duplicates of a canonical page count for: its own, or one it has joined."""
        first = self._skeletons.first_like(canonical_id)
        return self._joined.get(first, first)

    def is_like_others(
        self, url: str, page_id: int, headline: Headline | None, text: Callable[[], str]
    ) -> bool:
        """Whether other pages say the same as a page that may be canonical, but for numbers.

        ``text`` gives the text of the page, and is called if it is needed.
        """
        return self._skeletons.add(url, page_id, headline, text, self.made_up_on(url))

    def says_a_date(self, page_id: int) -> bool:
        """Whether a page has turned out to say the same as another one but for dates."""
        return self._skeletons.first_like(page_id) != page_id

    def first_saying(self, url: str, text: str) -> int | None:
        """The first page, by its id, that says the same as a text but for dates."""
        return self._skeletons.first_saying(url, text, self.made_up_on(url))

    def compare(
        self,
        cluster_id: int,
        canonical_id: int,
        text: str,
        *,
        is_new: bool = False,
        new_links: bool,
        url: str = "",
        shape: str = "",
        shown: Iterable[str] = (),
        numbers: Collection[str] = (),
        places: Collection[str] = (),
    ) -> Led:
        """What it is worth that a cluster has led to a duplicate of a canonical page, with this text.

        ``is_new``: to that page itself. If the page has nothing of its own, the page joins the cluster.
        ``new_links``: the page has links that no page had. ``url`` is remembered if the page has words of its
        own, and is the last such page of this ``shape`` of URL. ``shown`` and ``numbers`` are what the page
        has beside its text. ``places``: where it stands on its host, and without the name of a version.
        """
        cluster = self._cluster(cluster_id)
        before = cluster.size
        canonical_id = self._skeletons.first_like(canonical_id)
        times = cluster.times.get(canonical_id, 0)
        cluster.times[canonical_id] = times + 1
        said = Said(words(text))
        phrases = set(_phrases_without_numbers(said))
        own_words = set() if self.is_random(shape) else phrases - cluster.phrases
        cluster.phrases |= phrases
        own_numbers, beside_url = self._own_numbers(cluster, said, url)
        same = hash((said.but_made_up(self.made_up_on(url)), frozenset(shown)))
        # Numbers that are not shown may be made up, or all that tells a page from others.
        beside = [hash((same, frozenset(numbers)))] if numbers else []
        has_said = [self._has_said(cluster, each) for each in (same, *beside)]
        stands_at = set(map(hash, places))
        of_version = not cluster.places.isdisjoint(stands_at)
        cluster.places |= stands_at
        self._remembered += cluster.size - before
        if self._remembered > _MOST_REMEMBERED:
            self._forget()
        of = None if is_new else canonical_id
        has_ended = not own_numbers and self._has_ended(cluster_id, of, phrases)
        if own_words and not has_ended:
            keep_latest(cluster.own, shape, Own(url, own_words, shape), _MOST_KINDS)
        if is_new:
            if (own_words or own_numbers) and not has_ended:
                return Led.NEW if own_words else Led.NEW_NUMBERS
            self._joined[canonical_id] = cluster_id
            self._remembered += 1
            times, has_said = OFTEN, []
        if has_ended:
            return Led.OF_ENDED
        if own_words:
            return Led.OWN_WORDS
        if beside_url and new_links and cluster.numbers_last:
            return Led.OWN_NUMBERS
        is_known = times < OFTEN or any(has_said) or (of_version and cluster.lets_version_pass())
        if is_known or (own_numbers and not new_links):
            return Led.LITTLE
        return Led.NOTHING if new_links else Led.LEAF

    @staticmethod
    def _has_said(cluster: _Cluster, same: int) -> bool:
        """Whether pages have said just what one says, ``OFTEN`` times at most; from now on one more has."""
        times = cluster.saying.get(same, 0)
        cluster.saying[same] = times + 1
        return 0 < times < OFTEN

    def _has_ended(self, cluster_id: int, canonical_id: int | None, phrases: set[int]) -> bool:
        """Whether another cluster, one of those that were exhausted last, has led to pages that say as much.
        Numbers are left out. It has to have led to duplicates of the same page as well, if there is one.
        """
        return any(
            ended != cluster_id
            and (canonical_id is None or self.is_of(ended, canonical_id))
            and self._cluster(ended).phrases.issuperset(phrases)
            for ended in islice(reversed(self._exhausted), _MOST_ENDED)
        )

    def _own_numbers(self, cluster: _Cluster, said: Said, url: str) -> tuple[bool, bool]:
        """Whether a page of these words has numbers that no page of the cluster had. Dates are left out. The
        second answer leaves out the numbers of the page's URL as well.
        """
        dated = said.dated(self.made_up_on(url))
        indices = said.numbers_but(dated)
        numbers = tuple(said.words[index] for index in indices)
        beside = numbers_beside(numbers, url)
        # The same hours of a day are others beside the URL of the fifth of May and that of the fourth.
        beside_url = cluster.add([hash(numbers)]) and bool(beside)
        beside_url = beside_url and (beside == numbers or cluster.add([hash(beside)]))
        own = cluster.add(_phrases_with(indices, said.words, dated)) or beside_url
        cluster.with_numbers += own
        cluster.to_ask = None
        if own and cluster.with_numbers >= (cluster.ask_after or _FIRST_ASKED * self.limit):
            cluster.to_ask = said.by_place()
        return own, beside_url

    def numbers_to_ask(self, cluster_id: int) -> Numbers | None:
        """The numbers of the last page of a cluster, if it is time to ask for that page once more."""
        cluster = self._cluster(cluster_id)
        to_ask, cluster.to_ask = cluster.to_ask, None
        if to_ask is not None:
            cluster.with_numbers = 0
            cluster.ask_after = 2 * (cluster.ask_after or _FIRST_ASKED * self.limit)
        return to_ask

    def last(self, cluster_id: int, numbers: Numbers, text: str, url: str) -> bool:
        """Whether numbers of a page last: its text has the same when the page is asked for once more. Numbers
        that were others before are left out; which these are is learned here.
        """
        where = changed(numbers, Said(words(text)).by_place())
        if where is None:
            return False
        made_up = self._made_up.setdefault(host_of(url), set())
        where -= made_up
        made_up |= where
        self._remembered += len(where)
        if where:
            cluster = self._cluster(cluster_id)
            cluster.numbers_last, cluster.ask_after = False, 0.0
        return not where

    def trust_numbers(self, cluster_id: int) -> None:
        """Take the numbers of a cluster that last for content."""
        self._cluster(cluster_id).numbers_last = True

    def led(self, canonical_id: int, to: Led, *, shape: str = "", out_of: str = "") -> bool:
        """Count what a request of a cluster has led to; whether that exhausts the cluster, the one time that
        it does.

        ``shape`` is that of the URL of the page, ``out_of`` that of the page with the link; "": it is not
        known.
        """
        if not self.limit:
            return False
        cluster = self._cluster(canonical_id)
        if to in {Led.NEW, Led.NEW_NUMBERS}:
            cluster.count, cluster.without_new, cluster.allowed = 0.0, 0, 0.0
            cluster.of_versions = 0
            cluster.questions, cluster.question = 0, None
            cluster.doubted, cluster.of_ended = 0, 0
            cluster.own.clear()
            cluster.news += 1
            self._exhausted.pop(canonical_id, None)
            if to is Led.NEW and out_of:
                self._fruitful.bear(canonical_id, out_of, shape)
            return False
        if to is Led.LITTLE:
            return False
        cluster.without_new += 1
        change: float
        if to in {Led.OWN_WORDS, Led.OWN_NUMBERS}:
            change, cluster.of_ended = -WORTH, 0
        else:
            change = 0.5 if to is Led.LEAF else 1.0
            cluster.of_ended += to is Led.OF_ENDED
        cluster.count = max(0.0, cluster.count + change)
        self._fruitful.count(shape, change)
        over = (
            cluster.count >= self.limit + cluster.allowed
            or cluster.of_ended >= _OF_ENDED + cluster.allowed
            or cluster.without_new >= MOST_WITHOUT_NEW * self.limit + cluster.allowed
        )
        if cluster.question is not None or canonical_id in self._exhausted:
            return False
        in_doubt = not over and cluster.without_new - cluster.doubted >= IN_DOUBT * self.limit
        if not over and not (in_doubt and cluster.own):
            return False
        cluster.doubted = cluster.without_new
        cluster.in_doubt = tuple(reversed(cluster.own.values())) if in_doubt else ()
        cluster.own.clear()
        self._exhausted[canonical_id] = None
        return True

    def in_doubt(self, canonical_id: int) -> tuple[Own, ...]:
        """The words because of which a cluster has just been exhausted, the last ones first; empty: it was
        for another reason.
        """
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
        self._exhausted.pop(canonical_id, None)
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

    def distrust(self, canonical_id: int, question: int) -> None:
        """Let a cluster whose words were doubted, and have turned out to be random, go on for half the limit.
        Words of such pages tell nothing from now on, in whatever cluster.
        """
        cluster = self._cluster(canonical_id)
        for own in cluster.in_doubt:
            keep_latest(self._random, own.shape, None, _MOST_RANDOM)
        if cluster.question == question:
            cluster.question = None
            cluster.count = max(cluster.count, self.limit / 2)

    def is_random(self, shape: str) -> bool:
        """Whether pages of this shape of URL have had random words."""
        return shape in self._random

    def count_anew(self, canonical_id: int, question: int | None = None) -> bool:
        """Let a cluster go on whose pages have turned out to say something of their own, though not in words.
        False: it has done so for too long, or ``question`` is not the one that is open.
        """
        cluster = self._cluster(canonical_id)
        if cluster.question != question or cluster.without_new >= MOST_WITHOUT_NEW * self.limit:
            return False
        cluster.count, cluster.of_ended, cluster.question = 0.0, 0, None
        self._exhausted.pop(canonical_id, None)
        return True

    def end(self, canonical_id: int, question: int) -> bool:
        """Take a cluster whose end is in question as exhausted. False: the question is not open any more, as
        when the cluster has led to a new page.
        """
        cluster = self._cluster(canonical_id)
        if cluster.question != question:
            return False
        cluster.question = None
        self._exhausted[canonical_id] = None
        return True

    def nears_end(self, canonical_id: int) -> bool:
        """Whether a cluster has led to nothing new for half as long as exhausts it at the earliest."""
        return 2 * self._cluster(canonical_id).without_new >= self.limit > 0

    @staticmethod
    def has_phrases(text: str, own: Own) -> bool:
        """Whether a text has some of the phrases that only one page had."""
        return not own.phrases.isdisjoint(_phrases_without_numbers(Said(words(text))))

    def news(self, canonical_id: int) -> int:
        """How many pages that were new a cluster has led to: with each, the count begins anew."""
        return self._cluster(canonical_id).news

    def is_of(self, cluster_id: int, canonical_id: int) -> bool:
        """Whether a duplicate of a canonical page is one of those that the cluster has led to."""
        if cluster_id == self.cluster_of(canonical_id):
            return True
        return self._skeletons.first_like(canonical_id) in self._cluster(cluster_id).times

    def says_nothing(self, cluster_id: int, text: str) -> bool:
        """Whether pages that the cluster has led to have said all that a text says; the text is forgotten."""
        return self._cluster(cluster_id).phrases.issuperset(_phrases_without_numbers(Said(words(text))))

    def made_up_on(self, url: str) -> Collection[Place]:
        """Where numbers are made up on the host of a URL, as far as is known."""
        return self._made_up.get(host_of(url), ())

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
            cluster.saying.clear()
            cluster.places.clear()
            cluster.own.clear()
            cluster.in_doubt = ()
        self._made_up.clear()
        self._joined.clear()
        self._remembered = 0


def _phrases_without_numbers(said: Said) -> Iterable[int]:
    return _phrases(said.without_numbers(), _PHRASE)


def _phrases_with(indices: Iterable[int], found: Sequence[str], dated: Collection[int]) -> Iterable[int]:
    """Hashes of two words in a row, of which one is a number at one of the indices. A dated one is empty."""
    starts = {start for index in indices for start in (index - 1, index) if 0 <= start < len(found) - 1}
    for start in starts:
        yield hash(tuple("" if at in dated else found[at] for at in (start, start + 1)))


def _phrases(found: list[str], width: int) -> Iterable[int]:
    """Hashes of the runs of so many words."""
    if len(found) < width:
        return [hash((width, *found))]
    return map(hash, zip(*(found[place:] for place in range(width)), strict=False))
