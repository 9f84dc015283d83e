"""SimHash proposes, the sketches decide: which of the pages within ``max_distance`` a page is a duplicate of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup import sketch, templates
from neardup.content import LEARNED, host_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.reading import Reader, Reading
    from neardup.rule import Rule
    from neardup.sketch import Compact
    from neardup.sketches import KnownSketches


class Found(NamedTuple):
    """The canonical page that a page is a duplicate of; ``resemblance`` is estimated, None if a sketch is not known."""

    row: int
    distance: int
    resemblance: float | None


class Verifier:
    """Confirms matches by the rule; with learned content, by what of the pages is not their site's template."""

    def __init__(self, rule: Rule, reader: Reader) -> None:
        self.rule = rule
        self.templates = templates.HostTemplates() if reader.content.mode == LEARNED else None

    def learn(self, url: str, reading: Reading) -> None:
        """Learn the template of a site from a page that is no duplicate."""
        if self.templates is not None:
            self.templates.learn(host_of(url), reading.shingles)

    def own_places(self, url: str, reading: Reading) -> Compact | None:
        """Places of the page's sketch that are not template; None: all of them count."""
        if self.templates is None:
            return None
        return self.templates.own_places(host_of(url), reading.shingles, reading.drawn)

    def confirmed(
        self,
        reading: Reading,
        own_places: Compact | None,
        sketches: KnownSketches,
        matches: npt.NDArray[np.int64],
    ) -> Found | None:
        """Of ``matches``, columns row and distance, shape (n, 2), the most resembling page that the rule takes."""
        assert reading.sketch is not None
        rows, distances = matches[:, 0], matches[:, 1]
        stored, known = sketches.of(rows)
        estimates = sketch.compact_estimates(stored, reading.sketch)
        estimates = templates.adjusted(estimates, stored, reading.sketch, own_places)
        estimates = np.where(known, estimates, np.nan)
        taken = np.flatnonzero(self.rule.are_matches(distances, estimates))
        if not taken.size:
            return None
        best = int(taken[np.argmax(np.nan_to_num(estimates[taken]))])
        estimate = float(estimates[best]) if known[best] else None
        return Found(int(rows[best]), int(distances[best]), estimate)
