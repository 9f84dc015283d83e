"""What an interrupted batch search leaves beside its output, so that the same command goes on from there.

``OUT.partial`` holds the matches found so far, as raw records. ``OUT.progress`` (JSON) says what was searched
for, and in which files. ``OUT.progress`` also says how many rows of the file and how many records of
``OUT.partial`` are done. Records are on disk before the progress names them, and records behind the last one
named are cut off. So a crash at any moment loses at most the chunk at hand.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.collection.fingerprint_files import MATCH
from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

_FORMAT = 1


def identify(path: Path | None) -> dict[str, Any] | None:
    """What tells whether a file is still the same: its path, size in bytes and time of change in ns."""
    if path is None:
        return None
    found = path.stat()
    return {"path": str(path.resolve()), "size": found.st_size, "changed": found.st_mtime_ns}


class Progress:
    """The progress of one search, ``identity`` being its files and settings (as JSON has them).

    ``rows``: rows of the file that are done. Raises ConfigurationError if there is the progress of another
    search, or one that cannot be read.
    """

    def __init__(self, out: Path, identity: Mapping[str, Any]) -> None:
        self._path = out.with_name(f"{out.name}.progress")
        self._partial = out.with_name(f"{out.name}.partial")
        self._identity = json.loads(json.dumps({"format": _FORMAT, **identity}))
        self.rows = 0
        self._records = 0
        if self._path.exists():
            self._resume()
        self._append = self._partial.open("ab")
        self._append.truncate(self._records * MATCH.itemsize)

    def _resume(self) -> None:
        way_out = f"delete {self._path} and {self._partial} to start from the beginning"
        try:
            saved = json.loads(self._path.read_text())
            self.rows, self._records = int(saved["rows"]), int(saved["records"])
            before = saved["identity"]
            size = self._partial.stat().st_size if self._records else 0
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise ConfigurationError(f"{self._path} is damaged or incomplete ({exc}); {way_out}") from exc
        if size < self._records * MATCH.itemsize:
            raise ConfigurationError(f"{self._partial} is shorter than {self._path} says; {way_out}")
        if before != self._identity:
            changed = [
                f"{name} was {_shown(before.get(name))}, is {_shown(self._identity.get(name))}"
                for name in dict.fromkeys([*before, *self._identity])
                if before.get(name) != self._identity.get(name)
            ]
            raise ConfigurationError(
                f"{self._path} is the progress of another search: {'; '.join(changed)}. Give the same files"
                " and options"
                f" to go on with it, or {way_out}"
            )

    def matches(self) -> npt.NDArray[Any]:
        """The matches so far, dtype ``MATCH``."""
        self._append.flush()
        return np.fromfile(self._partial, dtype=MATCH, count=self._records)

    def add(self, matches: npt.NDArray[Any], rows: int) -> None:
        """Keep the matches of a chunk; ``rows`` of the file are done then."""
        self._append.write(matches.tobytes())
        self._append.flush()
        os.fsync(self._append.fileno())
        self.rows, self._records = rows, self._records + len(matches)
        saved = {"rows": self.rows, "records": self._records, "identity": self._identity}
        started = self._path.with_name(f"{self._path.name}.writing")
        with started.open("w") as out:
            json.dump(saved, out, indent=2)
            out.flush()
            os.fsync(out.fileno())
        os.replace(started, self._path)  # noqa: PTH105

    def close(self) -> None:
        self._append.close()

    def remove(self) -> None:
        """The output is written: nothing is left to resume."""
        self.close()
        # First the progress: without it, what remains is no search.
        self._path.unlink(missing_ok=True)
        self._partial.unlink(missing_ok=True)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return f"{value.get('path')} ({value.get('size')} bytes, changed at {value.get('changed')} ns)"
    return json.dumps(value)
