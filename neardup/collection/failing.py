"""Failures of files and of SQLite, as errors that name the file and the way out."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from neardup.errors import ConfigurationError, NeardupError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def failing(path: Path) -> Iterator[None]:
    """What SQLite and the file system say of a file, as an error that names it."""
    try:
        yield
    except sqlite3.Error as exc:
        if getattr(exc, "sqlite_errorcode", 0) in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            raise ConfigurationError(f"{path} is damaged ({exc}); delete it, and it is made again") from exc
        raise NeardupError(
            f"{path}: {exc}; what was done is kept, and the same command goes on from there"
        ) from exc
    except OSError as exc:
        raise NeardupError(
            f"{exc.filename or path}: {exc.strerror or exc}; what was done is kept, and the same command goes"
            " on from there"
        ) from exc
