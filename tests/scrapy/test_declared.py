"""What sites say of the addresses of their pages: a column and counts, and never a truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from neardup.cli.main import main
from neardup.store.schema import simhash_values
from neardup.store.store import Store
from neardup.urls.rules import Slot, State
from tests.support.sites.cms import Forum
from tests.support.sites.declaring import Declaring, Regions
from tests.support.sites.in_process import crawl_site
from tests.support.sites.sessions import SessionIds
from tests.support.stores import rules_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.sites.served import Ask


def thread(ask: Ask) -> str:
    """The address that forums prefer."""
    query = "&amp;".join(f"{name}={ask.query[name]}" for name in ("f", "t") if name in ask.query)
    return f"{ask.path}?{query}" if query else ask.path


WRONG: dict[str, Callable[[Ask], str]] = {
    "the first page": lambda _: "/",
    "no parameter": lambda ask: ask.path,
    "another site": lambda ask: f"http://elsewhere.example{ask.path}",
    "no address": lambda _: "http://[::1/",
}


def declared(settings: dict[str, Any]) -> dict[str, str | None]:
    """By the path of each page: the path of the page that it calls its canonical one."""
    page = simhash_values.c
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=None) as store, store.reading() as connection:
        found = connection.execute(sa.select(page.actual_url, page.declared_url)).all()
    return {url.split("/", 3)[3]: said and said.split("/", 3)[3] for url, said in found}


@pytest.mark.parametrize(
    ("wrong", "predict"),
    # What is not believed teaches nothing by which anything could be dropped.
    [*((wrong, "defer") for wrong in WRONG), ("the first page", "drop"), ("no parameter", "drop")],
)
@pytest.mark.slow
def test_what_is_wrong_loses_nothing(wrong: str, predict: str, addon: dict[str, Any]) -> None:
    for number, site in enumerate((Forum(40), SessionIds(20))):
        url = addon["NEARDUP_DATABASE_URL"].replace("neardup.db", f"{number}.db")
        done = crawl_site(
            Declaring(site, WRONG[wrong]),
            addon | {"NEARDUP_PREDICT": predict, "NEARDUP_DATABASE_URL": url},
        )

        assert done.found == site.keys
        if wrong in {"another site", "no address"}:
            assert "neardup/declared" not in done.stats


@pytest.mark.slow
def test_a_wrong_one_for_all_pages_loses_nothing(addon: dict[str, Any]) -> None:
    site = Forum(20)

    assert crawl_site(Declaring(site, WRONG["the first page"]), addon).found == site.keys


@pytest.mark.slow
def test_is_stored_counted_and_shown(addon: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    done = crawl_site(Declaring(Forum(10), thread), addon)
    found = declared(addon)

    naming = {path: said for path, said in found.items() if said is not None}
    assert len(naming) == done.stats["neardup/declared"] == done.stats["neardup/declared/copies"] == 50
    assert naming["viewtopic.php?f=0&t=3&view=print"] == "viewtopic.php?f=0&t=3"
    assert found["viewtopic.php?f=0&t=3"] is None
    with Store.open(addon["NEARDUP_DATABASE_URL"], scheme=None) as store, store.reading() as connection:
        page = simhash_values.c
        url, said = connection.execute(
            sa.select(page.actual_url, page.declared_url).where(page.declared_url.is_not(None)).limit(1)
        ).one()
    assert main(["show", url, "--database", addon["NEARDUP_DATABASE_URL"]]) == 0
    assert f"calls canonical     {said}" in capsys.readouterr().out


@pytest.mark.slow
def test_versions_for_other_regions_are_no_copies(addon: dict[str, Any]) -> None:
    silent = crawl_site(Regions(tells=False), addon)
    other = addon | {"NEARDUP_DATABASE_URL": addon["NEARDUP_DATABASE_URL"].replace("neardup.db", "other.db")}
    telling = crawl_site(Regions(), other)

    def active(settings: dict[str, Any]) -> int:
        with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=None) as store:
            return sum(
                stored.learned.state is State.ACTIVE and rule.slot is Slot.SEGMENT
                for rule, stored in rules_of(store).items()
            )

    assert silent.stats["neardup/duplicates"] == telling.stats["neardup/duplicates"] == 40
    assert silent.stats["neardup/predicted"] > 0
    assert active(addon) > 0
    assert "neardup/predicted" not in telling.stats
    assert active(other) == 0
