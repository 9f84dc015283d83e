"""The report as an HTML file on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.errors import NeardupError
from neardup.store.whole_file import target, written_whole
from neardup.web.extra import needed_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from neardup.detection.rule import Rule
    from neardup.store.store import Store


def check(what: str) -> None:
    """ConfigurationError if the extra for reports is missing; ``what`` asks for it."""
    with needed_for(what):
        import neardup.web.pages  # noqa: F401, PLC0415


def write(store: Store, rule: Rule, path: Path, progress: Callable[[str], None] = lambda _: None) -> None:
    """Write the report of a store, which replaces a file that is there once it is whole.

    Raises ConfigurationError if the extra is missing, or the path is that of no file. Raises NeardupError if
    the file cannot be written.
    """
    check(f"the report {path}")
    target(path)  # before the counting, which may take long
    from neardup.web.counting import count  # noqa: PLC0415  # crawls without a report do not pay for it
    from neardup.web.pages import report_file  # noqa: PLC0415

    counted = count(store, rule, progress)
    text = report_file(counted.summary, counted.mirrors)
    try:
        with written_whole(path) as started:
            started.write_text(text, encoding="utf-8", errors="replace")
    except OSError as exc:
        raise NeardupError(f"the report {path} cannot be written: {exc.strerror or exc}") from exc
