"""Mirrors: classes, what is none, many hosts that mirror each other, and the commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.cli.main import main
from neardup.collection import mirror_pages
from neardup.collection.dataset import open_collection
from neardup.collection.mirrors import Class, Mirror, SitePages, candidates, find
from neardup.fingerprint import sketch
from tests.support.archives import Exchange, warc
from tests.support.collections import build, exchanges, rows
from tests.support.stores import write
from tests.support.verdicts import duplicate, page

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from neardup.store.store import Store

PATHS = [f"a/{number % 3}/page{number}.html" for number in range(30)]


class Web:
    """Pages whose clusters, texts and sketches are told by numbers."""

    def __init__(self) -> None:
        self.pages = SitePages()
        self.sketches: dict[int, bytes] = {}

    def add(self, prefix: str, paths: Iterable[str], *, cluster: int, text: int, changed: int = 0) -> None:
        """Pages of successive clusters and texts from these on; ``changed`` of 1,024 places are their own."""
        for number, path in enumerate(paths):
            page_id = len(self.sketches) + 1
            bits = np.random.default_rng(cluster + number).integers(0, 2, 1024, dtype=np.uint8)
            own = np.random.default_rng(page_id).choice(1024, changed, replace=False)
            bits[own] ^= 1
            self.sketches[page_id] = sketch.to_bytes(np.packbits(bits).view(np.uint64))
            of = cluster + number if changed < 100 else -page_id
            self.pages.add(
                f"http://{prefix}{path}",
                page_id,
                of,
                text + number,
            )

    def mirrors(self) -> list[Mirror]:
        self.pages.finish()
        return find(self.pages, self.known)

    def known(self, ids: Sequence[int]) -> dict[int, bytes]:
        return {page_id: self.sketches[page_id] for page_id in ids if page_id in self.sketches}


def told(found: list[Mirror]) -> list[tuple[str, str, str]]:
    return [(mirror.first, mirror.second, mirror.kind.value) for mirror in found]


class TestClasses:
    def test_hosts_and_prefixes(self) -> None:
        web = Web()
        web.add("a.example/", PATHS, cluster=100, text=100)
        web.add("b.example/", PATHS, cluster=100, text=900, changed=30)
        web.add("c.example/pub/a/", PATHS, cluster=100, text=100)
        web.add("c.example/", [f"other/{path}" for path in PATHS], cluster=5_000, text=5_000)

        assert told(web.mirrors()) == [
            ("a.example/", "b.example/", Class.FULL),
            ("a.example/", "c.example/pub/a/", Class.FULL),
            ("b.example/", "c.example/pub/a/", Class.FULL),
        ]

    def test_folders_of_one_host(self) -> None:
        web = Web()
        web.add("a.example/en/", PATHS, cluster=100, text=100)
        web.add("a.example/copy/en/", PATHS, cluster=100, text=100)

        assert told(web.mirrors()) == [("a.example/", "a.example/copy/", Class.FULL)]

    @pytest.mark.parametrize("part", [6, 15])
    def test_a_part(self, part: int) -> None:
        web = Web()
        web.add("a.example/", PATHS, cluster=100, text=100)
        web.add("b.example/", PATHS[:part], cluster=100, text=100)

        (found,) = web.mirrors()

        assert found.kind is Class.PARTIAL
        assert found.paths_second == 1.0
        assert found.paths_first < 0.8
        assert found.copies == found.same == 1.0
        assert found.sample[0].removeprefix("a.example/") == found.sample[1].removeprefix("b.example/")

    def test_versions(self) -> None:
        web = Web()
        web.add("docs.example/1.9/", PATHS, cluster=100, text=100)
        web.add("docs.example/1.10/", PATHS, cluster=100, text=900, changed=20)
        web.add("x.example/", PATHS, cluster=7_000, text=7_000)
        web.add("y.example/", PATHS[:18], cluster=7_000, text=7_000)
        web.add("y.example/", PATHS[18:], cluster=9_000, text=9_000, changed=500)

        assert told(web.mirrors()) == [
            ("docs.example/1.10/", "docs.example/1.9/", Class.NEAR),
            ("x.example/", "y.example/", Class.NEAR),
        ]

    def test_numbered_mirrors_have_the_same_texts(self) -> None:
        web = Web()
        for host in ("www1.example", "www2.example"):
            web.add(f"{host}/", PATHS, cluster=100, text=100)

        assert told(web.mirrors()) == [("www1.example/", "www2.example/", Class.FULL)]

    @pytest.mark.parametrize("changed", range(0, 30, 3))
    def test_of_numbered_sides_no_page_at_all_may_differ(self, changed: int) -> None:
        web = Web()
        web.add("docs.example/3.8/", PATHS, cluster=100, text=100)
        others = [path for place, path in enumerate(PATHS) if place != changed]
        web.add("docs.example/3.9/", [PATHS[changed]], cluster=100 + changed, text=900)
        for path in others:
            number = 100 + PATHS.index(path)
            web.add("docs.example/3.9/", [path], cluster=number, text=number)

        (found,) = web.mirrors()

        assert found.kind is Class.NEAR
        assert 0.9 <= found.same < 1.0

    def test_other_paths(self) -> None:
        web = Web()
        web.add("a.example/", PATHS, cluster=100, text=100)
        web.add("b.example/", [f"{number}.asp" for number in range(30)], cluster=100, text=900)

        assert told(web.mirrors()) == [("a.example/", "b.example/", Class.OTHER_PATHS)]

    def test_the_same_software_is_no_mirror(self) -> None:
        web = Web()
        for number in range(3):
            web.add(f"site{'abc'[number]}.example/", PATHS, cluster=1_000 * number, text=1_000 * number)
            web.add(f"site{'abc'[number]}.example/", ["login.html", "404.html"], cluster=90_000, text=90_000)

        assert candidates_of(web)  # by their paths
        assert web.mirrors() == []

    def test_an_ip_address_makes_no_candidate_by_itself(self) -> None:
        web = Web()
        for number, host in enumerate(("a.example", "b.example", "c.example:8080", "d.example")):
            own_paths = [f"{number}/{path.replace('/', str(number))}" for path in PATHS]
            web.add(f"{host}/", own_paths, cluster=1_000 * number, text=1_000 * number)
            web.pages.add_ip(host.partition(":")[0], "192.0.2.1" if number < 2 else "192.0.2.2")
        assert candidates_of(web) == []

        # A cluster of three hosts is a third of a vote. For the first two hosts, two clusters are enough.
        for host in ("a.example", "b.example", "x.example"):
            web.add(f"{host}/", [f"{host}-1"], cluster=90_000, text=90_000)
        assert candidates_of(web) == []
        web.pages.add_ip("x.example", "192.0.2.9")
        for host in ("a.example", "b.example", "x.example"):
            web.add(f"{host}/", [f"{host}-2"], cluster=91_000, text=91_000)
        assert candidates_of(web) == [("a.example/", "b.example/")]

    def test_an_ip_address_of_many_hosts_says_nothing(self) -> None:
        web = Web()
        for number in range(21):
            web.pages.add_ip(f"h{number}.example", "192.0.2.1")
        assert web.pages.near_by_ip() == {}
        web.pages.add_ip("h1.example", "192.0.2.3")
        web.pages.add_ip("h0.example", "192.0.2.3")
        assert web.pages.near_by_ip() == {("h0.example", "h1.example"): 0.5}

    def test_what_is_removed_meanwhile_is_no_copy(self) -> None:
        web = Web()
        web.add("a.example/", PATHS, cluster=100, text=100)
        web.add("b.example/", PATHS, cluster=900, text=900)
        web.sketches.clear()

        assert web.mirrors() == []

    def test_no_page_and_one_page(self) -> None:
        assert Web().mirrors() == []
        web = Web()
        web.add("a.example", [""], cluster=1, text=1)
        assert web.mirrors() == []


def candidates_of(web: Web) -> list[tuple[str, str]]:
    web.pages.finish()
    return candidates(web.pages)


def test_hosts_that_are_all_mirrors_of_each_other() -> None:
    web = Web()
    hosts = [f"{chr(97 + number % 26)}{number:x}.example" for number in range(300)]
    for host in hosts:
        web.add(f"{host}/", PATHS[:10], cluster=100, text=100)

    found = web.mirrors()

    first = min(hosts)
    assert {(mirror.first, mirror.second) for mirror in found} == {
        (f"{first}/", f"{host}/") for host in hosts if host != first
    }
    assert {mirror.kind for mirror in found} == {Class.FULL}


class TestCommands:
    def shown(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
        assert main([*arguments, "--format", "json"]) == 0
        mirrors: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["mirrors"]
        return mirrors

    def test_store(self, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        verdicts = []
        for number in range(6):
            drawn = np.random.default_rng(number).integers(0, 2**64, 16, dtype=np.uint64)
            first = page(2 * number + 1, f"http://a.example/{number}", sketch=drawn)
            copy = duplicate(2 * number + 2, f"https://b.example/m/{number}", 2 * number + 1, sketch=drawn)
            verdicts += [first, copy]
        write(store, *verdicts)
        url = store.engine.url.render_as_string(hide_password=False)

        (found,) = self.shown(capsys, "mirrors", "--database", url)

        assert (found["first"], found["second"], found["class"]) == ("a.example/", "b.example/m/", "full")
        assert main(["mirrors", "--database", url]) == 0
        assert "12 pages, 1 pair of mirrors" in capsys.readouterr().out

    def test_collection(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = tmp_path / "out"
        pages = exchanges(20_000)
        copies = [Exchange(one.url.replace("docs.example", "mirror.example/pub"), one.body) for one in pages]
        archive = tmp_path / "pages.warc.gz"
        archive.write_bytes(warc([*pages, *copies]).data)
        assert build(out, archive) == 0
        capsys.readouterr()
        assert main(["collection", "mirrors", str(out)]) == 1
        assert "run neardup collection clusters" in capsys.readouterr().err

        first_of: dict[int, int] = {}
        clusters = []
        for row in rows(out):
            digest = row["text_digest"]
            clusters.append(
                {"id": row["id"], "canonical_id": first_of.setdefault(digest, row["id"]), "size": 1}
            )
        (out / "clusters").mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(clusters), out / "clusters" / "clusters.parquet")

        # WARC-IP-Address says that the two hosts are one server.
        by_ip = mirror_pages.site_pages(open_collection(out)).near_by_ip()
        assert by_ip == {("docs.example", "mirror.example"): 0.5}
        found = self.shown(capsys, "collection", "mirrors", str(out))

        assert ("docs.example/", "mirror.example/pub/", "full") in {
            (row["first"], row["second"], row["class"]) for row in found
        }
