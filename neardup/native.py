"""The native core: extension modules that do what Python modules do, faster.

Each stands beside the Python module that it serves, with an underscore before its name:
``neardup.text._feature_kernels`` serves ``neardup.text.feature_kernels``. A function or class of the Python
module that is also in the native one is its twin: the same results, written to be read. The twin is what
tests compare with, and what runs where the package was built without a C compiler.

``NEARDUP_NATIVE=0`` in the environment turns the native core off, for tests and emergencies.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

T = TypeVar("T", bound="Callable[..., object]")

COST = "reading a page takes some 12 times as long"
"""What a crawl without the native core pays."""


def _hindrance() -> str:
    """Why the native core is not used; empty if it is."""
    if os.environ.get("NEARDUP_NATIVE") == "0":
        return "NEARDUP_NATIVE=0"
    try:
        # Written by the build: "yes" with the suffix of the modules, or what was missing.
        record = Path(__file__).with_name("_build.txt").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return "not built"
    built, _, suffix = record.partition(" ")
    if built != "yes":
        return record
    return "" if suffix in EXTENSION_SUFFIXES else f"built for {suffix}, not for this Python"


reason = _hindrance()
"""Why the native core is not used; empty if it is."""

available = not reason
"""Whether the native core is used."""


def describe() -> str:
    """One line for people: whether the native core is used, why not, and what that costs."""
    return "native core: yes" if available else f"native core: no ({reason}; {COST})"


def load(name: str) -> ModuleType | None:
    """The native module of this full name; None where the native core is not used."""
    return None if _hindrance() else import_module(name)


def twin(function: T) -> T:
    """The native function or class of the same name; the given one where the native core is not used.

    For decorating the Python twin: callers of the module then get the native one without a word.
    """
    package, _, module = function.__module__.rpartition(".")
    native = load(f"{package}._{module}")
    return function if native is None else cast("T", getattr(native, function.__name__))
