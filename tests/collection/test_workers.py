"""Processes end with the one that started them, whatever has ended it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from neardup.collection.workers import run
from neardup.errors import NeardupError
from tests.support.places import ROOT
from tests.support.silent_work import EndsAfterTask

_SECONDS = 30
"""After which a process has not ended."""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_a_silent_process_ends_with_the_one_that_was_killed() -> None:
    script = "from tests.support.silent_work import start; start()"
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE) as starting:
        assert starting.stdout is not None
        process = Path(f"/proc/{int(starting.stdout.readline())}")
        ran = process.exists()
        starting.kill()
    deadline = monotonic() + _SECONDS
    while process.exists() and monotonic() < deadline:
        sleep(0.02)

    assert ran
    assert not process.exists()


@pytest.mark.slow
def test_a_process_that_ends_between_two_tasks_is_named() -> None:
    done = run(EndsAfterTask, range(6), 2, lambda _: None)
    next(done)
    sleep(1.0)  # the other process has answered, and ends

    with pytest.raises(NeardupError, match="a process has ended at 3, perhaps for want of memory"):
        next(done)
