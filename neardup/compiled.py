"""The one door to numba: ``@compiled`` turns a Python loop into machine code and keeps its type for mypy.

``@lean`` and ``@inlined`` are for loops that make no arrays and only work on those they are given. Such loops
do without numba's counting of references. That counting, atomic additions around every call and slice, was a
fifth of a search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")
T = TypeVar("T")


def compiled(function: F) -> F:
    """Compile on first call, cache the machine code beside the module, release the GIL while it runs."""
    return _compiled(function)


def lean(function: F) -> F:
    """:func:`compiled` for a function that makes no arrays: no references are counted. One that does cannot
    be compiled.
    """
    return _compiled(function, _nrt=False)


def inlined(function: F) -> F:
    """:func:`lean`, and a part of each function that calls it, so that a call passes nothing."""
    return _compiled(function, _nrt=False, forceinline=True)


def brief(function: F) -> F:
    """:func:`lean` for what mostly takes microseconds, which keeps the GIL: to get it back from a thread that
    computes may take thousands of them.
    """
    return _compiled(function, _nrt=False, nogil=False)


def _compiled(function: F, *, nogil: bool = True, **options: Any) -> F:
    try:
        return cast("F", numba.njit(cache=True, nogil=nogil, **options)(function))
    except RuntimeError:
        # Neither the module's folder nor the user's can be written to: every process compiles for itself.
        return cast("F", numba.njit(nogil=nogil, **options)(function))


def machine_code(function: Callable[..., T], signature: str) -> Callable[..., T]:
    """The machine code of a compiled function for arguments of these types, compiled now. Called by itself it
    looks at no types any more: arrays of another one are read as if they were of these.
    """
    dispatcher = cast("Any", function)
    dispatcher.compile(signature)
    [made] = dispatcher.overloads.values()
    return cast("Callable[..., T]", made.entry_point)
