"""Everything neardup raises on purpose.

::

    NeardupError
    ├── ConfigurationError      a setting or argument is wrong; also a ValueError
    ├── PageTooLarge            a page is over the budget and not judged
    └── StoreError              the database cannot be used as it is
        ├── DatabaseUnavailable    cannot connect, locked, full, or gone in the middle
        ├── SchemaOutdated         the tables are missing or of another version
        └── SchemeMismatch         the stored fingerprints were made in another way

Each message names the value at fault and the way out.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class NeardupError(Exception):
    """Base of all errors raised by neardup."""


class ConfigurationError(NeardupError, ValueError):
    """A setting or an argument has a value that is not allowed.

    ``option``: the field of :class:`neardup.detection.detector.DetectorOptions` at fault, if the message does
    not begin with its name.
    """

    option: str | None = None


@contextmanager
def about(option: str) -> Iterator[None]:
    """What is wrong within is wrong with this field of
    :class:`neardup.detection.detector.DetectorOptions`.
    """
    try:
        yield
    except ConfigurationError as exc:
        exc.option = option
        raise


class PageTooLarge(NeardupError):
    """A page has more of something than :class:`neardup.text.limits.Limits` allows; ``limit``
    is the field.
    """

    def __init__(self, limit: str, found: str, most: int) -> None:
        super().__init__(f"too large to be judged: {found} (NEARDUP_MAX_{limit.upper()} is {most:,})")
        self.limit = limit


class StoreError(NeardupError):
    """The database cannot be used as it is."""


class DatabaseUnavailable(StoreError):
    """The database cannot be reached, or does not take what is written to it."""


class SchemaOutdated(StoreError):
    """The tables are missing, or of another version than this neardup needs."""


class SchemeMismatch(StoreError):
    """The stored fingerprints were made by another scheme and must not be compared."""
