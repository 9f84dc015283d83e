"""Memory that is bounded: the latest are kept, and what was quiet the longest is forgotten first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections import OrderedDict

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def keep_latest(kept: OrderedDict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    """Keep a value as the latest, and no more than so many.

    >>> from collections import OrderedDict
    >>> kept = OrderedDict(a=1, b=2)
    >>> keep_latest(kept, "a", 3, most=2)
    >>> keep_latest(kept, "c", 4, most=2)
    >>> dict(kept)
    {'a': 3, 'c': 4}
    """
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
