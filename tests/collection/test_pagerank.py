"""PageRank: beside networkx, over collections and stores, of hubs, and where it cannot be computed."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from crawler.spiders.site import SiteSpider
from neardup.cli.main import main
from neardup.collection import link_graph, rank_work
from neardup.collection.link_graph import LinkGraph
from neardup.collection.link_graph import build as build_graph
from neardup.collection.pagerank import Ranks, pagerank
from neardup.detection.rule import Rule
from neardup.errors import ConfigurationError, NeardupError
from neardup.scrapy.options import data_folder
from neardup.store.page_links import NOFOLLOW, stored_edges
from neardup.store.ranks import Nodes, links_of_nodes, nodes_of_pages
from neardup.store.removal import remove_pages
from neardup.store.schema import page_ranks, simhash_values
from neardup.store.store import Store
from tests.support.archives import Exchange, warc
from tests.support.collections import build, exchanges, rows
from tests.support.crawling import crawl
from tests.support.faults import small_disk
from tests.support.places import PAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

EXACT = 1e-9


def expected(
    nodes: Iterable[Any], links: Iterable[tuple[Any, Any]], damping: float = 0.85
) -> dict[Any, float]:
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((source, target) for source, target in links if source != target)
    ranks: dict[Any, float] = nx.pagerank(graph, alpha=damping, tol=1e-15, max_iter=10_000)
    return ranks


def said(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert main(["collection", "pagerank", *map(str, arguments)]) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


class Killed(BaseException):
    pass


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs a command that ends after so many iterations."""

    def run(iterations: int, *arguments: object) -> None:
        keep = rank_work.RankWork.keep

        def killed(work: rank_work.RankWork, found: Ranks) -> None:
            keep(work, found)
            if found.iterations == iterations:
                raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(rank_work, "SECONDS", 0.0)
            patched.setattr(rank_work.RankWork, "keep", killed)
            with pytest.raises(Killed):
                main(["collection", "pagerank", *map(str, arguments)])

    return run


class TestGraph:
    @pytest.mark.parametrize(
        ("nodes", "links", "damping"), [(1, 3, 0.85), (40, 0, 0.85), (300, 900, 0.5), (2_000, 9_000, 0.99)]
    )
    def test_as_networkx(self, tmp_path: Path, nodes: int, links: int, damping: float) -> None:
        chance = np.random.default_rng(nodes)
        sources = chance.integers(0, nodes, links)
        targets = (nodes * chance.random(links) ** 3).astype(np.int64)
        batches = [
            (sources[start : start + 100], targets[start : start + 100]) for start in range(0, links, 100)
        ]

        graph = build_graph(batches, nodes, tmp_path)
        found = pagerank(graph, damping=damping)

        pairs = set(zip(sources.tolist(), targets.tolist(), strict=True))
        exact = expected(range(nodes), pairs, damping)
        assert graph.links == len([pair for pair in pairs if pair[0] != pair[1]])
        assert sum(abs(found.values[node] - exact[node]) for node in range(nodes)) < EXACT
        assert found.error < EXACT
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.slow
    def test_a_node_of_a_million_links(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(link_graph, "_LINKS_AT_ONCE", 1 << 16)
        nodes = 1_000_001
        others = np.arange(1, nodes)
        hub = np.zeros(nodes - 1, dtype=np.int64)

        graph = build_graph([(others, hub), (hub, others), (hub, others)], nodes, tmp_path)
        found = pagerank(graph)

        assert graph.links == 2_000_000
        assert graph.degrees[0] == 1_000_000
        # Half of each step's links lead to the hub: r = .15/n + .85 (1 - r).
        assert found.values[0] == pytest.approx((0.15 / nodes + 0.85) / 1.85, abs=EXACT)

    def test_progress_is_told(self, tmp_path: Path) -> None:
        told: list[float] = []
        graph = build_graph([(np.array([0, 1]), np.array([1, 2]))], 3, tmp_path)

        found = pagerank(graph, on_iteration=lambda ranks: told.append(ranks.error))

        assert len(told) == found.iterations
        assert told == sorted(told, reverse=True)

    def test_a_full_disk_is_named(self, tmp_path: Path) -> None:
        mounted = tmp_path / "mounted"
        mounted.mkdir()
        ends = np.arange(1 << 20)
        with small_disk(mounted, 4), pytest.raises(NeardupError, match=r"mounted: links .*No space left"):
            build_graph([(ends, ends[::-1].copy())], ends.size, mounted)

    def test_too_many_nodes(self, tmp_path: Path) -> None:
        with pytest.raises(NeardupError, match="2,147,483,648 nodes are too many"):
            build_graph([], 1 << 31, tmp_path)


class TestCollection:
    def test_by_page_and_by_host(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = tmp_path / "out"
        linked = Exchange(
            "http://other.example/",
            b"<p>one two three</p><a href='http://docs.example/clang-13/index.html#x'>1</a>"
            b"<a rel=nofollow href='http://docs.example/apache/de/new_features_2_0.html'>2</a>",
        )
        archive = tmp_path / "pages.warc.gz"
        archive.write_bytes(warc([*exchanges(60_000), linked, linked]).data)
        assert build(out, archive) == 0
        pages, links = rows(out), rows(out, "links")
        url_of, host_of = ({row["id"]: row[name] for row in pages} for name in ("url", "host"))
        host_of_url = {row["url"]: row["host"] for row in pages}
        pairs = {
            (url_of[link["page_id"]], link["url"])
            for link in links
            if link["url"] in host_of_url and not link["nofollow"]
        }
        capsys.readouterr()
        assert len(pairs) > 5

        for by, name_of, of in (("page", url_of, str), ("host", host_of, host_of_url.__getitem__)):
            exact = expected(set(name_of.values()), {(of(one), of(other)) for one, other in pairs})
            told = said(capsys, out, "--by", by, "--limit", 2)
            table = pq.read_table(out / "pagerank.parquet")
            found = {row["id"]: row["pagerank"] for row in table.to_pylist()}
            assert table["id"].to_pylist() == sorted(url_of)
            assert json.loads(table.schema.metadata[b"neardup"]) == {"by": by, "damping": 0.85}
            assert max(abs(rank - exact[name_of[page]]) for page, rank in found.items()) < EXACT
            assert told.splitlines()[-2].endswith(max(exact, key=lambda name: exact[name]))
        assert {path.name for path in out.iterdir()} == {
            "collection.json", "lock", "pages", "links", "records", "revisits", "rare", "frequencies.parquet",
            "pagerank.parquet",
        }  # fmt: skip

    def test_it_goes_on_where_it_was_killed(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        kill: Callable[..., None],
    ) -> None:
        out, ranks, work = tmp_path / "out", tmp_path / "out/pagerank.parquet", tmp_path / "out/pagerank"
        archive = tmp_path / "pages.warc.gz"
        archive.write_bytes(warc(exchanges(20_000)).data)
        assert build(out, archive) == 0
        capsys.readouterr()
        whole = said(capsys, out)
        written = ranks.read_bytes()
        ranks.unlink()

        kill(7, out)
        assert not ranks.exists()
        monkeypatch.setattr("neardup.collection.link_graph.build", None)  # the links are not sorted again

        assert main(["collection", "pagerank", str(out)]) == 0
        told = capsys.readouterr()

        assert "going on after 7 iterations" in told.err
        assert told.out == whole
        assert ranks.read_bytes() == written
        assert not work.exists()

    @pytest.mark.parametrize("damaged", ["graph.json", "sources.npy", "ranks.npz"])
    def test_damaged_work_is_done_again(self, tmp_path: Path, damaged: str) -> None:
        made = LinkGraph(np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32), np.array([1, 1]))
        work = rank_work.RankWork(tmp_path / "work", {"files": [["a", 1, 2]]})
        work.graph(lambda: made)
        work._kept = -rank_work.SECONDS
        work.keep(Ranks(np.array([0.4, 0.6]), 3, 0.1))
        (tmp_path / "work" / damaged).write_bytes(b"PK\x03\x04 damaged")

        again = rank_work.RankWork(tmp_path / "work", {"files": [["a", 1, 2]]})

        assert again.graph(lambda: made).sources.tolist() == [1, 0]
        assert again.ranks() is None
        other = rank_work.RankWork(tmp_path / "work", {"files": [["a", 1, 3]]})
        work.keep(Ranks(np.array([0.4, 0.6]), 3, 0.1))
        other.graph(lambda: made)
        assert other.ranks() is None

    def test_wrong_arguments(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for damping in ("0", "0.999999", "1", "nan", "-3"):
            assert "the damping is above 0 and at most 0.99" in said(
                capsys, tmp_path, f"--damping={damping}", code=1
            )
        assert "no collection" in said(capsys, tmp_path, code=1)
        assert "give one" in said(capsys, tmp_path, "--database", "sqlite://", code=1)

    @pytest.mark.parametrize(("module", "extra"), [("duckdb", "offline"), ("scipy.sparse", "graph")])
    def test_what_is_not_installed_is_named(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        module: str,
        extra: str,
    ) -> None:
        archive = tmp_path / "pages.warc.gz"
        archive.write_bytes(warc(exchanges()[:2]).data)
        assert build(tmp_path / "out", archive) == 0
        capsys.readouterr()
        monkeypatch.setitem(sys.modules, module, None)

        assert f"pip install 'neardup[{extra}]'" in said(capsys, tmp_path / "out", code=1)


class TestStore:
    @pytest.fixture
    def url(self, database_url: str) -> str:
        settings = {
            "ADDONS": {"neardup.Addon": 500},
            "NEARDUP_DATABASE_URL": database_url,
            "NEARDUP_LINKS": True,
        }
        crawl(SiteSpider, settings, url=str(PAGES / "clang-13"))
        return database_url

    def test_by_page_and_by_host(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        with Store.open(url, scheme=None) as store:
            with store.reading() as connection:
                ids = list(connection.execute(sa.select(simhash_values.c.id)).scalars())
                links = {
                    (source, target)
                    for edges in stored_edges(connection)
                    for source, target, mark in zip(*(column.tolist() for column in edges), strict=True)
                    if target and not mark & NOFOLLOW
                }
            assert len(links) > 5
            exact = expected(ids, links)

            said(capsys, "--database", url)

            with store.reading() as connection:
                found: dict[int, float] = {
                    row.page_id: row.pagerank for row in connection.execute(sa.select(page_ranks))
                }
            assert found.keys() == exact.keys()
            assert max(abs(found[page] - exact[page]) for page in ids) < EXACT

            told = json.loads(said(capsys, "--database", url, "--by", "host", "--format", "json"))
            with store.reading() as connection:
                assert set(connection.execute(sa.select(page_ranks.c.pagerank)).scalars()) == {1.0}
            assert told["highest"][0]["pagerank"] == 1.0

    def test_it_goes_on_where_it_was_killed_unless_a_crawl_has_written(
        self,
        url: str,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        kill: Callable[..., None],
    ) -> None:
        monkeypatch.chdir(tmp_path)  # where the work of a database server is kept
        arguments = ("--database", url)
        whole = said(capsys, *arguments)
        with Store.open(url, scheme=None) as store:
            work = store.beside(data_folder(), "pagerank")
            ranked = sa.select(page_ranks).order_by(page_ranks.c.page_id)
            with store.reading() as connection:
                stored = connection.execute(ranked).all()
                connection.rollback()
            assert not work.exists()

            kill(4, *arguments)
            with monkeypatch.context() as patched:
                patched.setattr("neardup.collection.link_graph.build", None)  # links are not sorted again
                assert main(["collection", "pagerank", *arguments]) == 0
            told = capsys.readouterr()
            assert "going on after 4 iterations" in told.err
            assert told.out == whole
            with store.reading() as connection:
                assert connection.execute(ranked).all() == stored
                connection.rollback()
            assert not work.exists()

            kill(4, *arguments)
            assert list(remove_pages(store, simhash_values.c.id == stored[-1].page_id, Rule(3, 0.0)))
            assert main(["collection", "pagerank", *arguments]) == 0
            assert "going on" not in capsys.readouterr().err
            with store.reading() as connection:
                assert len(connection.execute(ranked).all()) == len(stored) - 1

    def test_pages_removed_meanwhile(self, url: str) -> None:
        from neardup.store.ranks import store_ranks

        with Store.open(url, scheme=None) as store:
            with store.reading() as connection:
                nodes = nodes_of_pages(connection, by_host=False)
                page_ids = np.append(nodes.page_ids, nodes.page_ids[-1] + 1)
            values = np.full(page_ids.size, 0.125)
            more = Nodes(page_ids, np.arange(page_ids.size), page_ids.size)

            stored = store.transact(lambda connection: store_ranks(connection, more, values))

            assert stored == nodes.count
            with store.reading() as connection:
                assert all(links.size for ends in links_of_nodes(connection, more) for links in ends)

    def test_a_store_without_links(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        url = f"sqlite:///{tmp_path}/n.db"
        Store.open(url, scheme=None).close()

        assert "NEARDUP_LINKS = True" in said(capsys, "--database", url, code=1)


def test_a_damping_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="damping"):
        pagerank(link_graph.LinkGraph(np.zeros(2, int), np.empty(0, np.int32), np.zeros(1, int)), damping=1.5)
