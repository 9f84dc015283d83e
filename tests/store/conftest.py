"""Fixtures of the store's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.databases import MYSQL_SLOWLY, SERVERS_SLOWLY, new_database
from tests.support.ready_databases import ready_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SQL = ("test_store", "test_writer", "test_migrations")


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """As everywhere; each kind of server comes from below."""
    with ready_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a database without tables."""
    with new_database(request.param, tmp_path) as url:
        yield url


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The tests of the tables, and of what a crawl writes, are not slow on PostgreSQL."""
    for name in {"database_url", "empty_url"}.intersection(metafunc.fixturenames):
        is_of_sql = metafunc.module.__name__.rpartition(".")[2] in _SQL
        metafunc.parametrize(name, MYSQL_SLOWLY if is_of_sql else SERVERS_SLOWLY, indirect=True)
