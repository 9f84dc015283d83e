"""The one door to pyarrow, which is an extra: its modules, and what is said of files that are none of
Parquet.
"""

from __future__ import annotations

import importlib
import tokenize
import zipfile
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAMAGE = (
    ValueError, EOFError, LookupError, TypeError, AttributeError, RuntimeError, OverflowError, MemoryError,
    SyntaxError,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What NumPy and Arrow raise at files that are damaged, or none of theirs."""


def arrow_module(module: str, path: Path, *, instead: str = ".npy files") -> Any:
    """A module of pyarrow, which is an extra; without it, ConfigurationError says what to use instead."""
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        raise ConfigurationError(
            f"{path}: Parquet needs pyarrow; install it with pip install 'neardup[parquet]', or use {instead}"
        ) from exc


@contextmanager
def reading_parquet(path: Path) -> Iterator[None]:
    """What goes wrong within is wrong with this file: ConfigurationError, also where damage shows only when a
    column is read.
    """
    try:
        yield
    except ConfigurationError:
        raise
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror or exc}") from exc
    except DAMAGE as exc:  # all of Arrow's own are one of these
        raise ConfigurationError(f"{path} is not a Parquet file, or is damaged: {exc}") from exc
