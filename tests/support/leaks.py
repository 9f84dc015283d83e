"""A plugin of pytest for ``nox -s sanitize``: memory that the native core has lost fails the run.

AddressSanitizer knows of all memory that nothing points to. The leaks of others are left out.
"""

from __future__ import annotations

import ctypes
import gc
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS = re.compile(r"^ +#\d+ .*/neardup/\S+(\.c:\d+|\.so\+0x)", re.MULTILINE)
"""A line of a stack, with symbols or without."""


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    for leak in _lost():
        print(f"\n{leak}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _lost() -> Iterator[str]:
    """What is told of each leak in whose stack a native module is."""
    gc.collect()
    sanitizer = ctypes.CDLL(None)
    with tempfile.TemporaryDirectory() as folder:
        sanitizer.__sanitizer_set_report_path(f"{folder}/leaks".encode())
        sanitizer.__lsan_do_recoverable_leak_check()
        sanitizer.__sanitizer_set_report_path(b"stderr")
        for report in Path(folder).iterdir():
            yield from filter(_OURS.search, report.read_text(errors="replace").split("\n\n"))
