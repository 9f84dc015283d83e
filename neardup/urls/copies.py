"""Which duplicates are so near that one of them is enough."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup.detection.verdict import Kind
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    from neardup.detection.verdict import Verdict
    from neardup.fingerprint.sketch import Compact

ENOUGH = 0.87
"""Least estimated resemblance of copies of which one is enough.

Pages of versions of a manual are near-duplicates long before nothing is lost by fetching only one of them.
The estimate from 1,024 places of one bit is .02 off, so that pages with .9 are rarely taken for others.
"""

MOST_VERSIONS = 16
"""Versions of a canonical page that are told apart; later ones are each a version of its own."""

MOST_VERSIONED = 10_000
"""Canonical pages whose versions are told apart, some 10 MB. The one that was asked for the longest ago is
forgotten first.
"""


class _Version(NamedTuple):
    page_id: int
    sketch: Compact


class Copies:
    """Gives each judged page the cluster that a learner of URLs is told.

    A duplicate that resembles its canonical page nearly is in the cluster of that page. Another duplicate is
    in that of the first duplicate that it resembles nearly. So clusters are finer than those of verdicts.
    """

    def __init__(self) -> None:
        self._versions: OrderedDict[int, list[_Version]] = OrderedDict()

    def cluster_of(self, verdict: Verdict) -> int | None:
        """The id of the page that stands for a page and its near copies; None: the page has no cluster."""
        if verdict.page_id is None or verdict.kind in {Kind.TOO_SHORT, Kind.GONE}:
            return None
        if verdict.canonical_id is None or verdict.sketch is None or verdict.resemblance is None:
            return verdict.page_id
        if verdict.resemblance >= ENOUGH:
            return verdict.canonical_id
        versions = self._versions.setdefault(verdict.canonical_id, [])
        self._versions.move_to_end(verdict.canonical_id)
        if len(self._versions) > MOST_VERSIONED:
            self._versions.popitem(last=False)
        if versions:
            near = sketch.compact_estimates(
                np.stack([version.sketch for version in versions]), verdict.sketch
            )
            nearest = int(near.argmax())
            if near[nearest] >= ENOUGH:
                return versions[nearest].page_id
        if len(versions) < MOST_VERSIONS:
            versions.append(_Version(verdict.page_id, verdict.sketch))
        return verdict.page_id
