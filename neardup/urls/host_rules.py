"""The rules of one host, and the form of its URLs that they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from neardup.urls.evidence import Evidence
from neardup.urls.parts import OPAQUE, Parts, is_opaque, plain_spelling
from neardup.urls.rules import Slot, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.urls.rules import LearnedRule
    from neardup.urls.slots import Context

MOST_CONTEXTS = 4_000
"""Rules of a host, about 2 MB. When there are more, those with the fewest trials are forgotten."""

MIN_LOWER_TOGETHER = 0.8
"""Least lower bound, for a whole host, of a rule that is applied together with others."""

_TOGETHER = frozenset(
    {Slot.PARAMETER, Slot.OTHERS, Slot.QUERY, Slot.SEGMENT, Slot.EXTRA, Slot.HOST, Slot.SPELLING}
)

PRIOR = 0.3
"""Probability that a page is a copy of its partner, before anything is known."""

WEIGHT = 3.0
"""Trials that the share of a more general context counts for in a more special one."""


class Estimate(NamedTuple):
    """What the contexts of a slot say: the probability that the slot does not matter, the lower bound of the
    most special context with enough evidence, and which context that is.
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
        self.contexts: dict[Context, Evidence] = {}
        self._together: tuple[int, frozenset[tuple[Slot, str]]] = (-1, frozenset())

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
        ranked = sorted(
            self.contexts,
            key=lambda context: (self.contexts[context].state in by_hand, self.contexts[context].trials),
        )
        for context in ranked[: MOST_CONTEXTS // 2]:
            del self.contexts[context]
        self.version += 1

    def estimate(self, contexts: tuple[Context, ...]) -> Estimate | None:
        """What the contexts of a slot say, from general to special; None: not enough is known, or one of them
        is banned.
        """
        probability, lower, supported = PRIOR, 0.0, None
        for context in contexts:
            evidence = self.contexts.get(context)
            if evidence is None:
                break
            if evidence.state is State.BANNED:
                return None
            if evidence.state is State.PINNED:
                return Estimate(1.0, 1.0, context)
            probability = evidence.share(probability, WEIGHT)
            if evidence.has_support:
                lower, supported = evidence.lower, context
        return None if supported is None else Estimate(probability, lower, supported)

    def doubt_below(self, context: Context) -> None:
        """Let the more special contexts of a rule that was revoked count for little, too."""
        slot, value, general = context
        for other, evidence in self.contexts.items():
            if other[:2] == (slot, value) and other[2].startswith(general) and other[2] != general:
                if evidence.state is State.ACTIVE:
                    evidence.revoke()
                evidence.keep(1.0)

    def together(self) -> frozenset[tuple[Slot, str]]:
        """Slots and values of the rules that hold for the whole host, which are applied together."""
        if self._together[0] != self.version:
            found = frozenset(
                (slot, value)
                for (slot, value, where), evidence in self.contexts.items()
                if not where
                and slot in _TOGETHER
                and (
                    evidence.state is State.PINNED
                    or (evidence.state is State.ACTIVE and evidence.lower >= MIN_LOWER_TOGETHER)
                )
                and (slot is not Slot.SEGMENT or value == OPAQUE)
            )
            self._together = (self.version, found)
        return self._together[1]

    def reduced(self, parts: Parts) -> tuple[tuple[object, ...], str]:
        """A URL without all that does not matter on the host, and what kinds of slots that were."""
        rules, kinds = self.together(), list[Slot]()
        origin: str = parts.origin
        segments, parameters = parts.segments, parts.parameters
        if (Slot.HOST, origin) in rules:
            origin = ""
            kinds.append(Slot.HOST)
        kept = _kept(parameters, rules, kinds)
        shorter = tuple(
            segment
            for place, segment in enumerate(segments)
            if place == len(segments) - 1 or (Slot.EXTRA, segment) not in rules
        )
        if shorter != segments:
            kinds.append(Slot.EXTRA)
        if (Slot.SEGMENT, OPAQUE) in rules and any(map(is_opaque, shorter)):
            shorter = tuple(OPAQUE if is_opaque(segment) else segment for segment in shorter)
            kinds.append(Slot.SEGMENT)
        if (Slot.SPELLING, "") in rules:
            shorter = plain_spelling(shorter)[0]
        return (origin, shorter, kept), " ".join(kinds)

    def restore(self, learned: LearnedRule) -> None:
        """Take over what an earlier crawl has learned."""
        self.contexts[learned.rule[1:]] = Evidence.of(learned)
        self.version += 1

    def set_state(self, context: Context, state: State) -> None:
        evidence = self.evidence(context)
        if state is State.REVOKED:
            evidence.revoke()
            self.doubt_below(context)
        evidence.state = state
        self.version += 1

    def items(self) -> Iterator[tuple[Context, Evidence]]:
        return iter(self.contexts.items())


def _kept(
    parameters: tuple[tuple[str, str], ...], rules: frozenset[tuple[Slot, str]], kinds: list[Slot]
) -> tuple[tuple[str, str], ...]:
    for name, _ in parameters:
        if (Slot.OTHERS, name) in rules:
            kept = tuple(pair for pair in parameters if pair[0] == name)
            break
    else:
        kept = () if (Slot.QUERY, "") in rules and len(parameters) > 1 else parameters
    kept = tuple(pair for pair in kept if (Slot.PARAMETER, pair[0]) not in rules)
    if kept != parameters:
        kinds.append(Slot.PARAMETER)
    return kept
