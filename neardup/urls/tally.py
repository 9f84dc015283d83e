"""How often something was right: a tally that forgets, and the bounds of its share."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")

DECAY = 0.995
"""What a tally keeps of itself at each trial. So at most 200 trials count, and a site may change."""

_Z = 1.96  # 95 %, two-sided


class Tally:
    """Trials and hits, the older the less they count."""

    __slots__ = ("hits", "trials")

    def __init__(self, trials: float = 0.0, hits: float = 0.0) -> None:
        self.trials = trials
        self.hits = hits

    def add(self, *, hit: bool) -> None:
        self.trials = self.trials * DECAY + 1.0
        self.hits = self.hits * DECAY + hit

    def keep(self, trials: float) -> None:
        """Let it count as so many trials at most."""
        if self.trials > trials:
            self.hits *= trials / self.trials
            self.trials = trials

    def share(self, prior: float, weight: float) -> float:
        """The share of hits, drawn towards ``prior`` as if ``weight`` trials had had that share."""
        return (self.hits + weight * prior) / (self.trials + weight)


class Tallies(Generic[Key]):
    """A tally for each key, of ``most`` keys. The one added to the longest ago is forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tallies: OrderedDict[Key, Tally] = OrderedDict()

    def get(self, key: Key) -> Tally | None:
        """The tally of a key; None if the key is not known."""
        return self._tallies.get(key)

    def of(self, key: Key) -> Tally:
        """The tally of a key, to add to; a new one if the key is not known."""
        found = self._tallies.setdefault(key, Tally())
        self._tallies.move_to_end(key)
        if len(self._tallies) > self._most:
            self._tallies.popitem(last=False)
        return found


def wilson_lower(hits: float, trials: float) -> float:
    """The lower end of Wilson's 95 % interval of a share (Wilson 1927); 0 without trials.

    >>> round(wilson_lower(19, 20), 3), wilson_lower(0, 0)
    (0.764, 0.0)
    """
    if trials <= 0.0:
        return 0.0
    share, z2 = hits / trials, _Z * _Z
    middle = share + z2 / (2 * trials)
    spread = _Z * math.sqrt(max(0.0, share * (1.0 - share)) / trials + z2 / (4 * trials * trials))
    return max(0.0, (middle - spread) / (1.0 + z2 / trials))
