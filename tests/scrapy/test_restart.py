"""What a crawl starts with: snapshots that are used, out of date, damaged, or of something else."""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.fingerprint.scheme import Scheme
from neardup.store.schema import document_frequencies
from neardup.store.store import Store
from neardup.store.writer import Writer
from tests.support.crawling import Site, crawl, serve
from tests.support.killing import check_tables
from tests.support.spiders import OTHER, THIRD, WORDS, LinkSpider
from tests.support.stores import frequencies_of
from tests.support.verdicts import page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.crawling import Crawl

pytestmark = pytest.mark.slow


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as served:
        served.add("/", OTHER, "/a", "/b")
        served.add("/a", WORDS)
        served.add("/b", WORDS + 3 * " printed")
        yield served


@pytest.fixture
def settings(database_url: str) -> dict[str, Any]:
    return {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": database_url}


@pytest.fixture
def snapshot(settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the crawls of a test keep their snapshot."""
    monkeypatch.chdir(tmp_path)
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=str(Scheme())) as store:
        return store.snapshot_path(tmp_path / ".scrapy" / "neardup")


def run(site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture) -> tuple[Crawl, str]:
    caplog.clear()
    caplog.set_level(logging.INFO)
    done = crawl(LinkSpider, settings, start=site.url)
    check_tables(settings["NEARDUP_DATABASE_URL"])
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("neardup")]
    return done, "\n".join(lines)


def test_second_crawl_starts_from_the_snapshot(
    site: Site, settings: dict[str, Any], snapshot: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, log = run(site, settings, caplog)
    assert "loaded from the tables" in log
    assert (first.neardup("new"), first.neardup("duplicates")) == (2, 1)
    assert snapshot.exists()

    for _ in range(2):
        again, log = run(site, settings, caplog)
        assert "3 known pages, 2 of them canonical, loaded from the snapshot" in log
        assert (again.neardup("unchanged"), again.neardup("duplicates"), again.neardup("new")) == (2, 1, 0)


@pytest.mark.parametrize("from_snapshot", [True, False])
def test_what_was_learned_of_a_host_is_known_to_the_next_crawl(
    site: Site,
    settings: dict[str, Any],
    snapshot: Path,
    caplog: pytest.LogCaptureFixture,
    from_snapshot: bool,
) -> None:
    run(site, settings, caplog)
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=str(Scheme())) as store:
        (before,) = frequencies_of(store).values()
    assert before["pages"] == 3
    site.add("/", OTHER, "/a", "/b", "/c")
    site.add("/c", THIRD)
    if not from_snapshot:
        snapshot.unlink()

    _, log = run(site, settings, caplog)

    assert f"loaded from the {'snapshot' if from_snapshot else 'tables'}" in log
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=str(Scheme())) as store:
        (after,) = frequencies_of(store).values()
    assert after["pages"] == 4


def test_a_host_whose_row_is_damaged_is_learned_anew(
    site: Site, settings: dict[str, Any], snapshot: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(site, settings, caplog)
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=str(Scheme())) as store:
        with store.begin_write() as connection:
            connection.execute(sa.update(document_frequencies).values(counts=b"no counts", pages=1000))
        host = next(iter(frequencies_of(store)))
    site.add("/", OTHER, "/a", "/b", "/c")
    site.add("/c", THIRD)

    done, log = run(site, settings, caplog)

    assert log.count("cannot be read, and is learned anew") == 1
    assert repr(host) in log
    assert done.neardup("new") == 1
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=str(Scheme())) as store:
        assert frequencies_of(store)[host]["pages"] == 1


def test_another_crawl_has_written_since(
    site: Site, settings: dict[str, Any], snapshot: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(site, settings, caplog)
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=str(Scheme())) as store:
        crawl_id = store.begin_crawl(spider="another", settings={})
        writer = Writer(store, crawl_id)
        writer.put(page(crawl_id * PAGES_PER_CRAWL + 1, "http://a.example/elsewhere"))
        writer.close()

    _, log = run(site, settings, caplog)

    assert "is out of date" in log
    assert "4 known pages, 3 of them canonical, loaded from the tables" in log


def test_a_crawl_that_wrote_nothing_changes_nothing(
    site: Site, settings: dict[str, Any], snapshot: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(site, settings, caplog)
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=str(Scheme())) as store:
        store.begin_crawl(spider="killed before its first batch", settings={})

    _, log = run(site, settings, caplog)

    assert "loaded from the snapshot" in log


@pytest.fixture
def file_settings(tmp_path: Path) -> dict[str, Any]:
    return {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/one.db"}


@pytest.mark.parametrize("damage", ["torn", "flipped", "foreign", "empty"])
def test_a_damaged_snapshot_is_reported_and_made_anew(
    site: Site,
    file_settings: dict[str, Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    damage: str,
) -> None:
    snapshot = tmp_path / "one.db.snapshot"
    run(site, file_settings, caplog)
    whole = snapshot.read_bytes()
    middle = len(whole) // 2
    snapshot.write_bytes(
        {
            "torn": whole[:middle],
            "flipped": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "foreign": b"some other file",
            "empty": b"",
        }[damage]
    )

    again, log = run(site, file_settings, caplog)
    assert str(snapshot) in log
    assert "the tables are read instead" in log
    assert "3 known pages, 2 of them canonical, loaded from the tables" in log
    assert again.neardup("unchanged") == 2

    assert "loaded from the snapshot" in run(site, file_settings, caplog)[1]


def test_a_snapshot_of_another_minimum_is_not_used(
    site: Site, file_settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    run(site, file_settings, caplog)

    _, log = run(site, file_settings | {"NEARDUP_MIN_FEATURES": 81}, caplog)

    assert "3 known pages, 0 of them canonical, loaded from the tables" in log


def test_a_snapshot_of_another_scope_is_not_used(
    site: Site, file_settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    run(site, file_settings, caplog)

    again, log = run(site, file_settings | {"NEARDUP_SCOPE": "host"}, caplog)

    assert "is out of date" in log
    assert again.neardup("unchanged") == 2
    assert "loaded from the snapshot" in run(site, file_settings | {"NEARDUP_SCOPE": "host"}, caplog)[1]


def test_the_snapshot_of_a_deleted_database_is_not_used(
    site: Site, file_settings: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(site, file_settings, caplog)
    for name in ("one.db", "one.db-wal", "one.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)

    done, log = run(site, file_settings, caplog)

    assert "0 known pages" in log
    assert done.neardup("new") == 2


def test_a_snapshot_that_cannot_be_written_is_a_warning(
    site: Site, file_settings: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "one.db.snapshot").mkdir()

    done, log = run(site, file_settings, caplog)

    assert "the next crawl will read the tables" in log
    assert done.neardup("new") == 2
    shutil.rmtree(tmp_path / "one.db.snapshot")


def relations(settings: dict[str, Any]) -> dict[str, str]:
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=None) as store, store.reading() as connection:
        rows = connection.exec_driver_sql(
            "SELECT d.actual_url, c.actual_url FROM duplicate_values"
            " JOIN simhash_values d ON d.id = duplicate_hash_id"
            " JOIN simhash_values c ON c.id = actual_hash_id"
        )
        return {urlsplit(page).path: urlsplit(canonical).path for page, canonical in rows}


def test_duplicates_of_a_canonical_page_that_changes_get_another(settings: dict[str, Any]) -> None:
    with serve() as site:
        for path in ("/a", "/b", "/c"):
            site.add(path, WORDS)
        site.add("/", OTHER, "/a", "/b", "/c")
        crawl(LinkSpider, settings, start=f"{site.url}/")
        assert relations(settings) == {"/b": "/a", "/c": "/a"}

        site.add("/", OTHER, "/a")
        site.add("/a", WORDS + " edited")
        crawl(LinkSpider, settings, start=f"{site.url}/")
        assert relations(settings) == {"/b": "/a", "/c": "/a"}

        site.add("/a", THIRD)
        crawl(LinkSpider, settings, start=f"{site.url}/")
        assert relations(settings) == {"/c": "/b"}

        site.add("/", OTHER, "/a", "/b", "/c")
        last = crawl(LinkSpider, settings, start=f"{site.url}/")
        assert relations(settings) == {"/c": "/b"}
        assert (last.neardup("unchanged"), last.neardup("duplicates")) == (3, 1)
