"""Which pages of an endless space lead to new ones: the months of a calendar, say, but not its days.

Pages are told apart by the shapes of their URLs (:func:`neardup.urls.parts.url_shape`).
"""

from __future__ import annotations

from collections import OrderedDict

from neardup.detection.latest import keep_latest

_COUNT = 0.25
"""Times the limit of a cluster: what pages of a shape count until the shape is fruitful no longer. Most pages
of an endless space are of few shapes, and these have counted more before a cluster is exhausted.
"""

_MOST_SHAPES = 1_000
"""Shapes that are remembered. The one that led to a new page the longest ago is forgotten first."""

_MOST_WAYS = 10_000
"""Ways to new pages that are remembered, some 8 MB, likewise."""


class FruitfulShapes:
    """The shapes of the pages that were new lately, and of those that have led to them, in one crawl.

    They hold for all clusters of a site: which cluster a month is of may be a matter of one word.
    """

    def __init__(self, limit: int) -> None:
        self._most = _COUNT * limit
        self._counts: OrderedDict[str, float] = OrderedDict()
        self._ways: OrderedDict[tuple[int, str, str], None] = OrderedDict()

    def __contains__(self, shape: str) -> bool:
        return self._counts.get(shape, self._most) < self._most

    def bear(self, cluster_id: int, out_of: str, shape: str) -> None:
        """Note that a page of the first shape, in a cluster, has led to a new one of the second.

        The first time does not count. The first page of a kind says what no page of the cluster has said: the
        first day, which a month has led to.
        """
        way = cluster_id, out_of, shape
        if way in self._ways:
            keep_latest(self._counts, out_of, 0.0, _MOST_SHAPES)
            keep_latest(self._counts, shape, 0.0, _MOST_SHAPES)
        keep_latest(self._ways, way, None, _MOST_WAYS)

    def count(self, shape: str, change: float) -> None:
        """Add to the count of a page's shape, which does not fall below 0."""
        if shape in self._counts:
            self._counts[shape] = max(0.0, self._counts[shape] + change)
