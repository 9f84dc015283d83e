"""Soft 404s: pages that a site serves in place of pages that it does not have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from neardup.cli.main import main
from neardup.store.schema import simhash_values
from neardup.store.store import Store
from neardup.urls.rules import Slot
from tests.support.crawling import crawl
from tests.support.sites import spiders
from tests.support.sites.dead_links import DeadLinks
from tests.support.sites.in_process import crawl_site
from tests.support.sites.served import serve_site
from tests.support.stores import rules_of

if TYPE_CHECKING:
    from tests.support.sites.processes import Outcome


def marked(settings: dict[str, Any]) -> set[str]:
    """The paths of the pages that are stored as soft 404s."""
    page = simhash_values.c
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=None) as store, store.reading() as connection:
        found = connection.execute(sa.select(page.actual_url).where(page.soft_404 == 1)).scalars()
        return {f"/{url.split('/', 3)[3]}" for url in found}


def site_url(settings: dict[str, Any]) -> str:
    """Scheme, host and port of the site that was crawled."""
    page = simhash_values.c
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=None) as store, store.reading() as connection:
        url: str = connection.execute(sa.select(page.actual_url).limit(1)).scalar_one()
    return "/".join(url.split("/")[:3])


def dead(done: Outcome) -> set[str]:
    """The paths of dead links that were followed."""
    return {request.target for request in done.requests if "/gone-" in request.target}


def probes(done: Outcome, site: DeadLinks) -> list[str]:
    """What was asked for that no page links to."""
    real = {site.path(place) for place in range(len(site.keys) - 1)}
    return [
        request.target
        for request in done.requests
        if request.target not in {"/", "/robots.txt"} and request.target not in real | dead(done)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["notice", "home", "echo"])
def test_all_are_marked_and_nothing_else(
    missing: Any,
    addon: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = DeadLinks(missing=missing)
    with caplog.at_level("INFO"):
        done = crawl_site(site, addon)

    assert done.found == site.keys
    assert len(dead(done)) == 120
    assert marked(addon) == dead(done)
    assert len(probes(done, site)) == done.stats["neardup/soft_404/probes"] == 1
    assert done.stats["neardup/soft_404"] == 120
    assert "soft 404    120 pages, told by 1 probes" in caplog.text
    shown = sorted(dead(done))[7]
    assert main(["show", f"{site_url(addon)}{shown}", "--database", addon["NEARDUP_DATABASE_URL"]]) == 0
    assert "stands for a page that is not there" in capsys.readouterr().out
    assert main(["report", "--database", addon["NEARDUP_DATABASE_URL"], "--format", "json"]) == 0
    (of_host,) = json.loads(capsys.readouterr().out)["soft_404"]
    assert (of_host["host"], of_host["pages"]) == ("127.0.0.1", 120)
    with Store.open(addon["NEARDUP_DATABASE_URL"], scheme=None) as store:
        taught = {rule.slot for rule, stored in rules_of(store).items() if stored.effect.deferred}
    assert taught == {Slot.TRAP}


@pytest.mark.slow
def test_a_site_that_says_404_is_asked_for_nothing(addon: dict[str, Any]) -> None:
    site = DeadLinks(missing="404")
    done = crawl_site(site, addon)

    assert done.found == site.keys
    assert probes(done, site) == []
    assert marked(addon) == set()


@pytest.mark.slow
@pytest.mark.parametrize("predict", ["off", "record"])
def test_no_probe_is_made_where_nothing_is_deferred(predict: str, addon: dict[str, Any]) -> None:
    site = DeadLinks()
    done = crawl_site(site, addon | {"NEARDUP_PREDICT": predict})

    assert done.found == site.keys
    assert probes(done, site) == []


@pytest.mark.slow
@pytest.mark.parametrize("forbids", [True, False])
def test_robots_txt_may_forbid_probes(forbids: bool, addon: dict[str, Any]) -> None:
    allowed = "Allow: /*/gone-\nAllow: /*/*-*-*.html$\n"
    folders = "".join(f"Disallow: /{folder}/\n" for folder in ("news", "stories", "archive"))
    site = DeadLinks(robots=f"User-agent: *\n{allowed}{folders}")
    if not forbids:
        site = DeadLinks(robots="User-agent: *\nDisallow: /private/\n")
    done = crawl_site(site, addon | {"ROBOTSTXT_OBEY": True})

    assert done.found == site.keys
    assert len(dead(done)) == 120
    assert len(probes(done, site)) == done.stats.get("neardup/soft_404/probes", 0) == (not forbids)


@pytest.mark.slow
def test_a_page_that_is_there_and_is_headed_by_its_address_is_not_marked(addon: dict[str, Any]) -> None:
    site = DeadLinks(missing="echo")
    site.made_up_for = {f"/stories/gone-{place}-0.html" for place in range(20, 40)}
    done = crawl_site(site, addon)

    assert done.found == site.keys
    assert site.made_up_for < dead(done)
    assert marked(addon) == dead(done) - site.made_up_for


@pytest.mark.slow
def test_one_that_is_there_later_is_marked_no_longer(addon: dict[str, Any]) -> None:
    """By the second crawl, the site has one of the pages."""
    site = DeadLinks()
    with serve_site(site) as served:
        crawl(spiders.FollowSpider, addon, start=served.start)
        assert len(marked(addon)) == 120
        site.made_up_for = {"/stories/gone-25-0.html"}
        crawl(spiders.FollowSpider, addon, start=served.start)

    assert len(marked(addon)) == 119
    assert "/stories/gone-25-0.html" not in marked(addon)
