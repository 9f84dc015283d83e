"""What is known of one rule: its trials, where they come from, and its state."""

from __future__ import annotations

from neardup.urls.rules import LearnedRule, Rule, Slot, State
from neardup.urls.tally import Tally, wilson_lower

MIN_TRIALS = 5
MIN_CLUSTERS = 3
MIN_DIRECTORIES = 2
ENOUGH_TRIALS = 20
"""Trials from which on one cluster or one directory is enough: a trap has one cluster."""

MIN_LOWER = 0.5
"""Least lower bound of the share of hits of an active rule."""

WRONG = 0.5
"""An active rule is revoked when its share of hits falls below this."""

WRONG_OF_LATE = 0.3
"""An active rule is revoked, too, when the share of the last ten or so trials falls below this."""

AFRESH = 5.0
"""Trials that a revoked rule keeps."""

_MOST_COUNTED = 8
"""Clusters and directories that are told apart; more than are asked for."""

_LATE = 0.9  # what the tally of the last trials keeps of itself at each trial
_SURE_OF_LATE = 0.9 * 10 * (1 - _LATE**10)  # its weight after about ten trials


class Evidence(Tally):
    """The trials of one rule, and what state they put it in."""

    __slots__ = (
        "_before",
        "_clusters",
        "_directories",
        "_late_hits",
        "_late_trials",
        "_others",
        "_told",
        "example",
        "is_narrow",
        "partner",
        "state",
    )

    def __init__(self) -> None:
        super().__init__()
        self.state = State.LEARNING
        self.example = self.partner = ""
        self._late_trials = self._late_hits = 0.0
        self._clusters: tuple[int, ...] = ()
        self._directories: tuple[int, ...] = ()
        self._before = (0, 0)
        """Clusters and directories of an earlier crawl."""
        self._others = 0
        self.is_narrow = False
        """Whether all trials of this crawl were made beside the same other parameters."""
        self._told = 0.0
        """The highest share of hits since requests were last to be looked at again."""

    @property
    def clusters(self) -> int:
        return max(self._before[0], len(self._clusters))

    @property
    def directories(self) -> int:
        return max(self._before[1], len(self._directories))

    @property
    def lower(self) -> float:
        return wilson_lower(self.hits, self.trials)

    @property
    def has_support(self) -> bool:
        """Whether there is enough evidence to say how often the rule is right."""
        if self.trials < MIN_TRIALS:
            return False
        return self.trials >= ENOUGH_TRIALS or (
            self.clusters >= MIN_CLUSTERS and self.directories >= MIN_DIRECTORIES
        )

    def trial(self, *, hit: bool, cluster: int, directory: int, others: int = 0) -> State:
        """Count a trial; returns the state before it. ``others`` stands for the parameters beside the slot;
        0: there are none.
        """
        before = self.state
        if not self.trials:
            self._others, self.is_narrow = others, others != 0
        elif others != self._others:
            self.is_narrow = False
        self.add(hit=hit)
        self._late_trials = self._late_trials * _LATE + 1.0
        self._late_hits = self._late_hits * _LATE + hit
        if len(self._clusters) < _MOST_COUNTED and cluster not in self._clusters:
            self._clusters += (cluster,)
        if len(self._directories) < _MOST_COUNTED and directory not in self._directories:
            self._directories += (directory,)
        if before is State.ACTIVE:
            if self._is_wrong():
                self.revoke()
        elif before in {State.LEARNING, State.REVOKED} and self.has_support and self.lower >= MIN_LOWER:
            self.state = State.ACTIVE
        return before

    def _is_wrong(self) -> bool:
        late = self._late_trials
        return self.hits < WRONG * self.trials or (
            late >= _SURE_OF_LATE and self._late_hits < WRONG_OF_LATE * late
        )

    def revoke(self) -> None:
        """Take the rule for wrong until new trials say otherwise."""
        self.state = State.REVOKED
        self.doubt()

    def doubt(self) -> None:
        """Keep but a few trials, of the last ones."""
        if self._late_trials:
            self.hits = self._late_hits / self._late_trials * self.trials
        self.keep(AFRESH)

    def has_fallen(self) -> bool:
        """Whether an active rule was revoked, or its share of hits has fallen by a tenth, since that was last
        so.
        """
        share = self.hits / self.trials if self.state is State.ACTIVE else 0.0
        if share >= self._told - 0.1:
            self._told = max(share, self._told)
            return False
        self._told = share
        return True

    def learned(self, host: str, context: tuple[Slot, str, str]) -> LearnedRule:
        return LearnedRule(
            Rule(host, *context),
            self.trials,
            self.hits,
            self.clusters,
            self.directories,
            self.state,
            self.example,
            self.partner,
        )

    def restore(self, learned: LearnedRule) -> None:
        """Take over what an earlier crawl has learned."""
        self.trials, self.hits, self.state = learned.trials, learned.hits, learned.state
        self.example, self.partner = learned.example, learned.partner
        self._before = learned.clusters, learned.directories
