"""Unique pages by requests made, while a crawl runs."""

from __future__ import annotations

MOST_POINTS = 200
"""Points of a curve. When there are more, every second one is forgotten."""


class Curve:
    """How many unique pages a crawl had found after so many requests; from (0, 0) to the last page.

    >>> curve = Curve()
    >>> for requests in range(1, 7):
    ...     curve.add(requests, unique=min(requests, 4))
    >>> curve.points
    [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (6, 4)]

    Pages that are judged again are found late, and without a request:

    >>> curve.add(6, unique=5)
    >>> curve.points[-2:]
    [(5, 4), (6, 5)]
    """

    def __init__(self) -> None:
        self._points = [(0, 0)]
        self._last = (0, 0)
        self._step = 1
        """Least requests from point to point."""

    def add(self, requests: int, unique: int) -> None:
        """Note what was found after so many requests; none of both ever falls."""
        self._last = requests, unique
        if 0 < requests == self._points[-1][0]:
            self._points[-1] = self._last
        if requests < self._points[-1][0] + self._step:
            return
        self._points.append(self._last)
        if len(self._points) > MOST_POINTS:
            self._points = self._points[::2]
            self._step *= 2

    @property
    def points(self) -> list[tuple[int, int]]:
        """Requests and unique pages, in ascending order."""
        return self._points if self._points[-1] == self._last else [*self._points, self._last]
