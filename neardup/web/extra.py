"""What the room says where its extra is not installed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Import templates or server within: ConfigurationError if the extra is missing."""
    try:
        yield
    except ModuleNotFoundError as exc:
        raise ConfigurationError(
            f"{what} needs {exc.name}; install it with pip install 'neardup[web]'"
        ) from exc
