"""The one door to numba: ``@compiled`` turns a Python loop into machine code and keeps its type for mypy."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")


def compiled(function: F) -> F:
    """Compile on first call, cache the machine code beside the module, release the GIL while it runs."""
    try:
        return cast("F", numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        # Neither the module's folder nor the user's can be written to: every process compiles for itself.
        return cast("F", numba.njit(nogil=True)(function))
