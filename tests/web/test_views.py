"""Every view of the live page over a store that a real crawl has filled."""

from __future__ import annotations

import json
import pkgutil
import re
from dataclasses import is_dataclass
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from neardup.cli.main import main
from neardup.collection import rethreshold
from neardup.collection.lookup import Checked, Resemblance
from neardup.collection.mirrors import Mirror
from neardup.store import (
    canonical_tags,
    deciding,
    endless_spaces,
    explore,
    figures,
    reports,
    summary,
    url_shares,
)
from neardup.store.cluster_table import ClusterTable
from neardup.store.explore import Order
from neardup.store.schema import crawls, page_ranks, simhash_values
from neardup.store.statements import count_change
from neardup.web import checking
from neardup.web.app import _LOOKING
from tests.support.databases import BACKENDS, MYSQL_SLOWLY
from tests.support.places import ROOT
from tests.support.ready_databases import ready_database
from tests.support.stores import copy_store
from tests.support.web import HOSTILE, Elements, browsing, keys, served

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.web.site import Site as Served
    from tests.support.web import Browser


def test_overview_comes_when_it_is_counted(browser: Browser, page_site: Served) -> None:
    first = browser.get("/")
    page_site.figures.wait()
    counted = browser.get("/")
    data = browser.json("/")

    assert first.status_code == counted.status_code == 200
    assert "Refresh" not in counted.headers
    share = data["summary"]["overview"]["share"]
    assert share["pages"] == 29
    assert f"{share['duplicates']} of 29 pages" in counted.text
    assert data["counting"] is None


def test_the_newest_crawl_is_told_before_anything_is_counted(browser: Browser) -> None:
    told = browser.json("/")  # which waits for nothing

    assert (told["newest"]["pages"], told["newest"]["crawl_id"]) == (29, 1)
    assert told["running"] == []


@pytest.mark.slow
def test_clusters_with_each_filter(browser: Browser, page_site: Served) -> None:
    browser.get("/clusters", kind="new")
    page_site.figures.wait()
    every = browser.json("/clusters")["clusters"]["rows"]
    host = every[0]["host"]

    def found(**query: Any) -> list[str]:
        assert browser.get("/clusters", **query).status_code == 200
        return [row["key"] for row in browser.json("/clusters", **query)["clusters"]["rows"]]

    sizes = [row["duplicates"] for row in every]
    assert sizes == sorted(sizes, reverse=True)
    assert found(host=host, kind="new", crawl=1, least=1, most=100) == [row["key"] for row in every]
    assert found(host="other.example") == found(kind="changed") == found(crawl=2) == found(least=1000) == []
    assert found(order="newest") == found(order="oldest")[::-1]
    for order in Order:  # the table of all clusters and the database agree
        if order is not Order.PAGERANK:
            assert found(order=order.value, kind="new", most=1) == found(order=order.value, most=1)
    assert found(kind="new", host="other.example") == found(kind="new", crawl=2) == []
    assert found(kind="new", least=2, crawl=1, host=host) == found(least=2)
    assert set(found(most=1)) == {row["key"] for row in every if row["duplicates"] == 1}


@pytest.mark.slow
def test_clusters_of_a_large_store_are_counted_in_the_background(
    own_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries: tuple[dict[str, str], ...] = (
        {},
        {"host": "127.0.0.1"},
        {"crawl": "1"},
        {"most": "1"},
        {"order": "newest"},
    )
    with served(own_url) as site, browsing(site) as browser:
        by_database = [browser.json("/clusters", **query) for query in queries]
        monkeypatch.setattr(explore, "_GROUPED", 1)
        browser.get("/clusters")
        site.figures.wait()
        by_table = [browser.json("/clusters", **query) for query in queries]
        with site.store.begin_write() as connection:
            count_change(connection)
        stale = browser.json("/clusters")
        shown = browser.get("/clusters").text
        current = browser.json("/clusters", order="newest")

    assert by_table == by_database
    assert by_table[0]["clusters"]["rows"]
    assert stale["as_of"] is not None
    assert stale["clusters"] == by_table[0]["clusters"]
    assert "Crawls have written since" in shown
    assert current["as_of"] is None  # an index has the newest


def test_of_crawls_without_an_end_some_pages_are_counted(
    own_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(own_url) as site, browsing(site) as browser:
        with site.store.begin_write() as connection:
            connection.execute(sa.update(crawls).values(finished_at=None))
        all_counted = browser.json("/crawls")["crawls"]["rows"][0]
        monkeypatch.setattr(explore, "_COUNTED", 20)
        some_counted = browser.json("/crawls")["crawls"]["rows"][0]
        shown = browser.get("/crawls").text
        running = browser.get("/").text

    assert (all_counted["pages"], all_counted["counted_all"]) == (29, True)
    assert (some_counted["pages"], some_counted["counted_all"]) == (20, False)
    assert "at least 20" in shown
    assert "at least 20 pages" in running


@pytest.mark.parametrize("query", [{"kind": "odd"}, {"order": "odd"}, {"crawl": "-1"}, {"least": "9" * 30}])
def test_filters_that_make_no_sense(browser: Browser, query: dict[str, Any]) -> None:
    refused = browser.get("/clusters", **query)

    assert refused.status_code == 400
    assert "must be" in refused.text


def test_cluster_says_why_each_belongs_to_it(browser: Browser) -> None:
    duplicate, canonical = keys(browser, "clang-14")
    of_canonical = browser.json(f"/cluster/{canonical}")

    assert of_canonical["page"]["key"] == canonical
    assert browser.json(f"/cluster/{duplicate}") == of_canonical
    members = {row["key"]: row for row in of_canonical["members"]["rows"]}
    assert of_canonical["duplicates"] == len(members)
    assert members[duplicate]["evidence"] in {"headline", "whole", "rare", "text"}
    text = browser.get(f"/cluster/{canonical}").text
    assert f"/pair/{duplicate}/{canonical}" in text


def test_page_with_its_history(browser: Browser) -> None:
    duplicate, canonical = keys(browser, "clang-14")
    data = browser.json(f"/page/{duplicate}")["page"]

    assert data["canonical"]["key"] == canonical
    assert [version["kind"] for version in data["versions"]["rows"]] == ["duplicate"]
    assert data["page"]["fingerprint"] == data["versions"]["rows"][0]["fingerprint"]
    assert f"/pair/{duplicate}/{canonical}" in browser.get(f"/page/{duplicate}").text


def test_page_tells_what_it_calls_canonical(own_url: str) -> None:
    named = "http://a.example/named?a=1&b"
    with served(own_url) as site, browsing(site) as browser:
        key, _ = keys(browser, "FAQ")
        before = browser.get(f"/page/{key}").text
        with site.store.begin_write() as connection:
            its = simhash_values.c.url_key == bytes.fromhex(key)
            connection.execute(sa.update(simhash_values).where(its).values(declared_url=named))
        after = browser.get(f"/page/{key}").text
        told = browser.json(f"/page/{key}")["page"]["page"]["declared_url"]

    assert "rel=canonical" not in before
    assert "http://a.example/named?a=1&amp;b</bdi>" in after
    assert told == named


def test_pair_shows_the_bits_that_differ(browser: Browser) -> None:
    duplicate, canonical = keys(browser, "clang-14/Tooling")
    pair = browser.json(f"/pair/{duplicate}/{canonical}")["pair"]
    differing = [bit["number"] for bit in pair["bits"] if bit["values"][0] != bit["values"][1]]
    values = [int(pair[side]["fingerprint"], 16) for side in "ab"]

    assert len(differing) == pair["distance"] == (values[0] ^ values[1]).bit_count()
    assert all((values[0] ^ values[1]) >> 63 - number & 1 for number in differing)
    assert 24 <= sum(bit["weights"][0] is not None for bit in pair["bits"]) < 64
    assert pair["resemblance"] == pytest.approx(pair["relation"]["resemblance"])
    assert "Fetch and compare" in browser.get(f"/pair/{duplicate}/{canonical}").text


def test_pair_fetches_todays_texts_when_told(browser: Browser) -> None:
    duplicate, canonical = keys(browser, "clang-14/Tooling")
    shown = browser.post(f"/pair/{duplicate}/{canonical}", layout="inline")
    columns = browser.post(f"/pair/{duplicate}/{canonical}")
    as_json = browser.post(f"/pair/{duplicate}/{canonical}", headers={"Accept": "application/json"}).json()

    assert "Today's texts" in shown.text
    assert "<del>14</del>" in shown.text
    assert "<ins>13</ins>" in columns.text
    assert as_json["texts"]["differences"]["changed_a"] > 0
    assert as_json["texts"]["kept"] is False


def test_texts_of_other_scripts(browser: Browser) -> None:
    arabic = browser.post("/pair/{}/{}".format(*keys(browser, "/ar/"))).text
    chinese = browser.post("/pair/{}/{}".format(*keys(browser, "/zh/"))).text

    assert "<del>أكثر</del>" in arabic
    assert 'dir="auto"' in arabic
    assert "<del>更多</del>" in chinese


def test_page_that_is_not_there_any_more(browser: Browser, page_site: Served) -> None:
    duplicate, canonical = keys(browser, "clang-14/FAQ")
    with page_site.store.begin_write() as connection:
        gone = sa.update(simhash_values).where(simhash_values.c.url_key == bytes.fromhex(duplicate))
        url = browser.json(f"/page/{duplicate}")["page"]["page"]["url"]
        connection.execute(gone.values(actual_url=f"{url}.gone"))
    shown = browser.post(f"/pair/{duplicate}/{canonical}")
    with page_site.store.begin_write() as connection:
        connection.execute(gone.values(actual_url=url))

    assert shown.status_code == 200
    assert "HTTP status 404" in shown.text


def test_host_crawls_and_search(browser: Browser, page_site: Served) -> None:
    browser.get("/host", name="127.0.0.1")
    page_site.figures.wait()
    host = browser.json("/host", name="127.0.0.1")
    ended = browser.json("/crawls")["crawls"]["rows"]

    assert host["figures"]["pages"]["pages"] == 29
    folders = host["figures"]["folders"]["rows"]
    assert {folder["name"].rsplit("/", 2)[1] for folder in folders} >= {"clang-13", "ar"}
    assert [(row["crawl_id"], row["pages"], row["finish_reason"]) for row in ended] == [(1, 29, "finished")]
    assert browser.get("/host", name="127.0.0.1").status_code == browser.get("/crawls").status_code == 200
    assert browser.get("/search", q="127.0.0.1").headers["Location"] == "/host?name=127.0.0.1"
    assert browser.get("/search", q=" ").headers["Location"] == "/"
    assert len(browser.json("/search", q="CLANG-13/")["found"]["pages"]["rows"]) == 11
    assert browser.json("/search", q="100%_")["found"]["pages"]["rows"] == []
    assert [row["kind"] for row in browser.json("/search", q="ar/صفحة")["found"]["pages"]["rows"]] == [
        "duplicate"
    ]
    assert "/ar/صفحة.html" in browser.get("/search", q="ar/").text
    url = browser.json("/search", q="clang-13/FAQ")["found"]["pages"]["rows"][0]["url"]
    assert browser.json("/search", q=url)["found"]["pages"]["rows"][0]["url"] == url


@pytest.mark.slow
def test_mirrors_of_a_host_and_in_each_report(
    browser: Browser, page_site: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    browser.get("/")
    page_site.figures.wait()
    (mirror,) = browser.json("/host", name="127.0.0.1")["mirrors"]
    everywhere = browser.json("/")["mirrors"]
    url = f"sqlite:///{page_site.store.location}"
    assert main(["report", "--database", url, "--html", str(tmp_path / "r.html")]) == 0
    capsys.readouterr()
    told = {}
    for more in ("", "--host=127.0.0.1", "--since=2020-01-01"):
        assert main(["report", "--database", url, "--format=json", *filter(None, [more])]) == 0
        told[more] = json.loads(capsys.readouterr().out).get("mirrors")

    sides = [mirror["first"].partition("/")[2], mirror["second"].partition("/")[2]]
    assert sides == ["clang-13/", "clang-14/"]
    assert (everywhere["rows"], everywhere["total"]) == ([mirror], 1)
    assert mirror["first"] in browser.get("/host", name="127.0.0.1").text
    assert mirror["second"] in (tmp_path / "r.html").read_text("utf-8")
    (row,) = told[""]
    assert told["--host=127.0.0.1"] == [row]
    assert (row["first"], row["class"]) == (mirror["first"], mirror["kind"])
    assert told["--since=2020-01-01"] is None  # mirrors are told by all pages


@pytest.mark.parametrize(
    "path",
    [
        "/page/xyz",
        f"/page/{'0' * 32}",
        f"/cluster/{'0' * 32}",
        f"/pair/{'0' * 32}/{'1' * 32}",
        "/host",
        "/host?name=%00",
        "/no",
    ],
)
def test_what_is_not_stored(browser: Browser, path: str) -> None:
    missing = browser.get(path)

    assert missing.status_code == 404
    assert "<h1>" in missing.text
    assert browser.get(path, headers={"Accept": "application/json"}).json()["error"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_nul_is_no_text_of_a_database(backend: str, tmp_path: Path) -> None:
    with (
        ready_database(backend, tmp_path) as url,
        served(url) as page_site,
        browsing(page_site) as browser,
    ):
        assert browser.get("/search?q=%00").status_code == 200
        assert browser.get("/clusters?host=%00").status_code == 200
        assert browser.get("/host?name=%00").status_code == 404


def test_numbers_beyond_all_databases(browser: Browser) -> None:
    refused = browser.get("/clusters", least="9" * 20)

    assert refused.status_code == 400
    assert "least must be a whole number of at most 18 digits" in refused.text


def test_lists_go_on_by_key(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [row["key"] for row in browser.json("/clusters")["clusters"]["rows"]]
    monkeypatch.setattr("neardup.store.explore.ROWS", 3)
    for order in ("largest", "newest", "oldest"):
        met: list[str] = []
        after: str | None = None
        while True:
            part = browser.json("/clusters", order=order, **({"after": after} if after else {}))["clusters"]
            met += [row["key"] for row in part["rows"]]
            after = part["after"]
            if after is None:
                break
            assert len(part["rows"]) == 3
        assert sorted(met) == sorted(every)
    assert "Go on" in browser.get("/clusters").text


@pytest.mark.slow
@pytest.mark.parametrize("backend", MYSQL_SLOWLY)
def test_clusters_by_pagerank(
    backend: str, filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.store.explore.ROWS", 3)
    with ready_database(backend, tmp_path) as url:
        copy_store(filled, url, tmp_path)
        with served(url) as page_site, browsing(page_site) as browser:
            assert "PageRank" not in browser.get("/clusters").text
            sizes = {row["key"]: row["duplicates"] for row in _every(browser, "largest")}
            ids = [row["key"] for row in _every(browser, "oldest")]
            # Two have the same, one has none, and none is a short number.
            ranks = [1 / 3 + 0.1 * (number % 2) for number in range(len(ids) - 1)]
            with page_site.store.begin_write() as connection:
                for key, rank in zip(ids, ranks, strict=False):
                    page = sa.select(simhash_values.c.id)
                    its = simhash_values.c.url_key == bytes.fromhex(key)
                    page_id = connection.execute(page.where(its)).scalar_one()
                    connection.execute(sa.insert(page_ranks).values(page_id=page_id, pagerank=rank))
            while (read := page_site.figures.clusters(1.0)) is None or not read.is_current:
                sleep(0.02)  # counting takes a tenth of the time at most
            rows = _every(browser, "pagerank")
            assert "highest PageRank first" in browser.get("/clusters").text

    assert [row["key"] for row in rows] == [*ids[1:-1:2], *ids[0:-1:2], ids[-1]]
    assert rows[-1]["pagerank"] is None
    assert {row["key"]: row["duplicates"] for row in rows} == sizes


def _every(browser: Browser, order: str) -> list[dict[str, Any]]:
    """All clusters, part by part."""
    part = browser.json("/clusters", order=order)["clusters"]
    rows = list(part["rows"])
    while part["after"] is not None:
        part = browser.json("/clusters", order=order, after=part["after"])["clusters"]
        rows += part["rows"]
    return rows


def test_a_list_goes_on_by_the_table_where_the_database_began(
    page_site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.store.explore.ROWS", 3)
    with page_site.store.reading() as connection:
        table = ClusterTable.load(connection)
        for order in (Order.LARGEST, Order.OLDEST, Order.NEWEST):
            filters = explore.ClusterFilters(order=order)
            began = explore.clusters(connection, filters)
            same = explore.clusters_of(connection, table, filters)
            assert (began.rows, began.after) == (same.rows, same.after)
            then = explore.clusters(connection, filters, began.after)
            assert then.rows == explore.clusters_of(connection, table, filters, began.after).rows
            assert len(then.rows) == 3


def test_what_strangers_wrote_is_text(browser: Browser, page_site: Served) -> None:
    duplicate, canonical = keys(browser, "/evil/")
    page_site.figures.current()
    page_site.figures.wait()
    shown = [
        browser.get("/"),
        browser.get(f"/page/{canonical}"),
        browser.get(f"/cluster/{canonical}"),
        browser.post(f"/pair/{duplicate}/{canonical}", layout="inline"),
        browser.get("/search", q=HOSTILE),
        browser.get("/clusters", host=HOSTILE),
        browser.get(f"/{HOSTILE}"),
    ]
    for response in shown:
        met = Elements(response.text).met
        assert not any(tag in {"script", "img", "iframe"} for tag, _ in met)
        assert not any(name.startswith("on") or name == "style" for _, given in met for name in given)
        assert not any((given.get("href") or "").startswith("javascript:") for _, given in met)
    assert "&lt;script&gt;document.title" in shown[3].text


def test_manual_describes_the_json_of_every_view() -> None:
    page = (ROOT / "docs" / "reference" / "web.md").read_text()
    rows = re.findall(r"^\| `(/\S*)` \|", page, re.MULTILINE)
    shown = {pkgutil.resolve_name(name) for name in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}

    assert rows == list(_LOOKING)
    of_the_store = (
        explore,
        summary,
        reports,
        url_shares,
        canonical_tags,
        endless_spaces,
        figures,
        deciding,
    )
    every = {
        one
        for module in (*of_the_store, checking, rethreshold)
        for one in vars(module).values()
        if is_dataclass(one) and getattr(one, "__module__", "") == module.__name__
    }
    others = {Checked, Resemblance, Mirror}
    assert shown == every - {explore.Listed, summary.Part, reports.Filters} | others


def test_store_cannot_be_written_to_by_looking(page_site: Served) -> None:
    with page_site.store.looking() as connection, pytest.raises(sa.exc.OperationalError, match="readonly"):
        connection.execute(sa.delete(simhash_values))
    with page_site.store.begin_write() as connection:
        connection.execute(sa.delete(simhash_values).where(simhash_values.c.id == 0))
