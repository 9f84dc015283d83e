"""How much memory an object holds, whatever other threads and caches of functions take."""

from __future__ import annotations

import functools
import gc
import sys
import types

_SHARED = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    functools._lru_cache_wrapper,
)
"""What all objects of a process have in common."""


def held_bytes(one: object) -> int:
    """The bytes of an object and of all that the object leads to, each counted once."""
    found: dict[int, object] = {}
    waiting = [one]
    while waiting:
        reached = waiting.pop()
        if id(reached) not in found and not isinstance(reached, _SHARED):
            found[id(reached)] = reached
            waiting += gc.get_referents(reached)
    return sum(map(sys.getsizeof, found.values()))
