"""Python modules as they are where the native core is not built."""

from __future__ import annotations

import os
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from types import ModuleType


def python_twin(module: ModuleType) -> ModuleType:
    """The module once more, all in Python. What it imports stays as it is."""
    spec = spec_from_file_location(module.__name__, module.__file__)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    with mock.patch.dict(os.environ, NEARDUP_NATIVE="0"):
        spec.loader.exec_module(made)
    return made
