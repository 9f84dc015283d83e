"""What PageRank has done so far, in a folder, so that the same command goes on from there.

The graph is kept as soon as its links are sorted, and the ranks now and then. Each iteration depends on the
ranks before it alone. So the ranks of an interrupted command are those of one in one piece, to the bit.
"""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from neardup.collection.failing import failing
from neardup.collection.link_graph import LinkGraph
from neardup.collection.pagerank import Ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SECONDS = 10.0
"""Between two times that ranks are kept. Keeping those of 10 million nodes takes a tenth of a second."""

_ARRAYS = ("starts", "sources", "degrees")


class RankWork:
    """The work on one graph; ``identity`` (as JSON has it) says which. That on another one is removed.

    NeardupError: a file cannot be written.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self._folder, self._note, self._ranks = folder, folder / "graph.json", folder / "ranks.npz"
        self._identity = json.loads(json.dumps(identity))
        self._kept = time.monotonic()

    def graph(self, make: Callable[[], LinkGraph]) -> LinkGraph:
        """The graph that is kept, or the one that is made."""
        if self._is_of_this():
            try:
                return LinkGraph(*(_loaded(self._path(name)) for name in _ARRAYS))
            except (OSError, ValueError, BadZipFile):
                pass  # it is made again
        shutil.rmtree(self._folder, ignore_errors=True)
        made = make()
        with failing(self._folder):
            self._folder.mkdir()
            for name in _ARRAYS:
                np.save(self._path(name), getattr(made, name))
            self._note.write_text(json.dumps(self._identity))  # the last: with it, the graph is there
        return made

    def ranks(self) -> Ranks | None:
        """The ranks that are kept of the graph; None: there are none."""
        try:
            with self._ranks.open("rb") as file, np.load(file, allow_pickle=False) as kept:
                return Ranks(kept["values"], int(kept["iterations"]), float(kept["error"]))
        except (OSError, ValueError, KeyError, BadZipFile):
            return None

    def keep(self, ranks: Ranks) -> None:
        """Keep ranks, if the last time was a while ago."""
        if time.monotonic() - self._kept < SECONDS:
            return
        begun = self._folder / "ranks.writing.npz"
        with failing(self._folder):
            np.savez(begun, values=ranks.values, iterations=ranks.iterations, error=ranks.error)
            begun.replace(self._ranks)
        self._kept = time.monotonic()

    def remove(self) -> None:
        """All is done: nothing is left to go on with."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.npy"

    def _is_of_this(self) -> bool:
        try:
            return bool(json.loads(self._note.read_bytes()) == self._identity)
        except (OSError, ValueError):
            return False


def _loaded(path: Path) -> Any:
    with path.open("rb") as file:
        return np.load(file, allow_pickle=False)
