"""Marked pages taken out of a collection, and put back.

``FOLDER/clean/before/`` keeps the files of ``pages/`` as they were. So taking pages out loses nothing, and
whatever ends the command, the same command goes on. Clusters of before may have canonical pages that are
taken out, so they are put aside.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.collection import results
from neardup.collection.cleaning import marks
from neardup.collection.dataset import leave_out, page_files
from neardup.collection.failing import failing
from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.collection.cleaning.work import Way
    from neardup.collection.dataset import Collection


@dataclass(frozen=True, slots=True)
class Applied:
    """How many pages were taken out, and how many marked ones stay.

    ``unlike``: no canonical page of theirs is as similar as it must be. ``orphans``: all similar ones are
    taken out themselves.
    """

    removed: int
    unlike: int
    orphans: int


def before_folder(collection: Collection) -> Path:
    """Where the files of pages are as they were before marks were applied."""
    return collection.folder / "clean" / "before"


def is_applied(collection: Collection) -> bool:
    """Whether pages are taken out of a collection."""
    return any(before_folder(collection).glob("*.parquet"))


def apply(collection: Collection, way: Way, verify: float) -> Applied:
    """Take the marked pages of one way out that have a canonical page that stays.

    ``verify``: estimated resemblance of the two from which on a mark counts. ConfigurationError: there are
    no marks, or the pages have changed since; NeardupError: a file cannot be written.
    """
    table, marked = marks.read(collection, way)
    _check_unchanged(collection, marked)
    removed, applied = _chosen(table, verify)
    before = before_folder(collection)
    with failing(before):
        if removed.size or is_applied(collection):
            results.put_aside(collection, results.CLUSTERS)
        before.mkdir(exist_ok=True)
        for path in page_files(collection):
            kept = before / path.name
            if not kept.exists():
                _keep(path, kept)
            if not leave_out(kept, path, removed):
                kept.replace(path)
    return applied


def undo(collection: Collection) -> int:
    """Put all pages back; returns how many files of pages are as they were again."""
    before = before_folder(collection)
    files = sorted(before.glob("*.parquet"))
    if not before.is_dir():
        raise ConfigurationError(f"{collection.folder}: no marks are applied, so nothing can be undone")
    with failing(before):
        if files:
            results.put_aside(collection, results.CLUSTERS)
        for path in files:
            path.replace(collection.pages / path.name)
        shutil.rmtree(before)
    return len(files)


def _chosen(table: Any, verify: float) -> tuple[np.ndarray[Any, Any], Applied]:
    """The pages to take out, by the marks, the best page first: so a page goes only if one stays that it is
    like. What the paper does would lose pages: A is like B, B is like C, but A is not like C.
    """
    pages, canonical = table["page_id"].to_numpy(), table["canonical_id"].to_numpy()
    alike = table["resemblance"].to_numpy() >= verify
    order = np.lexsort((pages, -table["pagerank"].to_numpy()))
    removed: set[int] = set()
    like = set(pages[alike].tolist())
    for page, other, counts in zip(
        pages[order].tolist(), canonical[order].tolist(), alike[order].tolist(), strict=True
    ):
        if counts and other not in removed:
            removed.add(page)
    all_pages = np.unique(pages).size
    return np.array(sorted(removed), dtype=np.int64), Applied(
        len(removed), all_pages - len(like), len(like) - len(removed)
    )


def _check_unchanged(collection: Collection, marked: list[list[Any]]) -> None:
    before = before_folder(collection)
    for name, size, changed in marked:
        path = collection.folder / name
        kept = before / path.name
        try:
            found = (kept if kept.exists() else path).stat()
        except FileNotFoundError:
            found = None
        if found is None or [found.st_size, found.st_mtime_ns] != [size, changed]:
            raise ConfigurationError(
                f"{path} has changed since its pages were marked: mark them again, with --queries LOG"
            )


def _keep(path: Path, kept: Path) -> None:
    """A second name for a file, or a copy where the file system gives none; there as a whole or not."""
    try:
        os.link(path, kept)
    except OSError:
        begun = kept.with_name(f"{kept.name}.writing")
        shutil.copy2(path, begun)
        begun.replace(kept)
