"""A graph of links in memory, made of more links than memory takes: sorted in files, by ranges of targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.errors import NeardupError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

RANGES = 64
"""Files of links. The links of one are in memory at a time."""

MOST_NODES = 1 << 31

_LINKS_AT_ONCE = 1 << 20
_LOW = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """Different links between different nodes, by their targets.

    ``starts``, shape (nodes + 1,): where in ``sources`` the links to each node begin. ``sources``, shape
    (links,), dtype int32: the nodes that link to it, in their order. ``degrees``, shape (nodes,): how many
    nodes each node links to.
    """

    starts: Integers
    sources: npt.NDArray[np.int32]
    degrees: Integers

    @property
    def nodes(self) -> int:
        return self.degrees.size

    @property
    def links(self) -> int:
        return self.sources.size


def build(links: Iterable[tuple[Integers, Integers]], nodes: int, folder: Path) -> LinkGraph:
    """The graph of links, given as nodes of their two ends, some at a time; both numbers are below ``nodes``.

    A link of a node to itself is left out, and of several links between two nodes one counts. Memory has 4
    bytes for each link of the graph and 16 for each node. While links are sorted, one of :data:`RANGES` is in
    memory. ``folder`` gets 8 bytes for each link, and is left empty. NeardupError names the folder if it is
    full.
    """
    if nodes >= MOST_NODES:
        raise NeardupError(f"{nodes:,} nodes are too many for PageRank: at most {MOST_NODES - 1:,}")
    paths = [folder / f"links-{number:02}" for number in range(RANGES)]
    merged = folder / "sources"
    try:
        _divide(links, nodes, paths)
        starts, degrees = _merge(paths, nodes, merged)
        return LinkGraph(starts, np.fromfile(merged, dtype=np.int32), degrees)
    except OSError as exc:
        raise NeardupError(f"{folder}: links cannot be sorted there: {exc.strerror or exc}") from exc
    finally:
        for path in (*paths, merged):
            path.unlink(missing_ok=True)


def _divide(links: Iterable[tuple[Integers, Integers]], nodes: int, paths: list[Path]) -> None:
    """Write links into the file of the range of their target, as 64-bit numbers: target, then source."""
    bounds = _bounds(nodes)[1:-1] << 32
    files: list[Any] = [path.open("wb") for path in paths]
    try:
        for all_sources, all_targets in links:
            for start in range(0, all_sources.size, _LINKS_AT_ONCE):
                sources = all_sources[start : start + _LINKS_AT_ONCE]
                targets = all_targets[start : start + _LINKS_AT_ONCE]
                keys = _different((targets << 32 | sources)[sources != targets])
                for file, part in zip(files, np.split(keys, np.searchsorted(keys, bounds)), strict=True):
                    file.write(part.data)
    finally:
        for file in files:
            file.close()


def _merge(paths: list[Path], nodes: int, merged: Path) -> tuple[Integers, Integers]:
    """Write the different sources in the order of the targets; ``starts`` and ``degrees``."""
    starts = np.zeros(nodes + 1, dtype=np.int64)
    degrees = np.zeros(nodes, dtype=np.int64)
    bounds = _bounds(nodes).tolist()
    with merged.open("wb") as file:
        for path, first, end in zip(paths, bounds[:-1], bounds[1:], strict=True):
            keys = _different(np.fromfile(path, dtype=np.int64))
            path.unlink()
            sources = (keys & _LOW).astype(np.int32)
            file.write(sources.data)
            degrees += np.bincount(sources, minlength=nodes)
            starts[first + 1 : end + 1] = np.bincount((keys >> 32) - first, minlength=end - first)
    return np.cumsum(starts, out=starts), degrees


def _different(keys: Integers) -> Integers:
    """The different ones in their order. Faster than NumPy's unique, which hashes them first."""
    keys.sort()
    return keys[np.append(True, keys[1:] != keys[:-1])] if keys.size else keys


def _bounds(nodes: int) -> Integers:
    """Where the ranges of targets begin, and where the last one ends."""
    return np.arange(RANGES + 1, dtype=np.int64) * nodes // RANGES
