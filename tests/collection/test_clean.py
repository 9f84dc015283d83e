"""Clean-up by queries: what is marked and by which rules, what is taken out and put back, what goes wrong."""

from __future__ import annotations

import gzip
import json
import resource
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from neardup.cli.main import main
from neardup.collection.cleaning import pages as pages_module
from neardup.collection.cleaning import tantivy_index
from neardup.collection.cleaning import work as work_module
from neardup.collection.cleaning.indexes import Engine, open_index
from neardup.collection.cleaning.pages import CleanPages
from neardup.collection.cleaning.rules import Few, Rules, Steps
from neardup.collection.cleaning.search_log import LONGEST_LINE, Damaged, Logged, read_log
from neardup.collection.cleaning.work import Query
from neardup.collection.dataset import open_collection
from neardup.errors import ConfigurationError
from tests.support.archives import Exchange, warc
from tests.support.collections import build, exchanges, rows
from tests.support.crawling import Page, serve
from tests.support.faults import small_disk
from tests.support.made_pages import Made, make_collection, run_of
from tests.support.stores import upgraded
from tests.support.twins import python_twin
from tests.support.web import fill

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Stars = Callable[..., np.ndarray[Any, Any]]

# At distances 0, 2, 3 and 4 from the first; the second and the fourth are 6 bits apart.
FIRST, SECOND, THIRD, FOURTH = 0, 0b11, 0b111 << 20, 0b1111 << 40

STARS = [pages_module.stars, python_twin(pages_module).stars]


def said(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: object, code: int = 0) -> str:
    capsys.readouterr()
    assert main(["collection", "clean", str(folder), *map(str, arguments)]) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def log_of(path: Path, *queries: str) -> Path:
    path.write_text("".join(f"{query}\t{1000 - place}\n" for place, query in enumerate(queries)))
    return path


class Cleaned:
    """A made collection, cleaned up by a run with the given results."""

    def __init__(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], *pages: Made, parts: int = 1
    ) -> None:
        self.folder = make_collection(tmp_path / "made", pages, parts=parts)
        self._tmp_path, self._capsys = tmp_path, capsys

    def told(self, results: dict[str, list[str]], *arguments: object) -> dict[str, Any]:
        run = run_of(self._tmp_path / "made.run", results)
        log = log_of(self._tmp_path / "log.tsv", *results)
        found = said(
            self._capsys, self.folder, "--queries", log, "--results", run, "--format", "json", "--processes",
            1, *arguments,
        )  # fmt: skip
        told: dict[str, Any] = json.loads(found)
        return told

    def marks(self, results: dict[str, list[str]], *arguments: object, way: str = "parallel") -> set[Any]:
        self.told(results, *arguments)
        return {(row["url"][-1], row["canonical_url"][-1]) for row in self.rows(way)}

    def rows(self, way: str = "parallel") -> list[dict[str, Any]]:
        found = pq.read_table(self.folder / "clean" / "marks.parquet").to_pylist()
        return [row for row in found if row["way"] == way]


def urls(*names: str, host: str = "a.example") -> list[str]:
    return [f"http://{host}/{name}" for name in names]


ALL = {"q": [*urls("a", "b", "c", "e", "f", "g", "unknown", "a"), "http://kept.example/d"]}
"""Results with a page twice, and a page that is not known."""


@pytest.mark.parametrize("stars", STARS, ids=["native", "twin"])
class TestStars:
    @pytest.mark.parametrize("max_distance", [0, 1, 3, 20])
    def test_each_marked_page_is_near_one_before_it_that_stays(self, stars: Stars, max_distance: int) -> None:
        chance = np.random.default_rng(max_distance)
        values = chance.integers(0, 1 << 10, 300, dtype=np.uint64)
        kept = chance.random(300) < 0.1

        heads = stars(values, kept, max_distance)

        stays = heads == np.arange(300)
        assert stays[kept].all()
        assert stays[heads].all()
        assert (np.bitwise_count(values ^ values[heads]) <= max_distance).all()
        for place in np.flatnonzero(stays & ~kept):  # no page before it that stays is near
            before = values[:place][stays[:place]]
            assert not (np.bitwise_count(before ^ values[place]) <= max_distance).any()

    def test_the_distance_is_inclusive(self, stars: Stars) -> None:
        values = np.array([FIRST, THIRD, FOURTH], dtype=np.uint64)

        assert stars(values, np.zeros(3, dtype=np.bool_), 3).tolist() == [0, 0, 2]

    def test_values_of_other_pages(self, stars: Stars) -> None:
        with pytest.raises(ValueError, match=r"^3 values are not those of 2 pages$"):
            stars(np.zeros(3, dtype=np.uint64), np.zeros(2, dtype=np.bool_), 3)


class TestLog:
    def test_tabs_control_characters_and_damage(self, tmp_path: Path) -> None:
        log = tmp_path / "log.tsv"
        log.write_bytes(
            b"\xef\xbb\xbfone\ttwo\t3\r\n\n" + "\u00fcber\x00\x1b[2J  x\t1\n".encode() + b"no count\nx\t0\n"
            b"\t5\n\xff\t5\n" + b"y" * LONGEST_LINE * 3 + b"\t1\nlast\t2"
        )

        assert list(read_log(log)) == [
            Logged("one two", 3, "one two"),
            Logged("\u00fcber [2J x", 1, "\u00fcber [2J x"),
            Damaged(4, "no tab"),
            Damaged(5, "the count is no whole number above 0"),
            Damaged(6, "no query"),
            Damaged(7, "not UTF-8"),
            Damaged(8, f"longer than {LONGEST_LINE:,} bytes"),
            Logged("last", 2, "last"),
        ]

    def test_json_lines_packed(self, tmp_path: Path) -> None:
        log = tmp_path / "log.jsonl.gz"
        lines = [
            '{"query": "a\\tb \\ud800", "count": 2, "id": 17}', '{"query": "c", "count": true}', "[1]", "{",
            '{"count": 1}', f'{{"query": "c", "count": {1 << 70}}}', "[" * 10_000,
        ]  # fmt: skip
        log.write_bytes(gzip.compress("\n".join(lines).encode()))

        found = list(read_log(log))

        assert found[0] == Logged("a b ?", 2, "17")
        assert [one.reason for one in found[1:] if isinstance(one, Damaged)] == [
            "the count is no whole number above 0", "no JSON object", "no JSON", "no query",
            "the count is no whole number above 0", "no JSON",
        ]  # fmt: skip

    def test_a_packed_log_that_is_cut_off(self, tmp_path: Path) -> None:
        log = tmp_path / "log.tsv.gz"
        log.write_bytes(gzip.compress(b"a\t1\n" * 1000)[:-20])

        with pytest.raises(ConfigurationError, match=r"log\.tsv\.gz cannot be read"):
            list(read_log(log))

    @pytest.mark.parametrize("text", ["", "x", "3:100", "3:1,2", "3:9,2:5,1", "3,2", "65", "3:5,"])
    def test_steps_that_are_none(self, text: str) -> None:
        if text == "3:1,2":
            assert [Steps.of(text, "k", 64).at(place) for place in (1, 2)] == [3, 2]
            return
        with pytest.raises(ConfigurationError, match="k "):
            Steps.of(text, "k", 64)

    def test_few_that_are_none(self) -> None:
        with pytest.raises(ConfigurationError, match="such as 20:1, not '20'"):
            Few.of("20")


class TestMarks:
    @pytest.fixture
    def cleaned(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cleaned:
        return Cleaned(
            tmp_path, capsys,
            Made("a", FIRST, 0.1), Made("b", SECOND, 0.3, turned=50), Made("c", SECOND, 0.2, turned=200),
            Made("d", FIRST, 0.1, host="kept.example"), Made("e", None), Made("f", FIRST, 0.1, features=9),
            Made("g", 0xFF << 50, 0.1),
        )  # fmt: skip

    def test_the_best_rank_is_kept(self, cleaned: Cleaned) -> None:
        told = cleaned.told(ALL)

        found = {(row["url"][-1], row["canonical_url"][-1]): row for row in cleaned.rows()}
        assert set(found) == {("a", "b"), ("c", "b"), ("d", "b")}
        row = found["c", "b"]
        assert (row["query"], row["place"], row["max_distance"], row["distance"]) == ("q", 1, 3, 0)
        assert row["reason"] == "lower PageRank"
        assert row["resemblance"] == pytest.approx(1 - 2 * 150 / 1024)
        assert told["ways"]["parallel"]["shares"] == [{"max_distance": 3, "marked": 3, "right": 2}]
        (one,) = told["ways"]["parallel"]["ranges"]
        assert (one["hit"], one["results"], one["unknown"], one["marked"]) == (1, 8, 1, 3)

    def test_equal_ranks_go_by_id(self, cleaned: Cleaned) -> None:
        assert cleaned.marks({"q": ["http://kept.example/d", *urls("a")]}) == {("d", "a")}
        assert cleaned.rows()[0]["reason"] == "same PageRank, later id"

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["--keep-host", "kept.example"], {"ab", "cb"}),
            (["--below", "0.2"], {"ab", "db"}),
            (["--min-results", "9"], set()),
            (["--min-results", "8"], {"ab", "cb", "db"}),
            (["--max-distance", "1"], {"cb", "da"}),
            (["--max-distance", "3:9,0"], {"ab", "cb", "db"}),
            (["--few-results", "9:0"], {"cb", "da"}),
            (["--few-results", "8:0"], {"ab", "cb", "db"}),
            (["--depth", "2"], {"ab"}),
            (["--depth", "1", "--depth-share", "0.4"], {"ab", "cb"}),
        ],
    )
    def test_rules(self, cleaned: Cleaned, arguments: list[str], expected: set[str]) -> None:
        assert cleaned.marks(ALL, *arguments) == {tuple(pair) for pair in expected}

    def test_rules_by_frequency(self, cleaned: Cleaned) -> None:
        results = {"often": urls("a", "b"), "seldom": urls("a", "c")}

        assert cleaned.marks(results, "--max-distance", "2:1,1") == {("a", "b")}
        assert cleaned.marks(results, "--depth", "1:1,2") == {("a", "c")}

    def test_a_repository_that_shrinks(self, cleaned: Cleaned) -> None:
        results = {"first": urls("a", "c"), "second": urls("a", "b"), "third": urls("a", "g")}

        told = cleaned.told(results, "--depth", "2")

        marked = {way: [(row["url"][-1], row["query"]) for row in cleaned.rows(way)] for way in told["ways"]}
        assert marked == {"parallel": [("a", "second"), ("a", "first")], "sequential": [("a", "first")]}
        results_of = {way: told["ways"][way]["ranges"][0]["results"] for way in told["ways"]}
        assert results_of == {"sequential": 4, "parallel": 6}

    def test_the_log_decides_the_order(self, cleaned: Cleaned, tmp_path: Path) -> None:
        run = run_of(tmp_path / "r.run", {"7": urls("a", "b"), "8": urls("a", "c")})
        log = tmp_path / "log.jsonl"
        asked = [("one two", 5, 7), ("three", 6, 8), ("one\ttwo", 2, 9)]
        log.write_text(
            "".join(json.dumps({"query": q, "count": n, "id": name}) + "\n" for q, n, name in asked)
        )

        assert main(
            ["collection", "clean", str(cleaned.folder), "--queries", str(log), "--results", str(run),
             "--way", "sequential"]
        ) == 0  # fmt: skip
        assert [(row["query"], row["canonical_url"][-1]) for row in cleaned.rows("sequential")] == [
            ("one two", "b")
        ]


class TestWays:
    def test_results_in_answers(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        folder = make_collection(tmp_path / "made", [Made("a", 1), Made("b", 1), Made("c", 1)])
        answers = tmp_path / "answers.jsonl"
        elastic = {"hits": {"hits": [{"_id": 1, "_source": {"at": url}} for url in urls("a", "b")]}}
        solr = {"response": {"docs": [{"id": url} for url in urls("a", "c", "x")]}}
        lines = [{"query": "e", "answer": elastic}, {"query": "s", "answer": solr}, {"query": "d"}, 7]
        answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
        log = log_of(tmp_path / "log.tsv", "e", "s", "d")

        told = json.loads(
            said(
                capsys, folder, "--queries", log, "--results", answers, "--url-field", "at", "--processes", 1,
                "--format", "json",
            )
        )  # fmt: skip

        assert told["log"]["damaged_results"] == 2
        (one,) = told["ways"]["parallel"]["ranges"]
        assert (one["queries"], one["hit"], one["results"], one["unknown"], one["marked"]) == (3, 2, 4, 1, 2)

    def test_an_engine_that_goes_away_and_comes_back(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(work_module, "BATCH", 1)
        folder = make_collection(tmp_path / "made", [Made("a", 1), Made("b", 1), Made("c", 1)])
        log = log_of(tmp_path / "log.tsv", "x y", "é/?&", "z")
        with serve() as site:
            arguments = (
                "--queries", log, "--results", f"{site.url}/_search?q={{query}}&size={{depth}}", "--way",
                "parallel", "--processes", 1, "--depth", 20,
            )  # fmt: skip
            answer = {"hits": {"hits": [{"_id": url} for url in urls("a", "b")]}}
            found = Page(json.dumps(answer).encode())
            asked = [f"/_search?q={query}&size=20" for query in ("x%20y", "%C3%A9%2F%3F%26", "z")]
            site.pages = {asked[0]: found, asked[1]: Page(b"{}")}

            assert "no list of results" in said(capsys, folder, *arguments, code=1)
            site.pages = {asked[1]: found}
            problem = said(capsys, folder, *arguments, code=1)
            assert "404" in problem
            assert "the same command goes on from there" in problem
            site.pages = {asked[2]: found}
            assert "1 page" not in said(capsys, folder, *arguments)

        assert site.requested == [asked[0], asked[1], asked[1], asked[2], asked[2]]
        assert [row["query"] for row in pq.read_table(folder / "clean/marks.parquet").to_pylist()] == ["x y"]
        assert sorted(path.name for path in (folder / "clean").iterdir()) == ["marks.parquet"]

    def test_no_engine(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        folder = make_collection(tmp_path / "made", [Made("a", 1)])
        log = log_of(tmp_path / "log.tsv", "x")

        url = "http://127.0.0.1:9/{query}"
        assert "127.0.0.1:9/x" in said(capsys, folder, "--queries", log, "--results", url, code=1)
        assert "no {query}" in said(capsys, folder, "--queries", log, "--results", url[:-7], code=1)
        missing = tmp_path / "no.run"
        assert "no.run" in said(capsys, folder, "--queries", log, "--results", missing, code=1)
        assert "none.tsv" in said(capsys, folder, "--queries", tmp_path / "none.tsv", code=1)
        (folder / "pagerank.parquet").unlink()
        assert "neardup collection pagerank" in said(capsys, folder, "--queries", log, code=1)

    @pytest.mark.slow
    def test_one_process_and_eight_mark_the_same(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        chance = np.random.default_rng(1)
        values = chance.integers(0, 1 << 12, 2_000)
        pages = [Made(str(number), int(value), float(chance.random())) for number, value in enumerate(values)]
        folder = make_collection(tmp_path / "made", pages, parts=3)
        results = {
            f"q{query}": [pages[number].url for number in chance.integers(0, len(pages), 60)]
            for query in range(1_500)
        }
        run, log = run_of(tmp_path / "r.run", results), log_of(tmp_path / "log.tsv", *results)
        written = []
        for processes in (1, 8):
            said(capsys, folder, "--queries", log, "--results", run, "--processes", processes)
            written.append((folder / "clean/marks.parquet").read_bytes())

        assert written[0] == written[1]

    @pytest.mark.slow
    def test_a_million_queries(self, tmp_path: Path) -> None:
        log = tmp_path / "log.tsv"
        with log.open("w") as out:
            out.writelines(f"query\t{number}\t{number}\n" for number in range(1, 1_000_001))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        with work_module.Work(tmp_path / "work.db", "made") as work:
            told = work.read(log, None)
            batches = work.missing(work_module.Way.PARALLEL)
            first = next(batches)
            last = deque(batches, maxlen=1)[0]

        assert (told.lines, told.queries, told.damaged) == (1_000_000, 1_000_000, 0)
        assert first[1][0] == (1, "query 1000000", 1_000_000, "query 1000000")
        assert (last[0], last[1][-1].text, last[1][-1].place) == (9_999, "query 1", 1_000_000)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 40_000  # kB


class TestApply:
    def test_out_and_back(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        pages = [Made("a", 1, 3), Made("b", 1, 2, turned=102), Made("c", 1, 1, turned=103), Made("d", 0xFF00)]
        cleaned = Cleaned(tmp_path, capsys, *pages, parts=2)
        before = {path: path.read_bytes() for path in (cleaned.folder / "pages").iterdir()}
        cleaned.told({"q": urls("a", "b", "c", "d")})
        assert {path: path.read_bytes() for path in before} == before  # a mark deletes nothing

        told = json.loads(said(capsys, cleaned.folder, "--apply", "parallel", "--format", "json"))
        assert told == {"removed": 1, "unlike": 1, "orphans": 0}
        assert [row["url"][-1] for row in rows(cleaned.folder)] == ["a", "c", "d"]
        told = json.loads(
            said(capsys, cleaned.folder, "--apply", "parallel", "--verify", 0, "--format", "json")
        )
        assert told == {"removed": 2, "unlike": 0, "orphans": 0}
        assert [row["url"][-1] for row in rows(cleaned.folder)] == ["a", "d"]
        log = log_of(tmp_path / "log.tsv", "q")
        assert "--undo first" in said(capsys, cleaned.folder, "--queries", log, code=1)

        said(capsys, cleaned.folder, "--undo")
        assert {path: path.read_bytes() for path in (cleaned.folder / "pages").iterdir()} == before
        assert "nothing can be undone" in said(capsys, cleaned.folder, "--undo", code=1)

    def test_no_page_goes_without_one_that_it_is_like(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        # a is like b, b is like c, but a is not like c: if both a and b went, a would be lost.
        cleaned = Cleaned(tmp_path, capsys, Made("a", 0b11, 1), Made("b", 0, 2), Made("c", 0b1100, 3))
        results = {"one": urls("a", "b"), "two": urls("b", "c")}

        assert cleaned.marks(results, "--max-distance", 2) == {("a", "b"), ("b", "c")}
        for way in ("sequential", "parallel"):
            told = json.loads(said(capsys, cleaned.folder, "--apply", way, "--format", "json"))
            assert told == {"removed": 1, "unlike": 0, "orphans": 1}
            assert [row["url"][-1] for row in rows(cleaned.folder)] == ["a", "c"]

    def test_nothing_to_take_out(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        cleaned = Cleaned(tmp_path, capsys, Made("a", 1), Made("b", 0xFF00))
        cleaned.told({"q": urls("a", "b")})

        assert "0 pages taken out" in said(capsys, cleaned.folder, "--apply", "parallel")
        said(capsys, cleaned.folder, "--undo")
        assert len(rows(cleaned.folder)) == 2

    def test_what_cannot_be_applied(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        cleaned = Cleaned(tmp_path, capsys, Made("a", 1), Made("b", 1))
        assert "mark pages first" in said(capsys, cleaned.folder, "--apply", "parallel", code=1)
        cleaned.told({"q": urls("a", "b")}, "--way", "sequential")
        assert "--way parallel first" in said(capsys, cleaned.folder, "--apply", "parallel", code=1)
        (part,) = (cleaned.folder / "pages").iterdir()
        part.write_bytes(part.read_bytes())
        assert "mark them again" in said(capsys, cleaned.folder, "--apply", "sequential", code=1)

    def test_a_full_disk_loses_nothing(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        mounted = tmp_path / "mounted"
        mounted.mkdir()
        chance = np.random.default_rng(3)
        pages = [Made(str(number), int(chance.integers(0, 1 << 62)) | 1) for number in range(2_000)]
        pages += [page._replace(name=f"copy{page.name}", rank=0.5) for page in pages]
        results = {f"q{n}": [p.url for p in (*pages[n::20], *pages[2_000 + n :: 20])] for n in range(20)}
        run, log = run_of(tmp_path / "r.run", results), log_of(tmp_path / "log.tsv", *results)
        with small_disk(mounted, 2) as disk:
            folder = make_collection(mounted / "made", pages, parts=4)
            before = [path.read_bytes() for path in sorted((folder / "pages").iterdir())]
            arguments = ("--queries", log, "--results", run, "--way", "sequential")
            disk.fill()
            assert "the same command goes on" in said(capsys, folder, *arguments, code=1)
            disk.empty()
            said(capsys, folder, *arguments)
            disk.fill()
            assert "the same command goes on" in said(capsys, folder, "--apply", "sequential", code=1)
            disk.empty()
            said(capsys, folder, "--apply", "sequential")
            assert len(rows(folder)) == 2_000
            said(capsys, folder, "--undo")
            assert [path.read_bytes() for path in sorted((folder / "pages").iterdir())] == before


class TestIndex:
    TEXT = "the clean up of near duplicate pages by the queries that people ask of a search engine every day"

    @pytest.mark.parametrize("search", list(Engine))
    def test_texts_of_a_collection(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], search: Engine
    ) -> None:
        archive, more = tmp_path / "a.warc.gz", tmp_path / "more.jsonl"
        pages = [
            Exchange(f"http://a.example/{name}", f"<p>{self.TEXT}</p>{link}".encode())
            for name, link in (("one", ""), ("two", "<a href=one>.</a>"), ("other", "<script>ask</script>"))
        ]
        other = Exchange(
            "http://b.example/", "<p>入門書 Straße, an_identifier and some other words</p>".encode()
        )
        error = Exchange("http://b.example/gone", f"<p>{self.TEXT}</p>".encode(), status="404 Not Found")
        archive.write_bytes(warc([*pages, other, error]).data)
        more.write_text(json.dumps({"url": "http://c.example/", "text": self.TEXT}))
        out = tmp_path / "out"
        assert build(out, archive, more) == 0
        assert main(["collection", "pagerank", str(out)]) == 0
        queries = [
            "Search ENGINE ask",
            "入門",
            "strasse an_identifier",
            'no "such* OR NEAR(',
            "search nowhere",
        ]
        log = log_of(tmp_path / "log.tsv", *queries)

        by = "--search", search.value
        assert "give --inputs" in said(capsys, out, *by, "--queries", log, code=1)
        assert "as well; name all" in said(capsys, out, *by, "--queries", log, "--inputs", more, code=1)
        told = json.loads(
            said(
                capsys,
                out,
                *by,
                "--queries",
                log,
                "--inputs",
                archive,
                more,
                "--format",
                "json",
                "--way",
                "sequential",
            )
        )

        (one,) = told["ways"]["sequential"]["ranges"]
        assert (one["queries"], one["hit"], one["results"]) == (5, 3, 6)
        found = pq.read_table(out / "clean/marks.parquet").to_pylist()
        assert {row["canonical_url"] for row in found} == {"http://a.example/one"}
        assert {row["url"] for row in found} >= {"http://a.example/two"}
        archive.unlink()  # the index is there
        said(capsys, out, *by, "--queries", log, "--way", "sequential")
        if search is Engine.SQLITE:
            (out / "clean/index.db").write_bytes(b"x" * 5_000)
            assert "index.db is damaged" in said(capsys, out, "--queries", log, code=1)
            return
        for path in (out / "clean/tantivy").glob("*.idx"):
            path.write_bytes(b"x" * 50)
        told_of = said(capsys, out, *by, "--queries", log, "--processes", 1, code=1)
        assert "clean/tantivy: " in told_of
        assert "If the index is damaged, delete the folder" in told_of

    @pytest.mark.slow
    def test_an_index_goes_on_where_it_was_killed(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Killed after a part of the inputs is in the index, and before the part is noted."""
        files = []
        for number in range(3):
            files.append(tmp_path / f"{number}.jsonl")
            lines = [
                {"url": f"http://a.example/{number}/{at}", "text": f"{self.TEXT} {at}"} for at in range(4)
            ]
            files[-1].write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        out = tmp_path / "out"
        assert build(out, *files) == 0
        assert main(["collection", "pagerank", str(out)]) == 0
        arguments = (
            "--search", "tantivy", "--queries", log_of(tmp_path / "log.tsv", "near duplicate", "nowhere"),
            "--inputs", *files, "--format", "json",
        )  # fmt: skip

        class Killed(BaseException):
            pass

        def kill(index: tantivy_index.GrowingTantivyIndex, more: dict[str, Any]) -> None:
            if len(index.done) == 2:
                raise Killed
            note(index, more)

        note = tantivy_index.GrowingTantivyIndex._write_note
        monkeypatch.setattr(tantivy_index.GrowingTantivyIndex, "_write_note", kill)
        with pytest.raises(Killed):
            main(["collection", "clean", str(out), *map(str, arguments)])
        monkeypatch.setattr(tantivy_index.GrowingTantivyIndex, "_write_note", note)
        told = json.loads(said(capsys, out, *arguments))

        for way in ("sequential", "parallel"):
            (one,) = told["ways"][way]["ranges"]
            assert (one["hit"], one["results"], one["unknown"]) == (1, 12, 0)

    def test_both_searches_find_the_same_pages(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        archive = tmp_path / "pages.warc.gz"
        archive.write_bytes(warc(exchanges(20_000)).data)
        out = tmp_path / "out"
        assert build(out, archive) == 0
        assert main(["collection", "pagerank", str(out)]) == 0
        empty = tmp_path / "empty.tsv"
        empty.write_text("")
        for engine in Engine:
            said(capsys, out, "--search", engine.value, "--queries", empty, "--inputs", archive)
        collection = open_collection(out)
        pages = CleanPages(collection, Rules(max_distances=Steps.of("3", "k"), depths=Steps.of("9", "d")))
        indexes = [open_index(collection, engine, pages) for engine in Engine]

        hits = 0
        for text in ("the", "apache", "server configuration", "Kafka class", "of the the", "no-such-word"):
            found = [
                sorted(row for some in index.results(Query(1, text, 1, text)) for row in some.tolist())
                for index in indexes
            ]
            assert found[0] == found[1]
            hits += len(found[0])
        assert hits > len(pages) / 2

    @pytest.mark.slow
    def test_texts_of_a_store(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        url = upgraded(f"sqlite:///{tmp_path / 'n.db'}")
        with serve() as site:
            fill(site, url, NEARDUP_KEEP_TEXT=True)
        out = tmp_path / "out"
        assert build(out, url) == 0
        assert main(["collection", "pagerank", str(out)]) == 0
        log = log_of(tmp_path / "log.tsv", "clang")

        told = json.loads(
            said(capsys, out, "--queries", log, "--inputs", url, "--way", "sequential", "--format", "json")
        )

        assert told["ways"]["sequential"]["ranges"][0]["results"] > 1
