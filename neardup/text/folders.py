"""The HTML pages in folders, such as a mirrored site or a tree of documentation."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.errors import ConfigurationError, NeardupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST_BYTES = 100_000_000
"""Bytes of a page, unpacked; a packed one of some kilobytes may unpack to gigabytes."""

# Of one page in many languages Apache makes x.html.en, x.html.pt-br and x.html.ja.utf8.
_PAGE = re.compile(
    r".\.(?:html?|xhtml)(?:\.([a-z]{2})(?:-[a-z]+)?(?:\.[a-z0-9-]+)?)??(?:\.gz)?\Z", re.IGNORECASE
)
_NO_LANGUAGES = frozenset({"br", "gz", "in", "js", "md", "py", "rb", "ts", "xz"})
"""Two letters that end the names of other files than pages."""


def html_files(folders: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """All files below the folders whose names are those of HTML pages, sorted, each once.

    The names end in .html, .htm or .xhtml, perhaps with a language (.html.en, .html.ja.utf8), perhaps with
    .gz. Symbolic links are skipped. Raises ConfigurationError if a folder does not exist or cannot be read.
    """
    found: set[Path] = set()
    for folder in folders:
        top = Path(folder).expanduser()
        if not top.is_dir():
            raise ConfigurationError(f"{folder} is not a folder")
        found.update(path for path in files_below(top, _refuse) if is_page(path.name))
    # Folders may overlap, and be named relative or not.
    return sorted({path.resolve(): path for path in sorted(found)}.values())


def files_below(folder: Path, on_error: Callable[[OSError], None]) -> Iterator[Path]:
    """All regular files below a folder in the order of their paths; ``on_error`` is told which folders cannot
    be read.

    Symbolic links are skipped: what they lead to within the folder is found there, and what is elsewhere is
    not part of it.
    """
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                here = sorted(entries, key=lambda entry: entry.name)
            files = [Path(entry) for entry in here if entry.is_file(follow_symlinks=False)]
            waiting += [Path(entry) for entry in reversed(here) if entry.is_dir(follow_symlinks=False)]
        except OSError as exc:
            on_error(exc)
        else:
            yield from files


def is_page(name: str) -> bool:
    """Whether a file of this name is an HTML page.

    >>> names = ("a.html", "a.htm.gz", "a.html.pt-br", "a.html.ja.utf8", "a.html.js", ".html")
    >>> [name for name in names if is_page(name)]
    ['a.html', 'a.htm.gz', 'a.html.pt-br', 'a.html.ja.utf8']
    """
    match = _PAGE.search(name)
    return match is not None and (match[1] or "").lower() not in _NO_LANGUAGES


def read_page(path: Path) -> bytes:
    """The bytes of a page, unpacked if its name ends in .gz; NeardupError says why it cannot be read."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as exc:
        raise NeardupError(f"{path} cannot be read: {exc}") from exc
    if len(data) > MOST_BYTES:
        raise NeardupError(f"{path} is larger than {MOST_BYTES:,} bytes")
    return data


def _refuse(error: OSError) -> None:
    raise ConfigurationError(f"{error.filename} cannot be read: {error.strerror}") from error
