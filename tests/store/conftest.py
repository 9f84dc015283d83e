"""Fixtures of the store's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.databases import MYSQL_SLOWLY, SERVERS_SLOWLY, new_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SQL = ("test_store", "test_writer", "test_migrations")


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """As everywhere; each kind of server comes from below."""
    with new_database(request.param, tmp_path) as url:
        yield url


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The tests of the tables, and of what a crawl writes, are not slow on PostgreSQL."""
    if "database_url" in metafunc.fixturenames:
        is_of_sql = metafunc.module.__name__.rpartition(".")[2] in _SQL
        metafunc.parametrize("database_url", MYSQL_SLOWLY if is_of_sql else SERVERS_SLOWLY, indirect=True)
