"""Results that stand beside the pages of a collection, and what becomes of them when its pages change.

A result is of the pages that the collection had then. It must not pass for one of other pages, whoever reads
it: the commands here, or a query of one's own. So whatever changes the pages puts the results in
``FOLDER/outdated``, until the command that makes them has run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from neardup.collection.dataset import Collection

CLUSTERS = ("clusters.parquet", "relations.parquet")
RANKS = "pagerank.parquet"

_VERBS = {**dict.fromkeys(CLUSTERS, "clusters"), RANKS: "pagerank"}
"""The command that makes a result."""


def path_of(collection: Collection, name: str) -> Path:
    """Where a result is, or would be."""
    return (collection.clusters if name in CLUSTERS else collection.folder) / name


def known(collection: Collection, name: str) -> Path:
    """Where a result is; ConfigurationError: it is not there, or is one of other pages."""
    path = path_of(collection, name)
    if path.is_file():
        return path
    again = f"run neardup collection {_VERBS[name]} {collection.folder}"
    if (aside := _aside(collection.folder, name)).is_file():
        raise ConfigurationError(
            f"{aside} is of the pages that {collection.folder} had before: {again} again"
        )
    raise ConfigurationError(f"{path} is not there: {again}")


def put_aside(collection: Collection, names: Iterable[str]) -> None:
    """Put results aside, because pages are about to change; OSError if that is not possible."""
    for name in names:
        path, aside = path_of(collection, name), _aside(collection.folder, name)
        if path.is_file():
            aside.parent.mkdir(exist_ok=True)
            path.replace(aside)


def renewed(collection: Collection, names: Iterable[str]) -> None:
    """Remove what was put aside of results that are there again; OSError if that is not possible."""
    folder = _aside(collection.folder, RANKS).parent
    for name in names:
        _aside(collection.folder, name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def outdated(folder: Path) -> list[str]:
    """The commands whose results in the folder of a collection were put aside, and have to run again."""
    return sorted({verb for name, verb in _VERBS.items() if _aside(folder, name).is_file()})


def _aside(folder: Path, name: str) -> Path:
    return folder / "outdated" / name
