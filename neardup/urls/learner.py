"""Learn, while crawling, from verdicts which URLs lead to what is known."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from neardup.address import may_be_one_site
from neardup.urls.dropping import is_another_address
from neardup.urls.evidence import MIN_LOWER
from neardup.urls.host_rules import WEIGHT, Estimate, HostRules, reduced
from neardup.urls.last_pages import LastPages
from neardup.urls.memory import Bucket, Memory, Page
from neardup.urls.parts import Parts, parts_of, without_alias
from neardup.urls.rules import LearnedRule, Prediction, Rule, Slot, State
from neardup.urls.slots import Component, Place, Reduced, beside, differences, page_key, places
from neardup.urls.substitutions import proposals, text_of
from neardup.urls.versions import COPIES, OTHERS, contexts_of, versions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.urls.slots import Context

MOST_PAGES = 100_000
"""Pages that are remembered, at 2 kB each. The older half of them is forgotten when there are more."""

MOST_UNDER_WAY = 1_000
"""More pages than a crawl has under way. The oldest ones, of which perhaps no answer comes, are forgotten."""

MOST_TOO_SHORT = 10_000
"""Pages that are remembered although they are too short to be judged, at 1 kB each."""

MOST_RULES = 200_000
"""Rules of all hosts together, at 0.5 kB each."""

MOST_HOSTS = 1_000
"""Hosts whose rules are remembered. The host that has been quiet the longest is forgotten first."""

TRAP_PAGES = 8
"""Pages of a cluster from which on the cluster may be a trap."""

_HISTORY_WEIGHT = 1.5
"""Trials that the contexts count for beside the history of the very page."""

_FEW = 5
"""Slots in which copies may differ at once so that something is learned from them; two hosts count as two."""

_AGAIN = 2
"""Pages that are looked at again after each page, when the rules for the whole host have changed."""

_BROAD = frozenset({Slot.OTHERS, Slot.QUERY})
"""Slots that are several parameters at once."""

_CLEARLY = 0.05
"""By so much rules together must be surer than one rule alone, which is easier to understand."""


_NO_CLUSTER = 0
"""That of a page that is not judged yet."""

_NOTHING_LEARNED = HostRules()


class _Partners(NamedTuple):
    """Known pages whose URLs differ from one in a slot, and their history."""

    pages: list[Page]
    history: Bucket | None
    are_known: bool = True


_NO_PARTNERS = _Partners([], None)


class Learner:
    """Learns which parts of URLs do not matter, from the verdicts on pages, and predicts which URLs lead to
    copies.

    A *slot* (:class:`neardup.urls.rules.Slot`) is a part of a URL that may not matter. Known pages whose URLs
    differ in that part alone are partners. Each judged page with partners is one trial of the rule "this slot
    does not matter here". The trial is a hit if the page is in the cluster of a partner. Trials count in
    contexts from general to special: the host, the directory, the file, what else is asked for. The estimate
    for a URL goes the same way. Each context draws it towards its own share of hits. The last word has the
    history of the page itself. http and https, with ``www.`` and without, are aliases: likely copies before
    the first trial.

    Trials are forgotten in time, so sites may change. A rule predicts when it has trials enough, from
    different clusters and directories. An active rule that goes wrong is revoked.

    All rules are of one host. Pages of other hosts are partners as mirrors only, and only below one
    registered domain: a stranger cannot teach that another's pages are copies. URLs that are too long or have
    too many parts have no rules. What is remembered is bounded, see the constants.

    :mod:`neardup.urls.slots` names the sources.

    >>> learner = Learner()
    >>> for item in range(20):
    ...     for sid in "abc":
    ...         unlike = learner.observe(f"http://a.example/item{item}?sid={sid}", cluster=item)
    >>> unlike = learner.observe("http://a.example/other?sid=a", cluster=99)
    >>> prediction = learner.predict("http://a.example/other?sid=z")
    >>> prediction.probability > 0.9, prediction.partner, str(prediction.rule)
    (True, 'http://a.example/other?sid=a', 'a.example: parameter sid')
    >>> learner.predict("http://a.example/never-seen?sid=z")
    """

    def __init__(self, *, most_pages: int = MOST_PAGES, most_hosts: int = MOST_HOSTS) -> None:
        self.generation = 0
        """Rises when requests that wait should be looked at again: a rule was revoked or banned, or is right
        much less often than before. What has become likelier need not be looked at: a request that has not
        left the queue is asked about when it does.
        """
        self._most_hosts = most_hosts
        self._memory = Memory(most_pages)
        self._under_way = LastPages(MOST_UNDER_WAY)
        self._too_short = LastPages(MOST_TOO_SHORT)
        self._hosts: OrderedDict[str, HostRules] = OrderedDict()
        self._rules = 0
        """How many rules the hosts have."""

    @classmethod
    def from_rules(cls, rules: Iterable[LearnedRule]) -> Learner:
        """A learner that starts with what :meth:`rules` gave in an earlier crawl."""
        learner = cls()
        for learned in rules:
            host = learner._host(learned.rule.host)
            before = len(host.contexts)
            host.restore(learned)
            learner._has_grown(host, before)
        return learner

    def observe(self, url: str, cluster: int) -> list[str]:
        """Learn from a page that was judged.

        Returns URLs of known pages that an active rule took the page for a copy of, wrongly. Waiting requests
        should be looked at again if their :attr:`neardup.urls.rules.Prediction.partner` is among these URLs.

        ``url`` is that of the page (:attr:`neardup.address.Address.url`). ``cluster`` is the id of its
        canonical page, or its own id if the page is canonical. A page without a cluster (too short, gone, not
        judged) is not observed. A page that is judged again is observed again.
        """
        parts = parts_of(url)
        if parts is None:
            return []
        host, key = self._host(parts.host), page_key(parts)
        page = self._memory.page(key)
        if page is not None and page.cluster == cluster:
            return []
        known = page is not None
        left, of_url = _divided(url, host.together(), host.substitutions)
        if page is None:
            page = Page(url, parts.host, cluster, left.key)
        page.cluster = cluster
        rules_before = len(host.contexts)
        explained = False
        unlike: dict[str, None] = {}
        for place in of_url:
            partners = self._partners(parts, place, url).pages
            # What one parameter explains says nothing about all of them.
            if partners and not (explained and place.slot in _BROAD):
                hit = self._try(host, parts, place, page, partners)
                if left.gone and place.slot is Slot.TOGETHER:
                    host.vote(left.gone, hit=hit)
                if not hit and host.is_active(place.make_contexts()[0]):
                    unlike.update(dict.fromkeys(partner.url for partner in partners))
                explained |= hit
            if place.bucket and not known:
                self._memory.put(place.bucket, page)
                if place.directory is not None:
                    host.versions.seen(place.directory.above, place.directory.segment)
        if not explained:
            self._explain(host, parts, page)
        soft_404s = _soft_404s(parts)
        if soft_404s in host.contexts:
            self.generation += host.count(soft_404s, page, None, hash(parts.segments[:-1]))
        if not known:
            self._memory.add_page(key, page)
            host.pages.append(page)
        self._index_again(host)
        self._has_grown(host, rules_before)
        return list(unlike)

    def observe_soft_404(self, url: str) -> None:
        """Learn from a page that stands for one that is not there: where such pages are, and nothing about
        the parts of the URL.
        """
        parts = parts_of(url)
        if parts is None:
            return
        host = self._host(parts.host)
        rules_before = len(host.contexts)
        page = Page(url, parts.host, 0, 0)
        for context in (_soft_404s(parts), _trap(parts)):
            self.generation += host.count(context, page, page, hash(parts.segments[:-1]))
        self._has_grown(host, rules_before)

    def _explain(self, host: HostRules, parts: Parts, page: Page) -> None:
        """Learn from a page that no partner is in the cluster of.

        The slots by which its URL differs from that of the first page of the cluster get a vote. The cluster
        may be a trap.
        """
        cluster = self._memory.cluster(page.cluster)
        first = None if cluster is None or cluster.first is page else parts_of(cluster.first.url)
        if first is not None and may_be_one_site(parts.host, first.host):
            components = differences(parts, first)
            if components and len(components) <= _FEW:
                for of in {id(rules): rules for rules in (host, self._host(first.host))}.values():
                    of.vote(components, hit=True)
            if components is None or any(slot is Slot.EXTRA for slot, _ in components):
                _propose(host, parts, first)
        trap = cluster.first if cluster and cluster.number >= TRAP_PAGES else None
        self.generation += host.count(_trap(parts), page, trap, hash(parts.segments[:-1]))

    def _index_again(self, host: HostRules) -> None:
        """Look at some of the last pages again by the rules for the whole host, if these have changed."""
        rules, substitutions = host.together(), host.substitutions
        if host.pages and host.indexed_for != (rules, substitutions):
            host.indexed_for, host.to_index = (rules, substitutions), len(host.pages)
        for _ in range(min(_AGAIN, host.to_index)):
            host.to_index -= 1
            page = host.pages[host.to_index]
            parts = parts_of(page.url)
            if parts is None:
                continue
            left = reduced(parts, rules)
            page.left = left.key
            for place in places(parts, left, substitutions):
                if place.bucket:
                    self._memory.put(place.bucket, page)

    def asked(self, url: str) -> None:
        """Note that a page is asked for. Until it is :meth:`answered`, its likely copies can wait."""
        self._put(self._under_way, url)

    def too_short(self, url: str) -> None:
        """Note a page that is too short to be judged. It is known at other addresses if they differ in a
        parameter alone whose values are made up.
        """
        self._put(self._too_short, url)

    def _put(self, pages: LastPages, url: str) -> None:
        parts = parts_of(url)
        if parts is None:
            return
        host = self._hosts.get(parts.host, _NOTHING_LEARNED)
        left, of_url = _divided(url, host.together(), host.substitutions)
        page = Page(url, parts.host, _NO_CLUSTER, left.key)
        pages.put(page, [place.bucket for place in of_url if place.bucket])

    def answered(self, url: str) -> None:
        """Note that a page that was asked for is none, or is about to be observed."""
        self._under_way.drop(url)

    def predict(self, url: str, *, may_wait: bool = False) -> Prediction | None:
        """What is known against a URL that is not fetched yet; None: nothing.

        ``may_wait``: pages that are only :meth:`asked` for are partners, too.

        Cheap enough to be asked about each request that leaves the queue, and again when
        :attr:`generation` has risen.
        """
        parts = parts_of(url)
        if parts is None:
            return None
        host = self._hosts.get(parts.host, _NOTHING_LEARNED)
        best: Prediction | None = None
        left, of_url = _divided(url, host.together(), host.substitutions)
        # Another version or language may have links of its own, which are worth more than to wait.
        may_wait = may_wait and all(slot is not Slot.SEGMENT for slot, _ in left.gone)
        for place in of_url:
            waits = may_wait and place.slot is not Slot.SEGMENT
            partners = self._partners(parts, place, url, waits=waits)
            is_made_up = place.slot is Slot.PARAMETER and host.is_made_up(place.value)
            if is_made_up and not partners.pages:
                partners = _Partners(_alike(self._too_short, parts, place, url), None)
            if not partners.pages:
                continue
            if is_made_up:
                made_up = Estimate(1.0, 1.0, (place.slot, place.value, ""))
                return _prediction(1.0, made_up, parts.host, partners)
            is_alias = place.slot is Slot.HOST and without_alias(url) in {
                without_alias(page.url) for page in partners.pages
            }
            estimate = host.estimate(contexts_of(place, partners.pages), is_alias=is_alias)
            if estimate is None:
                continue
            probability = estimate.probability
            if probability < 1.0:  # 1: pinned
                probability = _of_this_page(host, place, partners, estimate)
            behind = _CLEARLY if best is not None and best.rule.slot is Slot.TOGETHER else 0.0
            found = _prediction(probability, estimate, parts.host, partners)
            if best is None or _rank(found, behind) > _rank(best):
                best = found
        trap = host.estimate((_soft_404s(parts), _trap(parts)))
        if trap is None or trap.lower < MIN_LOWER:
            return best
        found = _prediction(trap.probability, trap, parts.host, _NO_PARTNERS)
        return best if best is not None and _rank(best) >= _rank(found) else found

    def is_in_cluster(self, url: str, cluster: int | None) -> bool:
        """Whether a page was observed with this URL, and is in a cluster."""
        parts = parts_of(url)
        page = None if parts is None else self._memory.page(page_key(parts))
        return page is not None and page.cluster == cluster

    def makes_up(self, host: str, name: str, *, made_up: bool) -> None:
        """Take note whether a parameter has other values each time that a page of a host is asked for.

        If so, a URL that differs in it alone is another address of a page, unless the rule is revoked.
        """
        rules = self._host(host)
        rules.made_up = rules.made_up | {name} if made_up else rules.made_up - {name}

    def made_up(self, host: str) -> frozenset[str]:
        """The parameters of a host whose values are made up, as :meth:`makes_up` was told."""
        rules = self._hosts.get(host, _NOTHING_LEARNED)
        return frozenset(filter(rules.is_made_up, rules.made_up))

    def rules_about(self, url: str) -> Iterator[LearnedRule]:
        """The active and pinned rules about parts that a URL has, of each part the most special one.

        A rule predicts something only of a URL with a partner: a known page whose URL differs in that part.
        """
        parts = parts_of(url)
        host = None if parts is None else self._hosts.get(parts.host)
        if parts is None or host is None:
            return
        left, of_url = _divided(url, host.together(), host.substitutions)
        chains = [place.make_contexts() for place in of_url]
        for chain in (*chains, (_soft_404s(parts), _trap(parts))):
            if chain[0][0] is Slot.TOGETHER and not left.gone:
                continue
            context = next((context for context in reversed(chain) if host.is_active(context)), None)
            if context is not None:
                yield host.contexts[context].learned(parts.host, context)

    def rules(self) -> Iterator[LearnedRule]:
        """All rules with their evidence, as SQL keeps them and :meth:`from_rules` takes them."""
        for name, host in self._hosts.items():
            for context, evidence in host.items():
                yield evidence.learned(name, context)

    def knows(self, rule: Rule) -> bool:
        """Whether :meth:`rules` gives a rule, whatever is known of it."""
        host = self._hosts.get(rule.host)
        return host is not None and rule[1:] in host.contexts

    def pin(self, rule: Rule) -> None:
        """Take a rule for right from now on, whatever the trials say."""
        self._set_state(rule, State.PINNED)

    def ban(self, rule: Rule) -> None:
        """Never ask a rule again."""
        self._set_state(rule, State.BANNED)

    def revoke(self, rule: Rule) -> None:
        """Forget the trials of a rule, which is learned afresh."""
        self._set_state(rule, State.REVOKED)

    def _set_state(self, rule: Rule, state: State) -> None:
        host = self._host(rule.host)
        before = len(host.contexts)
        host.set_state((rule.slot, rule.value, rule.context), state)
        self._has_grown(host, before)
        self.generation += 1

    def _host(self, name: str) -> HostRules:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = HostRules()
            if len(self._hosts) > self._most_hosts:
                self._forget_host()
        else:
            self._hosts.move_to_end(name)
        return host

    def _has_grown(self, host: HostRules, before: int) -> None:
        """Count new rules of a host that had so many."""
        self._rules += len(host.contexts) - before
        while self._rules > MOST_RULES and len(self._hosts) > 1:
            self._forget_host()

    def _forget_host(self) -> None:
        _, host = self._hosts.popitem(last=False)
        self._rules -= len(host.contexts)

    def _partners(self, parts: Parts, place: Place, url: str, *, waits: bool = False) -> _Partners:
        """The known pages that differ in a slot; with ``waits``, where there are none, those asked for."""
        found = self._memory.bucket(place.bucket) if place.bucket else None
        bare = self._memory.bucket(place.bare) if place.bare else None
        if found is None and bare is None and not waits:
            return _NO_PARTNERS
        history = found if isinstance(found, Bucket) else None
        if history is not None and history.is_closed:
            return _NO_PARTNERS
        pages = _that_differ([*_pages(found), *_pages(bare)], parts, place, url)
        if pages or not waits:
            return _Partners(pages, history)
        return _Partners(_alike(self._under_way, parts, place, url), history, are_known=False)

    def _try(self, host: HostRules, parts: Parts, place: Place, page: Page, partners: list[Page]) -> bool:
        """Count a page as a trial of a slot; whether it is in the cluster of a partner."""
        partner = next((other for other in partners if other.cluster == page.cluster), None)
        hit = partner is not None
        if place.bucket:
            self._memory.widen(place.bucket).add(hit=hit)
        directory = hash(parts.segments[:-1])
        contexts = contexts_of(place, partners)
        others = 0 if (found := beside(contexts)) is None else hash(found)
        for context in contexts:
            self.generation += host.count(context, page, partner, directory, others)
        return hit


@lru_cache(250)  # a URL is asked about, fetched and learned from; some 4 kB each
def _divided(
    url: str, rules: frozenset[Component], substitutions: tuple[str, ...]
) -> tuple[Reduced, tuple[Place, ...]]:
    """What the rules for a whole host leave of a URL that has parts, and the slots of the URL."""
    parts = parts_of(url)
    assert parts is not None
    left = reduced(parts, rules)
    return left, tuple(places(parts, left, substitutions))


def _propose(host: HostRules, parts: Parts, first: Parts) -> None:
    """Propose the substitutions that a page and the first one of its cluster speak for."""
    one, other = reduced(parts, host.together()), reduced(first, host.together())
    if one.origin == other.origin:
        texts = (text_of(left.segments, left.parameters) for left in (one, other))
        for proposal in proposals(*texts):
            host.propose(proposal)


def _of_this_page(host: HostRules, place: Place, partners: _Partners, estimate: Estimate) -> float:
    """The probability that the very page is a copy, by its history and by its known versions."""
    slot, value, where = estimate.context
    if slot is Slot.SEGMENT and where.endswith((COPIES, OTHERS)):  # that is the history
        return estimate.probability
    probability, history = estimate.probability, partners.history
    if history is not None:
        probability = history.share(probability, _HISTORY_WEIGHT)
    if place.directory is not None:
        above, version, _ = place.directory
        if host.versions.is_inner(above, version, versions_of(place, partners.pages)):
            # If it is asked for after the outer version, it is new only if both differ from what is known.
            differing = host.contexts.get((slot, value, f"{above}{OTHERS}"))
            share = probability if differing is None else differing.share(probability, WEIGHT)
            probability += (1.0 - probability) * share
    return probability


def _pages(found: Bucket | Page | None) -> list[Page]:
    if isinstance(found, Bucket):
        return [] if found.is_closed else found.pages
    return [] if found is None else [found]


def _alike(pages: LastPages, parts: Parts, place: Place, url: str) -> list[Page]:
    """The last pages that differ from a URL in a slot."""
    found = (pages.of(key) for key in (place.bucket, place.bare))
    return _that_differ([page for page in found if page is not None], parts, place, url)


def _that_differ(pages: list[Page], parts: Parts, place: Place, url: str) -> list[Page]:
    """Of pages with a key of a slot, those that differ from a URL in the slot, and may be partners."""
    pages = [page for page in pages if page.url != url and (not place.left or page.left != place.left)]
    if pages and place.slot in {Slot.HOST, Slot.TOGETHER}:
        pages = [page for page in pages if may_be_one_site(parts.host, page.host)]
    return pages


def _prediction(probability: float, estimate: Estimate, host: str, partners: _Partners) -> Prediction:
    partner = partners.pages[-1].url if partners.pages else None
    return Prediction(probability, estimate.lower, Rule(host, *estimate.context), partner, partners.are_known)


def _rank(prediction: Prediction, behind: float = 0.0) -> tuple[bool, float]:
    """The rank of a prediction among those about one URL. One parameter that very likely does not matter says
    more than that pages of other directories are alike. ``behind``: by so much the probability may be lower.
    """
    is_of_parameter = prediction.rule.slot is Slot.PARAMETER and is_another_address(prediction)
    return is_of_parameter, prediction.probability + behind


def _soft_404s(parts: Parts) -> Context:
    """All pages of a directory where some are soft 404s."""
    return (Slot.TRAP, f"{parts.directory}/*"[:200], "")


def _trap(parts: Parts) -> Context:
    names = ",".join(sorted({name for name, _ in parts.parameters}))
    return (Slot.TRAP, f"{parts.shape}?{names}"[:200], "")
