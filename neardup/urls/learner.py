"""Learn, while crawling, from verdicts which URLs lead to what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.urls.rules import LearnedRule, Prediction, Rule, State
from neardup.urls.slots import slots_of
from neardup.urls.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MIN_TRIALS = 5
PRIOR = 0.3


class Learner:
    """Learns which parts of URLs do not matter.

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

    def __init__(self) -> None:
        self.generation = 0
        """Rises when a rule appears, goes, or changes so much that waiting requests should be looked at
        again.
        """
        self._tallies: dict[Rule, Tally] = {}
        self._states: dict[Rule, State] = {}
        self._buckets: dict[int, list[tuple[str, int]]] = {}

    @classmethod
    def from_rules(cls, rules: Iterable[LearnedRule]) -> Learner:
        """A learner that starts with what :meth:`rules` gave in an earlier crawl."""
        learner = cls()
        for learned in rules:
            learner._tallies[learned.rule] = Tally(learned.trials, learned.hits)
            learner._states[learned.rule] = learned.state
        return learner

    def observe(self, url: str, cluster: int) -> None:
        """Learn from a page that was judged.

        ``url`` is that of the page (:attr:`neardup.address.Address.url`). ``cluster`` is the id of its
        canonical page, or its own id if the page is canonical. A page without a cluster (too short, gone, not
        judged) is not observed.
        """
        for slot in slots_of(url):
            bucket = self._buckets.setdefault(slot.key, [])
            partners = [known for other, known in bucket if other != url]
            if partners:
                tally = self._tallies.setdefault(slot.rule, Tally())
                before = tally.trials >= MIN_TRIALS
                tally.add(hit=cluster in partners)
                self.generation += not before and tally.trials >= MIN_TRIALS
            bucket.append((url, cluster))

    def predict(self, url: str) -> Prediction | None:
        """What is known against a URL that is not fetched yet; None: nothing.

        Cheap enough to be asked about each request that leaves the queue, and again when
        :attr:`generation` has risen.
        """
        best: Prediction | None = None
        for slot in slots_of(url):
            tally, bucket = self._tallies.get(slot.rule), self._buckets.get(slot.key)
            if tally and bucket and tally.trials >= MIN_TRIALS:
                learned = LearnedRule(slot.rule, tally.trials, tally.hits, 0, 0, State.ACTIVE)
                found = Prediction(tally.shrink(PRIOR, 3.0), learned.lower, slot.rule, bucket[-1][0])
                best = max(best or found, found)
        return best

    def rules(self) -> Iterator[LearnedRule]:
        """All rules with their evidence, as SQL keeps them and :meth:`from_rules` takes them."""
        for rule, tally in self._tallies.items():
            yield LearnedRule(rule, tally.trials, tally.hits, 0, 0, self._states.get(rule, State.LEARNING))

    def pin(self, rule: Rule) -> None:
        """Take a rule for right from now on, whatever the trials say."""
        self._set_state(rule, State.PINNED)

    def ban(self, rule: Rule) -> None:
        """Never ask a rule again."""
        self._set_state(rule, State.BANNED)

    def revoke(self, rule: Rule) -> None:
        """Forget the trials of a rule, which is learned afresh."""
        self._set_state(rule, State.REVOKED)
        self._tallies.pop(rule, None)

    def _set_state(self, rule: Rule, state: State) -> None:
        self._states[rule] = state
        self.generation += 1
