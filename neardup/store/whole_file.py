"""Files that are there whole or not at all, and what such a file may replace."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator


def target(path: Path) -> Path:
    """The file that a file of this name replaces: that behind a symbolic link, which stays a link.

    ConfigurationError: a folder, a device or a pipe is there.
    """
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "a device, a pipe or a socket"
        raise ConfigurationError(f"{path} is {what}; name a file")
    return Path(os.path.realpath(path))  # Path.resolve fails at a link that leads to itself


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """The path of another file to write, which takes the place of ``path`` at the end.

    If that fails, nothing is left of the other file. Raises what :func:`target` raises, and OSError.
    """
    into = target(path)
    started = into.with_name(f"{into.name}.writing")
    try:
        yield started
        started.replace(into)
    finally:
        started.unlink(missing_ok=True)
