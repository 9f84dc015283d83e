"""A file of a collection that has another name until all of it is there."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class Unpublished(ABC):
    """A file on its way to ``path``. The process that writes the file has a name of its own for it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._started = path.with_name(f"{path.name}.{os.getpid()}.writing")

    @cached_property
    @abstractmethod
    def _file(self) -> Any:
        """What writes to ``_started``. There is no file before somebody asks for it."""

    def publish(self) -> None:
        """Give the file its name; its writer has ended it, and it is on disk."""
        self._started.replace(self.path)

    def drop(self) -> None:
        """Remove what was written and not published."""
        if "_file" in self.__dict__:
            with contextlib.suppress(OSError):
                self._file.close()
        self._started.unlink(missing_ok=True)
