"""The rules of one host, and the form of its URLs that they leave."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from neardup.urls.evidence import MIN_TRIALS, Evidence
from neardup.urls.parts import OPAQUE, is_opaque, plain_spelling
from neardup.urls.rules import Slot, State
from neardup.urls.slots import Reduced, beside, reduced_key, together_name
from neardup.urls.substitutions import VARIES
from neardup.urls.tally import Tally
from neardup.urls.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from neardup.urls.memory import Page
    from neardup.urls.parts import Parts
    from neardup.urls.rules import LearnedRule
    from neardup.urls.slots import Component, Context
    from neardup.urls.substitutions import Proposal

MOST_CONTEXTS = 4_000
"""Rules of a host. When there are more, those with the fewest trials are forgotten, unless people set
them.
"""

MIN_LOWER_TOGETHER = 0.8
"""Least lower bound, for a whole host, of a rule that is applied together with others."""

_TOGETHER = frozenset({Slot.PARAMETER, Slot.SEGMENT, Slot.EXTRA, Slot.HOST, Slot.SPELLING})

MIN_VOTES = 3
"""Pairs of copies that must differ in a slot, and in few others, before it is tried without more evidence."""

MOST_VOTED = 256
"""Slots of a host with such votes; with more, all votes are forgotten."""

MOST_SUBSTITUTIONS = 8
"""Substitutions of a host that are tried. One that is mostly wrong makes room for another."""

MOST_TOGETHER = 32
"""Slots of a host that are applied together."""

MOST_RECENT = 500
"""Pages of a host that are looked at again when there are new rules for the whole host."""

PRIOR = 0.3
"""Probability that a page is a copy of its partner, before anything is known."""

PRIOR_OF_ALIAS = 0.9
"""The same, of a page whose URL has another scheme, or ``www.`` more or less."""

WEIGHT = 3.0
"""Trials that the share of a more general context counts for in a more special one."""


class Estimate(NamedTuple):
    """What the contexts of a slot say.

    ``probability`` is that of the slot not mattering. ``context`` is the most special one with enough
    evidence, and ``lower`` its lower bound.
    """

    probability: float
    lower: float
    context: Context


class HostRules:
    """What was learned of the URLs of one host.

    ``version`` rises when a rule becomes active or is one no longer.
    """

    def __init__(self) -> None:
        self.version = 0
        self.versions = Versions()
        self.contexts: dict[Context, Evidence] = {}
        self.pages: deque[Page] = deque(maxlen=MOST_RECENT)
        """The last pages, to be looked at again when there are new rules for the whole host."""
        self.indexed_for: tuple[frozenset[Component], tuple[str, ...]] = frozenset(), ()
        self.to_index = 0
        """How many of the last pages are still to be looked at again."""
        self.made_up: frozenset[str] = frozenset()
        """Parameters that have other values each time that a page is asked for, as was seen."""
        self.substitutions: tuple[str, ...] = ()
        """Those that are tried."""
        self._proposed: dict[str, frozenset[int]] = {}
        """Substitutions that are not tried yet: what was around them, of a few."""
        self._votes: dict[Component, Tally] = {}
        self._voted: dict[Component, None] = {}
        self._sure: dict[Component, None] = {}
        self._together: frozenset[Component] = frozenset()
        self._together_of = -1

    def count(
        self, context: Context, page: Page, partner: Page | None, directory: int, others: int = 0
    ) -> bool:
        """Count a page as a trial of a context; whether requests that wait because of it should be looked at
        again. ``others`` is that of :meth:`neardup.urls.evidence.Evidence.trial`.
        """
        evidence = self.evidence(context)
        before = evidence.trial(
            hit=partner is not None, cluster=page.cluster, directory=directory, others=others
        )
        if partner is not None and not evidence.example:
            evidence.example, evidence.partner = page.url, partner.url
        if evidence.state is State.REVOKED and before is State.ACTIVE:
            self.doubt(context)
        self._weigh(context)
        return evidence.has_fallen()

    def is_active(self, context: Context) -> bool:
        evidence = self.contexts.get(context)
        return evidence is not None and evidence.state in {State.ACTIVE, State.PINNED}

    def is_made_up(self, name: str) -> bool:
        """Whether the values of a parameter are made up, and the rule that they do not matter is right."""
        return name in self.made_up and self.is_active((Slot.PARAMETER, name, ""))

    def evidence(self, context: Context) -> Evidence:
        """The evidence of a context, to add to."""
        found = self.contexts.get(context)
        if found is None:
            if len(self.contexts) >= MOST_CONTEXTS:
                self._forget()
            found = self.contexts[context] = Evidence()
        return found

    def _forget(self) -> None:
        by_hand = {State.PINNED, State.BANNED}
        learned = [context for context, evidence in self.contexts.items() if evidence.state not in by_hand]
        learned.sort(key=lambda context: self.contexts[context].trials)
        for context in learned[: MOST_CONTEXTS // 2]:
            del self.contexts[context]
            self._weigh(context)

    def estimate(self, contexts: tuple[Context, ...], *, is_alias: bool = False) -> Estimate | None:
        """What the contexts of a slot say, from general to special; None: not enough is known, or one of them
        is banned. Of an alias enough is known before the first trial.

        Trials that were all made beside one other parameter say nothing of what was never tried. The forms of
        one table may be copies of each other, and those of another table none.
        """
        others = beside(contexts)
        is_untried = others is not None and others not in self.contexts
        probability = PRIOR_OF_ALIAS if is_alias else PRIOR
        supported = contexts[0] if is_alias else None
        support: Evidence | None = None
        for context in contexts:
            evidence = self.contexts.get(context)
            if evidence is None:
                continue  # a rule for a special context may be pinned before anything general is known
            if evidence.state is State.BANNED:
                return None
            if evidence.state is State.PINNED:
                return Estimate(1.0, 1.0, context)
            if is_untried and evidence.is_narrow:
                continue
            probability = evidence.share(probability, WEIGHT)
            if evidence.has_support:
                support, supported = evidence, context
        if supported is None:
            return None
        return Estimate(probability, 0.0 if support is None else support.lower, supported)

    def doubt(self, context: Context) -> None:
        """Let what rests on a rule that was revoked count for little: its more special contexts, and what was
        learned of it together with others.
        """
        slot, value, general = context
        named = f" {together_name((slot, value))} "
        for other, evidence in self.contexts.items():
            below = other[:2] == (slot, value) and other[2].startswith(general) and other[2] != general
            if below or (not general and other[0] is Slot.TOGETHER and named in f" {other[1]} "):
                if evidence.state is State.ACTIVE:
                    evidence.revoke()
                evidence.keep(1.0)
        if not general and self._votes.pop((slot, value), None) is not None:
            self._voted.pop((slot, value), None)
            self.version += 1

    def vote(self, components: Iterable[Component], *, hit: bool) -> None:
        """Count that pages whose URLs differ in these slots at once are copies, or are none."""
        for component in components:
            if component[0] not in _TOGETHER:
                continue
            if component not in self._votes and len(self._votes) >= MOST_VOTED:
                self._votes.clear()
                self._voted.clear()
                self.version += 1
            votes = self._votes.setdefault(component, Tally())
            votes.add(hit=hit)
            voted = votes.trials >= MIN_VOTES and votes.hits >= MIN_LOWER_TOGETHER * votes.trials
            if voted is not (component in self._voted):
                self.version += 1
                if voted:
                    self._voted[component] = None
                else:
                    del self._voted[component]

    def propose(self, proposal: Proposal) -> None:
        """Note that a page is a copy of another whose URL is written in another way. A substitution is tried
        when it has been proposed with :data:`MIN_VOTES` different texts around.
        """
        value, around = proposal
        if value in self.substitutions:
            return
        if value not in self._proposed and len(self._proposed) >= MOST_VOTED:
            self._proposed.clear()
        found = self._proposed[value] = self._proposed.get(value, frozenset()) | {around}
        if len(found) >= MIN_VOTES:
            del self._proposed[value]
            self._try_substitution(value)

    def _try_substitution(self, value: str) -> None:
        tried = self.substitutions
        if len(tried) >= MOST_SUBSTITUTIONS:
            wrong = (other for other in tried if self._speaks_against((Slot.SUBSTITUTION, other)))
            tried = tuple(other for other in tried if other != next(wrong, None))
        self.substitutions = (*tried, value)[:MOST_SUBSTITUTIONS]

    def together(self) -> frozenset[Component]:
        """The slots that seem not to matter on the whole host.

        Each has evidence of its own, or was among the few differences of some pairs of copies and has no
        evidence against it.
        """
        if self._together_of != self.version:
            self._together_of = self.version
            voted = [component for component in self._voted if not self._speaks_against(component)]
            self._together = frozenset([*self._sure, *voted][:MOST_TOGETHER])
        return self._together

    def _speaks_against(self, component: Component) -> bool:
        evidence = self.contexts.get((*component, ""))
        return evidence is not None and (
            evidence.state in {State.BANNED, State.REVOKED}
            or (evidence.trials >= MIN_TRIALS and evidence.hits < MIN_LOWER_TOGETHER * evidence.trials)
        )

    def _weigh(self, context: Context) -> None:
        """Note whether the rule of a context is sure enough to be applied together with others."""
        if not self._is_general(context):
            return
        evidence, component = self.contexts.get(context), context[:2]
        sure = evidence is not None and _is_sure(evidence)
        if sure is not (component in self._sure):
            self.version += 1
            if sure:
                self._sure[component] = None
            else:
                del self._sure[component]
        elif not sure and component in self._together and self._speaks_against(component):
            self.version += 1

    @staticmethod
    def _is_general(context: Context) -> bool:
        slot, value, where = context
        return not where and slot in _TOGETHER and (slot is not Slot.SEGMENT or value == OPAQUE)

    def restore(self, learned: LearnedRule) -> None:
        """Take over what an earlier crawl has learned."""
        context = slot, value, _ = learned.rule[1:]
        self.evidence(context).restore(learned)
        self._weigh(context)
        if slot is Slot.SUBSTITUTION and value not in self.substitutions and value.count(VARIES) == 2:
            self._try_substitution(value)

    def set_state(self, context: Context, state: State) -> None:
        evidence = self.evidence(context)
        if state is State.REVOKED:
            evidence.revoke()
            evidence.keep(0.0)
            self.doubt(context)
        evidence.state = state
        self._weigh(context)
        self.version += 1

    def items(self) -> Iterator[tuple[Context, Evidence]]:
        return iter(self.contexts.items())


def reduced(parts: Parts, rules: frozenset[Component]) -> Reduced:
    """What is left of a URL without all that seems not to matter on its host (:meth:`HostRules.together`)."""
    if not rules:
        whole = parts.origin, parts.segments, parts.parameters
        return Reduced(*whole, (), reduced_key(*whole))
    origin, segments = parts.origin, parts.segments
    gone: list[Component] = []
    if (Slot.HOST, origin) in rules:
        gone.append((Slot.HOST, origin))
        origin = ""
    parameters = tuple(pair for pair in parts.parameters if (Slot.PARAMETER, pair[0]) not in rules)
    if len(parameters) < len(parts.parameters):
        names = dict.fromkeys(name for name, _ in parts.parameters)
        gone += [(Slot.PARAMETER, name) for name in names if (Slot.PARAMETER, name) in rules]
    extra = [part for part in segments[:-1] if (Slot.EXTRA, part) in rules]
    if extra:
        gone += [(Slot.EXTRA, part) for part in extra]
        segments = *(part for part in segments[:-1] if part not in extra), segments[-1]
    if (Slot.SEGMENT, OPAQUE) in rules and any(map(is_opaque, segments)):
        segments = tuple(OPAQUE if is_opaque(segment) else segment for segment in segments)
        gone.append((Slot.SEGMENT, OPAQUE))
    if (Slot.SPELLING, "") in rules:
        segments = plain_spelling(segments)[0]
        gone.append((Slot.SPELLING, ""))
    key = reduced_key(origin, segments, parameters)
    return Reduced(origin, segments, parameters, tuple(gone), key)


def _is_sure(evidence: Evidence) -> bool:
    return evidence.state is State.PINNED or (
        evidence.state is State.ACTIVE and evidence.lower >= MIN_LOWER_TOGETHER and not evidence.is_narrow
    )
