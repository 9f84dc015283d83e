"""Where a site links to pages that are not there: in a language that a manual does not have, say.

Copies may each have such a link of their own. Made first, those requests would come before all new pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.urls.parts import MOST_VALUE, parts_of
from neardup.urls.tally import Tallies

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_PLACES = 10_000
"""Folders and parameters remembered, 4 to 10 MB. The one that answered the longest ago goes first."""

_FOLDERS = 4
"""Folders of a path, from the top, that count."""

_LEAST_TRIALS = 3.5
"""Four answers, of which a tally forgets a little; below that a place says nothing."""

_WEIGHT = 1.0
"""Answers that count as half missing before anything is known."""


class AbsentPages:
    """How often pages were missing, of one crawl: by folder, and by the value of a parameter."""

    def __init__(self) -> None:
        self._places = Tallies[tuple[str, str]](MOST_PLACES)

    def answered(self, url: str, *, is_missing: bool) -> None:
        """Count the answer to a request."""
        for place in _places(url):
            self._places.of(place).add(hit=is_missing)

    def share(self, url: str) -> float:
        """The share that was missing in the innermost known folder of a URL, or with one of its parameters.

        The largest counts, and 0 if nothing is known.
        """
        of_folder = of_parameter = 0.0
        for place in _places(url):
            tally = self._places.get(place)
            if tally is None or tally.trials < _LEAST_TRIALS:
                continue
            share = tally.share(0.5, _WEIGHT)
            if place[1].startswith("/"):
                of_folder = share  # the innermost comes last
            else:
                of_parameter = max(of_parameter, share)
        return max(of_folder, of_parameter)


def _places(url: str) -> Iterator[tuple[str, str]]:
    """Folders first, the outermost before the others.

    >>> [name for _, name in _places("http://a.example/fr/v5/x.html?version=0")]
    ['/fr/', '/fr/v5/', '?version=0 /fr/v5/']
    """
    parts = parts_of(url)
    if parts is None:
        return
    folder = "/"
    for segment in parts.segments[:-1][:_FOLDERS]:
        folder += f"{segment[:MOST_VALUE]}/"
        yield parts.origin, folder
    for _, pair in parts.parameters:
        if len(pair) <= MOST_VALUE:
            yield parts.origin, f"?{pair} {folder}"
