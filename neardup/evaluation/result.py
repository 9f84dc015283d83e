"""What an evaluation comes to: rows of scores, mistakes, and both as the documented JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.detection.rule import VERIFY, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.detection.interval import Rate
    from neardup.evaluation.measure import Score
    from neardup.text.features import Features

VERSION = 1
"""Of the JSON; counts up when a field changes its meaning or goes away, not when one is added."""

LARGEST_DISTANCE = 24
"""Rows are made for all distances up to this; unrelated pages begin to match before."""

CUTS = tuple(round(0.5 + 0.05 * i, 2) for i in range(10))
"""Resemblances, exact or estimated, at which they are scored by themselves."""


class Trial(NamedTuple):
    """A rule on fingerprints of some features.

    Pages match if they are at most ``distance`` bits apart. Unless ``verify`` is None, the resemblance by the
    sketches must also be ``verify`` or more.
    """

    features: str
    distance: int
    verify: float | None

    def rule(self) -> Rule:
        return Rule(self.distance, self.verify or 0.0)


@dataclass(frozen=True, slots=True)
class Choices:
    """What is compared: every one of ``features``, by distance alone and at each cut of ``verify``.

    The distances are ``distances``, or else all. A cut of 0 is the distance alone, as in a crawl.
    """

    features: Sequence[Features]
    verify: Sequence[float] = (VERIFY,)
    distances: Sequence[int] = ()

    @property
    def cuts(self) -> tuple[float | None, ...]:
        """None, which is the distance alone, and the cuts of ``verify``, each once."""
        return tuple(dict.fromkeys((None, *(cut or None for cut in self.verify))))

    def trials(self) -> list[Trial]:
        at = self.distances or range(LARGEST_DISTANCE + 1)
        return [Trial(one.name, d, cut) for one in self.features for cut in self.cuts for d in at]

    def own_trials(self, features: Features) -> list[Trial]:
        """Those that one choice of features stands for: at its own distances, unless others are given."""
        trials = []
        for cut in self.cuts:
            own = features.max_distance if cut is None else features.verified_max_distance
            trials += [Trial(features.name, d, cut) for d in self.distances or (own,)]
        return trials

    @property
    def default(self) -> Trial:
        """The one that mistakes are listed of: that of the first features and the first cut."""
        first, cut = self.features[0], self.verify[0] or None
        own = first.max_distance if cut is None else first.verified_max_distance
        return Trial(first.name, self.distances[0] if self.distances else own, cut)

    def note(self, trial: Trial) -> str:
        if trial == self.default:
            return "default"
        own = next(one for one in self.features if one.name == trial.features)
        return "own" if not self.distances and trial in self.own_trials(own) else ""


@dataclass(frozen=True, slots=True)
class Row:
    """A score and what it is the score of.

    ``by`` is one of four ways to score:

    - ``fingerprint``: a trial, all pairs compared;
    - ``index``: a trial, candidates found by PSM;
    - ``resemblance``: exact, with a ``cut``;
    - ``estimate``: of the sketches alone, with a ``cut``.

    ``different`` is the score for pairs of different texts only.
    """

    by: str
    score: Score
    trial: Trial | None = None
    cut: float | None = None
    note: str = ""
    different: Score | None = None

    def record(self) -> dict[str, Any]:
        trial = self.trial
        return {
            "by": self.by,
            "features": trial.features if trial else None,
            "distance": trial.distance if trial else None,
            "verify": trial.verify if trial else None,
            "cut": self.cut,
            "note": self.note,
            **score_record(self.score),
            **({"different": score_record(self.different)} if self.different else {}),
        }


@dataclass(frozen=True, slots=True)
class Mistake:
    """Two pages and what was wrongly said of them. ``diff`` has the lines of a unified diff of their
    texts.
    """

    kind: str
    """``missed`` or ``wrong``."""
    a: str
    b: str
    resemblance: float
    distance: int
    estimate: float
    diff: list[str]


@dataclass(frozen=True, slots=True)
class Result:
    """``source`` says what was evaluated: its fields differ between labelled pairs and pages."""

    mode: str
    source: dict[str, Any]
    default: Trial
    rows: list[Row]
    mistakes: list[Mistake] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "mode": self.mode,
            "source": self.source,
            "default": self.default._asdict(),
            "rows": [row.record() for row in self.rows],
            "mistakes": [asdict(mistake) for mistake in self.mistakes],
        }


def score_record(score: Score) -> dict[str, Any]:
    rates = {"precision": score.precision, "recall": score.recall, "f1": score.f1}
    return asdict(score) | {name: rate_record(rate) for name, rate in rates.items()}


def rate_record(rate: Rate | None) -> dict[str, float] | None:
    return None if rate is None else {name: round(value, 6) for name, value in rate._asdict().items()}
