"""How much a compiled loop has to do, in lines of Python instead of seconds: the same on every machine,
however busy.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def steps(function: Callable[..., object], *arguments: object) -> int:
    """Lines that a compiled function runs as Python, without those of other compiled functions that it
    calls.
    """
    plain = function.py_func  # type: ignore[attr-defined]
    lines = 0

    def on_call(frame: FrameType, event: str, _: Any) -> Any:
        return on_line if frame.f_code is plain.__code__ else None

    def on_line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return on_line

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        with np.errstate(over="ignore"):  # as machine code does
            plain(*arguments)
    finally:
        sys.settrace(before)
    return lines
