"""Fixtures of the store's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.databases import MYSQL_SLOWLY, new_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=MYSQL_SLOWLY)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """As everywhere, but PostgreSQL is not left to the slow tests: SQL is what the store is about."""
    with new_database(request.param, tmp_path) as url:
        yield url
