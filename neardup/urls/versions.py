"""Segments that stand in an order, such as versions: what lies between two of them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from neardup.address import without_host
from neardup.urls.parts import MOST_VALUE, is_opaque
from neardup.urls.rules import AND

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from neardup.urls.memory import Page
    from neardup.urls.slots import Context, Place

MOST_ENDS = 4_000
"""Directories of a host whose lowest and highest versions are remembered. With more, all are forgotten."""

COPIES = "/* between copies"
"""Context, below a directory, of versions whose nearest known ones on both sides are copies of each other."""

OTHERS = "/* between others"
"""The same, of versions whose nearest known ones on both sides are no copies."""

_NAMED = 3
"""Other versions that a context names."""

_SLASHES = 3
"""Of a URL, before the first segment of its path."""

_NUMBER = re.compile(r"[0-9]+")

_Numbers = tuple[int, ...]


class Versions:
    """The lowest and the highest version of each directory of one host, as far as pages of them are known.

    What changes from version to version hardly ever changes back. So a page is likely a copy if an older and
    a newer version of it are copies of each other. Of three unknown versions the outermost tells most.
    """

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], tuple[_Numbers, _Numbers]] = {}

    def seen(self, directory: str, segment: str) -> None:
        """Take note of a page of a version, which ``segment`` names in a directory."""
        own = _numbers(segment)
        if own:
            if len(self._ends) >= MOST_ENDS:
                self._ends.clear()
            lowest, highest = self._ends.setdefault((directory, _way(segment)), (own, own))
            if not lowest <= own <= highest:
                self._ends[directory, _way(segment)] = min(lowest, own), max(highest, own)

    def is_inner(self, directory: str, segment: str, others: Iterable[str]) -> bool:
        """Whether a version has all known ``others`` of a page on one side and, on the other side, an outer
        version of the directory.
        """
        way = _way(segment)
        lowest, highest = self._ends.get((directory, way), ((), ()))
        own, known = _numbers(segment), [_numbers(other) for other in others if _way(other) == way]
        return bool(own and known) and (max(known) < own < highest or lowest < own < min(known))


def versions_of(place: Place, pages: Iterable[Page]) -> dict[str, int]:
    """The segments that pages have in the place of the directory of a slot, and their clusters."""
    in_url = _SLASHES + int(place.value.partition(AND)[0])
    return {"".join(page.url.split("/")[in_url : in_url + 1]): page.cluster for page in pages}


def contexts_of(place: Place, partners: Iterable[Page]) -> tuple[Context, ...]:
    """The contexts of a slot. Those of a segment that another may stand for name the others, too: the last
    version of a page tells more than the first one. The last context says how the version lies between them.
    If it lies outside, the last contexts are those of pages that are likely to change together.
    """
    contexts, directory = place.make_contexts(), place.directory
    if directory is None:
        return contexts
    slot, value = place.slot, place.value
    others = versions_of(place, partners)
    named = ",".join(sorted(others)[-_NAMED:])[:MOST_VALUE]
    after = f"{contexts[1][2]}<{named}"
    contexts = *contexts, (slot, value, after)
    lies = between(directory.segment, others)
    if lies:
        return (*contexts, (slot, value, f"{directory.above}{lies}"))
    return *contexts, *((slot, value, f"{after} {like}") for like in directory.like())


def places_in_version(url: str) -> tuple[str, ...]:
    """Where a page stands on its host, and where it would stand if the first directory named a version.

    A number or an id names no version, and neither does a directory that comes twice: links that lead in
    circles make such addresses.

    >>> places_in_version("http://a.example/v2/guide/intro?p=1"), places_in_version("http://a.example/2026/11/")
    (('v2/guide/intro?p=1', 'guide/intro?p=1'), ('2026/11/',))
    """
    place = without_host(url)
    first, _, rest = place.partition("/")
    if not rest or first.isdigit() or is_opaque(first) or rest.startswith(f"{first}/"):
        return (place,)
    return place, rest


def between(segment: str, clusters: Mapping[str, int]) -> str:
    """:data:`COPIES` or :data:`OTHERS` if a version lies between others of known clusters; else "".

    >>> between("3.10", {"3.9": 1, "3.11": 1}), between("3.10", {"3.8": 1, "3.9": 2, "3.12": 1})
    ('/* between copies', '/* between others')
    >>> between("3.10", {"3.8": 1, "3.9": 1}), between("de", {"en": 1, "fr": 1})
    ('', '')
    """
    own, way = _numbers(segment), _way(segment)
    known = {_numbers(other): cluster for other, cluster in clusters.items() if _way(other) == way}
    lower = max((numbers for numbers in known if numbers < own), default=None)
    higher = min((numbers for numbers in known if numbers > own), default=None)
    if lower is None or higher is None:
        return ""
    return COPIES if known[lower] == known[higher] else OTHERS


@lru_cache(10_000)  # the URLs of a site have most of their segments in common
def _numbers(segment: str) -> _Numbers:
    return tuple(map(int, _NUMBER.findall(segment)))


@lru_cache(10_000)
def _way(segment: str) -> str:
    """How a version is written: versions that are written in one way have an order."""
    return _NUMBER.sub("0", segment)
