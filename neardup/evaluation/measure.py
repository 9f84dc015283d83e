"""Precision, recall and F1 with 95 % intervals, and rank correlation.

The interval of a share is Wilson's (1927). Let q be the share of the right pairs among all pairs that are
reported or wanted. F1 = 2q / (1 + q) rises with q, so the interval of F1 is Wilson's interval of q, put
through the same formula. Where a pair is right by one cut and wanted by another, q is taken from F1, and the
interval is approximate.

All intervals take pairs to be independent. Pairs of the same pages are not: among the pages of one site,
whose near-duplicates come in clusters, the true uncertainty is larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neardup.detection.interval import Rate, wilson

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of pairs: ``right`` of those ``reported`` are right, ``found`` of those ``wanted`` are among the
    reported.

    With one truth for both, ``right`` = ``found``. A rate is None where nothing is reported, or nothing
    wanted.
    """

    reported: int
    right: int
    wanted: int
    found: int

    @property
    def precision(self) -> Rate | None:
        return wilson(self.right, self.reported)

    @property
    def recall(self) -> Rate | None:
        return wilson(self.found, self.wanted)

    @property
    def f1(self) -> Rate | None:
        """Harmonic mean of precision and recall."""
        if not self.reported or not self.wanted:
            return None
        precision, recall = self.right / self.reported, self.found / self.wanted
        mean = 2.0 * precision * recall / (precision + recall) if self.right and self.found else 0.0
        either = self.reported + self.wanted - self.found
        of_either = wilson(mean / (2.0 - mean) * either, either)
        assert of_either is not None
        return Rate(mean, *(2.0 * q / (1.0 + q) for q in of_either[1:]))


def score(reported: npt.NDArray[np.bool_], labels: npt.NDArray[np.bool_]) -> Score:
    """Score of verdicts against labels, both of shape (m,)."""
    right = int(np.count_nonzero(reported & labels))
    return Score(int(np.count_nonzero(reported)), right, int(np.count_nonzero(labels)), right)


def best_cut(values: npt.NDArray[np.float64], labels: npt.NDArray[np.bool_]) -> float | None:
    """The cut among ``values`` at which "value ≥ cut" has the highest F1, the largest of several; None if no
    label is true.
    """
    if not labels.any():
        return None
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    # A cut takes in all pairs of the same value, so it may stand only at the last of them.
    last = np.append(ordered[1:] != ordered[:-1], True)
    right = np.cumsum(labels[order])
    f1 = np.where(last, 2.0 * right / (np.arange(1, values.size + 1) + np.count_nonzero(labels)), -1.0)
    return float(ordered[np.argmax(f1)])


def spearman(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float | None:
    """Spearman's rank correlation, equal values sharing their mean rank; None if all of ``a`` or all of ``b``
    are equal.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
    0.5
    """
    ranks = [_ranks(a), _ranks(b)]
    if any(rank.size < 2 or np.ptp(rank) == 0.0 for rank in ranks):
        return None
    x, y = (rank - rank.mean() for rank in ranks)
    return float(x @ y / math.sqrt(float(x @ x) * float(y @ y)))


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2.0)[inverse], dtype=np.float64)
