"""Says which results of a collection are of pages that it had before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.cli.output import complain
from neardup.collection.results import outdated

if TYPE_CHECKING:
    from pathlib import Path


def tell_outdated(folder: Path) -> None:
    """Name the commands whose results in the folder of a collection were put aside."""
    for verb in outdated(folder):
        complain(
            f"what neardup collection {verb} found is of the pages before, and was put into"
            f" {folder / 'outdated'}; run it again"
        )
