"""Which of the pages within ``max_distance`` a page is a duplicate of.

SimHash proposes, the sketches decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup.detection import site_templates
from neardup.fingerprint import sketch
from neardup.text.content import LEARNED

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from neardup.address import Address
    from neardup.detection.known_pages import KnownPages, Urls
    from neardup.detection.known_sketches import KnownSketches
    from neardup.detection.rule import Rule
    from neardup.detection.scope import Scope
    from neardup.fingerprint.reader import Reader, Reading
    from neardup.fingerprint.sketch import Compact


class Found(NamedTuple):
    """The canonical page that a page is a duplicate of; ``resemblance`` is estimated, of the whole texts."""

    row: int
    distance: int
    resemblance: float


class Verifier:
    """Confirms matches by rule and scope.

    With learned content, only what is not the template of the site is compared.
    """

    def __init__(self, rule: Rule, scope: Scope, reader: Reader) -> None:
        self.rule = rule
        self.scope = scope
        self.templates = site_templates.HostTemplates() if reader.content.mode == LEARNED else None

    def learn(self, page: Address, reading: Reading) -> None:
        """Learn the template of a site from a page that is no duplicate."""
        if self.templates is not None:
            self.templates.learn(page.host, reading.shingles)

    def exact_copies(
        self,
        page: Address,
        value: int,
        compact: Compact,
        *,
        rows: Sequence[int],
        pages: KnownPages,
        sketches: KnownSketches,
    ) -> list[int]:
        """Of ``rows``, canonical pages of the same text digest, those in scope with the same fingerprint and
        sketch.

        Two texts of one digest can be made on purpose. To pass for copies they would need all three.
        """
        alike = [
            row for row in rows if pages.values[row] == value and self.scope.takes(page, pages.urls[row])
        ]
        if not alike:
            return alike
        same = (sketches.of(np.array(alike)) == compact).all(axis=1)
        return [row for row, is_same in zip(alike, same.tolist(), strict=True) if is_same]

    def confirmed(
        self,
        page: Address,
        reading: Reading,
        *,
        urls: Urls,
        sketches: KnownSketches,
        matches: npt.NDArray[np.int64],
    ) -> Found | None:
        """Of ``matches``, columns row and distance, shape (n, 2), the most resembling page that rule and
        scope take.
        """
        assert reading.sketch is not None
        rows, distances = matches[:, 0], matches[:, 1]
        stored = sketches.of(rows)
        resemblances = deciding = sketch.compact_estimates(stored, reading.sketch)
        if self.templates is not None:
            own = self.templates.own_places(page.host, reading.shingles, reading.full_sketch)
            deciding = site_templates.adjusted(resemblances, stored, reading.sketch, own)
        taken = np.flatnonzero(self.rule.are_matches(distances, deciding))
        if self.scope.is_bounded:
            taken = taken[[self.scope.takes(page, urls[int(row)]) for row in rows[taken]]]
        if not taken.size:
            return None
        best = int(taken[np.argmax(deciding[taken])])
        return Found(int(rows[best]), int(distances[best]), float(resemblances[best]))
