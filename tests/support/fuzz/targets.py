"""The five targets by name, each a function of bytes that raises where it finds fault, and its seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.support.fuzz import files, indexes, pages, snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOUND = Path(__file__).parent / "found"
"""Inputs in which fault was found, by ``TARGET-what-it-was``."""


class Target(NamedTuple):
    run: Callable[[bytes], None]
    made_seeds: Callable[[], Iterator[bytes]]


TARGETS = {
    "text": Target(pages.text, pages.text_seeds),
    "words": Target(pages.find_words, pages.word_seeds),
    "index": Target(indexes.compare, indexes.seeds),
    "snapshot": Target(snapshots.restore, snapshots.seeds),
    "files": Target(files.read, files.seeds),
}


def seeds(name: str) -> list[bytes]:
    """What the project's own pages and writers give, and what was found before."""
    return [*TARGETS[name].made_seeds(), *(path.read_bytes() for path in sorted(FOUND.glob(f"{name}-*")))]
