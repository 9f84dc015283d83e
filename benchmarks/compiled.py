"""numba for the loops that the product does not have: the systems of the thesis, and made fingerprints."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")


def compiled(function: F) -> F:
    """Compile on first call, cache the machine code, release the interpreter's lock; the type stays."""
    return cast("F", numba.njit(cache=True, nogil=True)(function))
