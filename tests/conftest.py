"""Fixtures that more than one room uses."""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from neardup.fingerprint.scheme import Scheme
from neardup.store.store import Store
from tests.support.crawl_parts import stop_all
from tests.support.crawling import Site, serve
from tests.support.databases import SERVERS_SLOWLY
from tests.support.places import ROOT
from tests.support.ready_databases import database_url, ready_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["database_url"]

# A machine may be busy: no example has a time limit. The same commit gets the same examples, so that who
# changes something is not told of a fault that was there before. `explore` looks for such faults.
settings.register_profile("neardup", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1_000)
settings.load_profile("neardup")


def pytest_configure() -> None:
    """Refuse a native core that is older than its sources."""
    for source in (ROOT / "neardup").rglob("*.pyx"):
        built = source.with_suffix(EXTENSION_SUFFIXES[0])
        if built.exists() and built.stat().st_mtime < source.stat().st_mtime:
            raise pytest.UsageError(f"{built.name} is older than {source.name}; run: python hatch_build.py")


@pytest.fixture(autouse=True)
def _no_project() -> None:
    """A test that runs a command in a project leaves Scrapy's variable, which processes of others heed."""
    os.environ.pop("SCRAPY_SETTINGS_MODULE", None)


collect_ignore = ["support"]
"""No tests are in it, and spiders that need packages which are not always there."""


@pytest.fixture
def addon(tmp_path: Path) -> dict[str, Any]:
    """The settings of a crawl that has neardup switched on, and nothing else of it set but the database."""
    return {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/neardup.db"}


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """An empty store, on each kind of server in turn."""
    with Store.open(database_url, scheme=str(Scheme())) as opened:
        yield opened
        stop_all()


@pytest.fixture(params=SERVERS_SLOWLY[1:])
def server_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a database with its tables made, on each kind of server but SQLite in turn."""
    with ready_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def site() -> Iterator[Site]:
    """A site with no page yet."""
    with serve() as served:
        yield served
