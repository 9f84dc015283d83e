"""How queries are cleaned up: distance, depth, and what is kept (Pi et al., II.C and III.D)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from neardup.errors import ConfigurationError

MAX_DISTANCE = "3"
DEPTH = "1000"
"""Results of a query that are looked at (Pi et al., III.A)."""


class _Step(NamedTuple):
    value: int
    last: int | None


@dataclass(frozen=True, slots=True)
class Steps:
    """A number by the frequency of queries: the most frequent query is the first.

    >>> steps = Steps.of("3:100,2:1000,0", "max_distance")
    >>> [steps.at(place) for place in (1, 100, 101, 1000, 1001)]
    [3, 3, 2, 2, 0]
    """

    steps: tuple[_Step, ...]

    @classmethod
    def of(cls, text: str, name: str, most: int | None = None) -> Steps:
        """``VALUE:LAST,…,VALUE``; ConfigurationError if the text is something else.

        ``most``: the highest number allowed.
        """
        found = []
        for part in text.split(","):
            value, colon, last = part.partition(":")
            if not value.isdecimal() or (colon and not last.isdecimal()):
                raise _no_steps(name, text)
            found.append(_Step(int(value), int(last) if colon else None))
        lasts = [step.last for step in found]
        ends = [last for last in lasts[:-1] if last is not None]
        if lasts[-1] is not None or len(ends) < len(lasts) - 1 or ends != sorted(set(ends)):
            raise _no_steps(name, text)
        if most is not None and (over := max(step.value for step in found)) > most:
            raise ConfigurationError(f"{name} must be {most} at most, not {over}")
        return cls(tuple(found))

    def at(self, place: int) -> int:
        """The number for the query of this place, from 1 on."""
        return next(step.value for step in self.steps if step.last is None or place <= step.last)


def _no_steps(name: str, text: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} is a number, or numbers with the last query that each is for and one for all others, such"
        f" as 3:100,2:1000,1; not {text!r}"
    )


class Few(NamedTuple):
    """Queries with fewer results than ``below`` have the maximum distance ``max_distance`` at most."""

    below: int
    max_distance: int

    @classmethod
    def of(cls, text: str) -> Few:
        """``RESULTS:DISTANCE``; ConfigurationError if the text is something else."""
        below, _, distance = text.partition(":")
        if not below.isdecimal() or not distance.isdecimal():
            raise ConfigurationError(f"few results are RESULTS:DISTANCE, such as 20:1, not {text!r}")
        return cls(int(below), int(distance))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a clean-up.

    ``max_distances`` (k of the paper) and ``depths`` go by the frequency of the query, ``few`` by the number
    of its results. A query with more results is looked at to ``depth_share`` of them, if that is deeper.
    A query with fewer than ``min_results`` results loses none. Pages of ``kept_hosts`` are kept. ``below``:
    only pages with a lower PageRank are marked.
    """

    max_distances: Steps
    depths: Steps
    depth_share: float = 0.0
    few: Few | None = None
    min_results: int = 0
    kept_hosts: tuple[str, ...] = ()
    below: float | None = None

    def max_distance(self, place: int, results: int) -> int:
        """For the query of this place, which has so many results."""
        distance = self.max_distances.at(place)
        if self.few is not None and results < self.few.below:
            return min(distance, self.few.max_distance)
        return distance
