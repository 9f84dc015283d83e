"""Servers that really end in the middle of a crawl, or whose disk is full.

Nothing is lost, and one warning tells of the outage.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.faults import Fault, Outcome, faulty_crawl, faulty_process
from tests.support.servers import full_disk, own_server
from tests.support.stores import upgraded

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def is_as_without_a_fault(outcome: Outcome, pages: int) -> bool:
    kept = (outcome.pages_missing, outcome.relations_missing, outcome.rejected) == (0, 0, 0)
    return kept and (outcome.reason, outcome.judged) == ("finished", pages)


@pytest.mark.parametrize(
    ("backend", "how"),
    [("postgresql", signal.SIGQUIT), ("mysql", signal.SIGKILL)],
    ids=["postgresql", "mysql"],
)
def test_restart(backend: str, how: signal.Signals, tmp_path: Path) -> None:
    with own_server(backend) as server:
        fault = Fault(lambda: server.stop(how), server.start, seconds=1.5)

        outcome = faulty_process(upgraded(server.url), fault, tmp_path, pages=100)

        assert server.starts >= 2
    assert is_as_without_a_fault(outcome, pages=100), outcome
    assert outcome.retries >= 1
    # While it starts, a server may take a connection and end it once more.
    assert 1 <= outcome.warnings <= 2


@pytest.mark.parametrize("backend", ["postgresql", "mysql"])
def test_full_disk(backend: str) -> None:
    with full_disk(backend, 1.5) as (server, fault):
        outcome = faulty_crawl(upgraded(server.url), fault, pages=300)

    assert is_as_without_a_fault(outcome, pages=300), outcome
    assert outcome.retries >= 1
    assert outcome.warnings == 1
