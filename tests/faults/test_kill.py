"""kill -9 of real crawls, and Ctrl-C twice, a few times on each database; ``benchmarks/bench_kill.py`` does
it hundreds of times.
"""

from __future__ import annotations

import sqlite3
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from benchmarks.bench_kill import ZEROS, prepared
from tests.support.databases import SERVERS, new_database
from tests.support.killing import (
    Ground,
    Tables,
    Watcher,
    interrupt_twice,
    kill,
    kill_9,
    number_of,
    reference,
    stages,
    whole_seconds,
)

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow

SHARES = {"sqlite": (0.1, 0.5, 0.75, 0.95), **dict.fromkeys(SERVERS, (0.6, 0.85))}
"""Of the time that a crawl takes, at which it is killed: while it starts, in the middle, while it ends."""

INTERRUPTS = {"sqlite": (0.7, 0.1), "postgresql": (0.85, 0.3), "mysql": (0.95, 0.6)}
"""The same for Ctrl-C, with the seconds until the second one."""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Tables], float]:
    folder = tmp_path_factory.mktemp("reference")
    return reference(Ground(f"sqlite:///{folder}/n.db", folder), stages())


@pytest.mark.parametrize("backend", SHARES)
def test_nothing_committed_is_lost_and_the_end_is_the_same(
    backend: str, uninterrupted: tuple[list[Tables], float], tmp_path: Path
) -> None:
    end_each(backend, uninterrupted, tmp_path, [(share, kill_9) for share in SHARES[backend]])


@pytest.mark.parametrize("backend", INTERRUPTS)
def test_ctrl_c_twice(backend: str, uninterrupted: tuple[list[Tables], float], tmp_path: Path) -> None:
    share, between = INTERRUPTS[backend]
    end_each(backend, uninterrupted, tmp_path, [(share, partial(interrupt_twice, between=between))])


@pytest.mark.parametrize("backend", SHARES)
def test_while_it_closes(backend: str, tmp_path: Path) -> None:
    part = stages()[0]
    with new_database(backend, tmp_path) as url:
        ground = Ground(prepared(backend, url), tmp_path)
        result = reference(ground, [part])[0][0]
        seconds = ground.seconds_of_closing(part)
    one = None
    for share in (0.3, 0.1, 0.0):  # the machine may have been busier while the time was measured
        folder = tmp_path / str(share)
        folder.mkdir()
        with new_database(backend, folder) as url:
            ground = Ground(prepared(backend, url), folder)
            one = one or kill(ground, part, result, share * seconds, 0.0, closing=True)

    assert one is not None
    assert {name: number_of(one, name) for name in ZEROS} == dict.fromkeys(ZEROS, 0), one


def end_each(
    backend: str,
    uninterrupted: tuple[list[Tables], float],
    tmp_path: Path,
    ends: Sequence[tuple[float, Callable[[subprocess.Popen[bytes]], None]]],
) -> None:
    results, seconds = uninterrupted
    left = iter(ends)
    done = 0
    while done < len(ends):
        folder = tmp_path / str(done)
        folder.mkdir()
        with new_database(backend, folder) as url:
            ground = Ground(prepared(backend, url), folder)
            for part, result, (share, end) in zip(stages(), results, left, strict=False):
                one = kill(ground, part, result, share * whole_seconds(seconds, result), end=end)
                done += 1

                if one is not None:  # on a machine that is idle now it may have ended before
                    assert {name: number_of(one, name) for name in ZEROS} == dict.fromkeys(ZEROS, 0), one


class TestTheCheckItself:
    """What would be wrong is noticed."""

    @pytest.fixture
    def ground(self, tmp_path: Path) -> Ground:
        ground = Ground(f"sqlite:///{tmp_path}/n.db", tmp_path)
        ground.crawl(stages()[0])
        return ground

    def test_of_rows_and_index(self, ground: Ground, tmp_path: Path) -> None:
        watcher = Watcher(ground.url)
        while not watcher.relation_rows:
            time.sleep(0.01)
        watcher.stop()
        assert watcher.lost(ground.read()) == ground.read().doubles == 0
        assert ground.index_is_that_of_the_tables()

        # No foreign keys here: a canonical page goes, its duplicates stay.
        connection = sqlite3.connect(tmp_path / "n.db")
        connection.execute(
            "DELETE FROM simhash_values WHERE id = (SELECT MIN(actual_hash_id) FROM duplicate_values)"
        )
        connection.commit()
        connection.close()

        assert watcher.lost(ground.read()) == 1
        assert ground.read().doubles > 0
        # The snapshot still knows the page: it is taken as true, because no crawl has written since.
        assert not ground.index_is_that_of_the_tables()
