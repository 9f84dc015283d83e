"""A store that a crawl has filled, once for all tests that only look."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from neardup.web import background
from tests.support.crawling import serve
from tests.support.web import browsing, fill, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from neardup.web.site import Site as Served
    from tests.support.web import Browser


@pytest.fixture(scope="session", autouse=True)
def _processes_start_quickly() -> None:
    background.prepare()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a database; the crawled site is still served."""
    url = f"sqlite:///{tmp_path_factory.mktemp('web')}/n.db"
    with serve() as site:
        fill(site, url)
        yield url


@pytest.fixture
def own_url(filled: str, tmp_path: Path) -> str:
    """A copy of this database, for a test that changes it."""
    source = sqlite3.connect(filled.removeprefix("sqlite:///"))
    target = sqlite3.connect(tmp_path / "own.db")
    source.backup(target)
    for connection in (source, target):
        connection.close()
    return f"sqlite:///{tmp_path}/own.db"


@pytest.fixture
def page_site(filled: str) -> Iterator[Served]:
    with served(filled) as site:
        yield site


@pytest.fixture
def browser(page_site: Served) -> Iterator[Browser]:
    with browsing(page_site) as opened:
        yield opened
