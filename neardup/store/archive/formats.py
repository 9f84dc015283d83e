"""Which form of export a path means: ``.jsonl`` and ``.jsonl.gz`` are files, ``.parquet`` is a folder of
files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.errors import ConfigurationError
from neardup.store.archive import jsonlines, parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from neardup.store.archive.layout import Archive, Header, Table

JSON_LINES = (".jsonl", ".jsonl.gz")
PARQUET = ".parquet"


def check_new(path: Path) -> None:
    """Find out before a long export whether it can be written there; else ConfigurationError."""
    _is_parquet(path)
    if path.exists() or path.is_symlink():
        raise ConfigurationError(f"{path} is there already; name another one, or remove it first")
    if not path.parent.is_dir():
        raise ConfigurationError(f"{path}: there is no folder {path.parent}; make it first")


def save(
    path: Path,
    header: Header,
    tables: Sequence[Table],
    batches: Iterable[tuple[Table, list[tuple[Any, ...]]]],
) -> None:
    """Write an export, all of it or nothing; ConfigurationError if the path cannot be written."""
    try:
        if _is_parquet(path):
            parquet.save(path, header, tables, batches)
        else:
            jsonlines.save(path, header, batches)
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be written: {exc.strerror or exc}") from exc


def open_archive(path: Path, tables: Sequence[Table]) -> Archive:
    """An export of these tables; ConfigurationError says what is wrong with it."""
    if _is_parquet(path):
        return parquet.ParquetFolder(path, tables)
    return jsonlines.JsonLines(path, tables)


def _is_parquet(path: Path) -> bool:
    if path.suffix != PARQUET and not path.name.endswith(JSON_LINES):
        raise ConfigurationError(
            f"{path}: an export is named {', '.join(JSON_LINES)} (a file) or {PARQUET} (a folder)"
        )
    return path.suffix == PARQUET
