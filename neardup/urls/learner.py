"""Learn, while crawling, from verdicts which URLs lead to what is known."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from neardup.address import registered_domain
from neardup.urls.host_rules import Estimate, HostRules
from neardup.urls.memory import Bucket, Memory, Page
from neardup.urls.parts import Parts, parts_of
from neardup.urls.rules import LearnedRule, Prediction, Rule, Slot, State
from neardup.urls.slots import Place, page_key, places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.urls.slots import Context

MOST_PAGES = 200_000
"""Pages that are remembered, some 300 MB. The older half of them is forgotten when there are more."""

MOST_HOSTS = 1_000
"""Hosts whose rules are remembered. The host that no page came from the longest is forgotten first."""

TRAP_PAGES = 8
"""Pages of a cluster from which on the cluster may be a trap."""

_HISTORY_WEIGHT = 1.5
"""Trials that the contexts count for beside the history of the very page."""

_CLEARLY = 0.05
"""By so much rules together must say more than one rule alone, which is easier to understand."""


class _Partners(NamedTuple):
    """Known pages whose URLs differ from one in a slot, and their history."""

    pages: list[Page]
    history: Bucket | None


class Learner:
    """Learns which parts of URLs do not matter, from the verdicts on pages, and predicts which URLs lead to
    copies.

    A *slot* (:class:`neardup.urls.rules.Slot`) is a part of a URL that may not matter. Known pages whose URLs
    differ in that part alone are partners. Each judged page with partners is one trial of the rule "this slot
    does not matter here": a hit if the page is in the cluster of one of them. A trial counts in contexts from
    general to special: the host, the directory, the file. The estimate for a URL goes the same way. Each
    context draws it towards its own share of hits. The last word has the history of the page itself.

    Trials are forgotten in time, so sites may change. A rule predicts when it has trials enough, from
    different clusters and directories. An active rule that goes wrong is revoked.

    All rules are of one host. Pages of other hosts are partners as mirrors only, and only below one
    registered domain: a stranger cannot teach that another's pages are copies. URLs that are too long or have
    too many parts have no rules. What is remembered is bounded, see the constants.

    :mod:`neardup.urls.slots` names the sources.

    >>> learner = Learner()
    >>> for item in range(20):
    ...     for sid in "abc":
    ...         learner.observe(f"http://a.example/item{item}?sid={sid}", cluster=item)
    >>> learner.observe("http://a.example/other?sid=a", cluster=99)
    >>> prediction = learner.predict("http://a.example/other?sid=z")
    >>> prediction.probability > 0.9, prediction.partner, str(prediction.rule)
    (True, 'http://a.example/other?sid=a', 'a.example: parameter sid')
    >>> learner.predict("http://a.example/never-seen?sid=z")
    """

    def __init__(self, *, most_pages: int = MOST_PAGES, most_hosts: int = MOST_HOSTS) -> None:
        self.generation = 0
        """Rises when a rule appears, goes, or changes so much that waiting requests should be looked at
        again.
        """
        self._most_hosts = most_hosts
        self._memory = Memory(most_pages)
        self._hosts: OrderedDict[str, HostRules] = OrderedDict()

    @classmethod
    def from_rules(cls, rules: Iterable[LearnedRule]) -> Learner:
        """A learner that starts with what :meth:`rules` gave in an earlier crawl."""
        learner = cls()
        for learned in rules:
            host = learner._host(learned.rule.host)
            host.restore(learned)
        return learner

    def observe(self, url: str, cluster: int) -> None:
        """Learn from a page that was judged.

        ``url`` is that of the page (:attr:`neardup.address.Address.url`). ``cluster`` is the id of its
        canonical page, or its own id if the page is canonical. A page without a cluster (too short, gone, not
        judged) is not observed. A page that is judged again is observed again.
        """
        parts = parts_of(url)
        if parts is None:
            return
        host, key = self._host(parts.host), page_key(parts)
        page = self._memory.page(key)
        if page is not None and page.cluster == cluster:
            return
        known = page is not None
        if page is None:
            page = Page(url, cluster)
        page.cluster = cluster
        explained = False
        for place in places(parts):
            explained |= self._try(host, parts, place, page)
            if place.bucket and not known:
                self._memory.put(place.bucket, page)
        place = self._together(host, parts)
        self._try(host, parts, place, page)
        if not known:
            self._memory.put(place.bucket, page)
        if not explained:
            self._try_trap(host, parts, page)
        self._memory.add_page(key, page)

    def predict(self, url: str) -> Prediction | None:
        """What is known against a URL that is not fetched yet; None: nothing.

        Cheap enough to be asked about each request that leaves the queue, and again when
        :attr:`generation` has risen.
        """
        parts = parts_of(url)
        host = None if parts is None else self._hosts.get(parts.host)
        if parts is None or host is None:
            return None
        best: Prediction | None = None
        for place in (*places(parts), self._together(host, parts)):
            partners = self._partners(parts, place, url)
            estimate = host.estimate(place.contexts) if partners.pages else None
            if estimate is None:
                continue
            history = partners.history
            probability = estimate.probability
            if history is not None:
                probability = history.share(probability, _HISTORY_WEIGHT)
            ahead = _CLEARLY if place.contexts[0][0] is Slot.TOGETHER else 0.0
            if best is None or probability > best.probability + ahead:
                best = _prediction(probability, estimate, parts.host, partners.pages[-1].url)
        if best is None:
            estimate = host.estimate((_trap(parts),))
            if estimate is not None:
                best = _prediction(estimate.probability, estimate, parts.host, None)
        return best

    def rules(self) -> Iterator[LearnedRule]:
        """All rules with their evidence, as SQL keeps them and :meth:`from_rules` takes them."""
        for name, host in self._hosts.items():
            for context, evidence in host.items():
                yield evidence.learned(name, context)

    def pin(self, rule: Rule) -> None:
        """Take a rule for right from now on, whatever the trials say."""
        self._set_state(rule, State.PINNED)

    def ban(self, rule: Rule) -> None:
        """Never ask a rule again."""
        self._set_state(rule, State.BANNED)

    def revoke(self, rule: Rule) -> None:
        """Forget most trials of a rule, which is learned afresh."""
        self._set_state(rule, State.REVOKED)

    def _set_state(self, rule: Rule, state: State) -> None:
        host = self._host(rule.host)
        host.set_state((rule.slot, rule.value, rule.context), state)
        self.generation += 1

    def _host(self, name: str) -> HostRules:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = HostRules()
            if len(self._hosts) > self._most_hosts:
                self._hosts.popitem(last=False)
        else:
            self._hosts.move_to_end(name)
        return host

    def _together(self, host: HostRules, parts: Parts) -> Place:
        """The slot of all that is known not to matter on a host."""
        reduced, kinds = host.reduced(parts)
        contexts = (
            (Slot.TOGETHER, "", ""),
            (Slot.TOGETHER, kinds, ""),
            (Slot.TOGETHER, kinds, parts.directory),
        )
        return Place(contexts, hash((Slot.TOGETHER, *reduced)), 0)

    def _partners(self, parts: Parts, place: Place, url: str) -> _Partners:
        memory = self._memory
        found = memory.bucket(place.bucket) if place.bucket else None
        pages: list[Page] = []
        history: Bucket | None = None
        if isinstance(found, Bucket):
            if found.is_closed:
                return _Partners([], None)
            pages = [page for page in found.pages if page.url != url]
            history = found
        elif found is not None and found.url != url:
            pages = [found]
        if place.bare and (bare := memory.page(place.bare)) is not None:
            pages.append(bare)
        if pages and place.contexts[0][0] is Slot.HOST:
            pages = [page for page in pages if _may_mirror(parts, page)]
        return _Partners(pages, history)

    def _try(self, host: HostRules, parts: Parts, place: Place, page: Page) -> bool:
        """Count a page as a trial of a slot; whether a partner explains it."""
        pages, _ = self._partners(parts, place, page.url)
        if not pages:
            return False
        partner = next((other for other in pages if other.cluster == page.cluster), None)
        hit = partner is not None
        if place.bucket:
            self._memory.widen(place.bucket).add(hit=hit)
        for context in place.contexts:
            self._count(host, parts, context, page, partner)
        return hit

    def _try_trap(self, host: HostRules, parts: Parts, page: Page) -> None:
        cluster = self._memory.cluster(page.cluster)
        full = cluster is not None and cluster.number >= TRAP_PAGES
        self._count(host, parts, _trap(parts), page, cluster.first if cluster and full else None)

    def _count(
        self, host: HostRules, parts: Parts, context: Context, page: Page, partner: Page | None
    ) -> None:
        evidence = host.evidence(context)
        before = evidence.trial(
            hit=partner is not None, cluster=page.cluster, directory=hash(parts.directory)
        )
        if partner is not None and not evidence.example:
            evidence.example, evidence.partner = page.url, partner.url
        if evidence.state is not before:
            host.version += 1
            if evidence.state is State.REVOKED:
                host.doubt_below(context)
            self.generation += 1
        elif evidence.state is State.ACTIVE and evidence.has_moved():
            host.version += 1
            self.generation += 1


def _prediction(probability: float, estimate: Estimate, host: str, partner: str | None) -> Prediction:
    return Prediction(probability, estimate.lower, Rule(host, *estimate.context), partner)


def _trap(parts: Parts) -> Context:
    names = ",".join(sorted({name for name, _ in parts.parameters}))
    return (Slot.TRAP, f"{parts.shape}?{names}"[:200], "")


def _may_mirror(parts: Parts, page: Page) -> bool:
    """Whether a page's host may have the same pages as another: the same origin or one registered domain."""
    other = parts_of(page.url)
    return other is not None and (
        other.host == parts.host or registered_domain(other.host) == registered_domain(parts.host)
    )
