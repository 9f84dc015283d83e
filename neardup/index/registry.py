"""The indexes to choose from, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.errors import ConfigurationError
from neardup.index.psm.psm_index import PSMIndex
from neardup.index.scan import LinearScan
from neardup.index.tables import MankuTables, MultiIndexHashing

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.index.base import Index

PSM = "psm"

_MAKERS: dict[str, Callable[[int, float], Index]] = {
    PSM: lambda max_distance, recall: PSMIndex(max_distance=max_distance, recall=recall),
    "multi-index": lambda max_distance, _: MultiIndexHashing(max_distance=max_distance),
    "manku": lambda max_distance, _: MankuTables(max_distance=max_distance),
    "scan": lambda max_distance, _: LinearScan(max_distance=max_distance),
}

NAMES = tuple(_MAKERS)
"""All but PSM are exact: they find every match, and take more memory or time."""


def make_index(name: str, *, max_distance: int, recall: float) -> Index:
    """An empty index; ``recall`` matters to PSM only. ConfigurationError: no such index, or values out of
    range.
    """
    if name not in _MAKERS:
        raise ConfigurationError(f"index must be one of {', '.join(NAMES)}, not {name!r}")
    return _MAKERS[name](max_distance, recall)
