"""Says which results of a collection are of pages that it had before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.cli.output import complain

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def tell_outdated(folder: Path, verbs: Iterable[str]) -> None:
    """``verbs``: the commands whose results were put aside."""
    for verb in verbs:
        complain(
            f"what neardup collection {verb} found is of the pages before, and was put into"
            f" {folder / 'outdated'}; run it again"
        )
