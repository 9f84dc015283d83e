"""Collections that tests build by the command, and the rows in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from neardup.cli.main import main
from tests.support.archives import Exchange
from tests.support.places import PAGES

if TYPE_CHECKING:
    from pathlib import Path

SMALL = 9_000
"""Bytes of the pages that most tests do with."""


def exchanges(most_bytes: int = SMALL) -> list[Exchange]:
    """The smaller real pages as responses; their charsets are in the pages."""
    return [
        Exchange(f"http://docs.example/{path.relative_to(PAGES).as_posix()}", path.read_bytes())
        for path in sorted(PAGES.rglob("*.html"))
        if path.stat().st_size <= most_bytes
    ]


def build(out: Path, *arguments: str | Path) -> int:
    """Run ``neardup collection build`` in this process; returns its exit code."""
    given = [str(argument) for argument in arguments]
    try:
        return main(["collection", "build", *given, "--out", str(out), "--processes", "1"])
    except SystemExit as exc:
        return int(exc.code or 0)


def rows(out: Path, kind: str = "pages") -> list[dict[str, Any]]:
    """All rows of ``pages`` or ``links``, in the order of the files."""
    return [row for path in sorted((out / kind).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def built(out: Path, *arguments: str | Path) -> list[dict[str, Any]]:
    """The pages of a collection that is built without an error."""
    assert build(out, *arguments) == 0
    return rows(out)


def files(out: Path) -> dict[str, bytes]:
    """All files of a collection but its record and its lock."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name not in {"collection.json", "lock"}
    }
