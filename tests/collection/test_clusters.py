"""Clusters of collections: byte for byte those of plain Python, on each engine; bad input; resumption."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.cli.main import main
from neardup.collection import bands, clusters
from neardup.collection.dataset import open_collection
from neardup.collection.engine import DuckDB
from neardup.collection.pair_kernels import HeadlineKeys, Judgement, Templates
from neardup.detection.rule import Rule
from neardup.errors import ConfigurationError
from neardup.fingerprint import sketch
from neardup.store.store import Store
from neardup.text import headline as headlines
from tests.support.clustered import CHOICE, SCHEME, expected, hosted, page_rows, write_collection

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.collection.clusters import Choice
    from tests.support.clustered import Row

NAMES = ("relations.parquet", "clusters.parquet")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return page_rows()


@pytest.fixture
def folder(rows: list[Row], tmp_path: Path) -> Path:
    write_collection(tmp_path / "c", rows)
    return tmp_path / "c"


def results(folder: Path) -> list[bytes]:
    return [(folder / "clusters" / name).read_bytes() for name in NAMES]


def oracle(folder: Path, rows: list[Row], choice: Choice = CHOICE) -> list[bytes]:
    """The files of plain Python, written to a collection of its own."""
    write_collection(folder, rows)
    (folder / "clusters").mkdir()
    clusters.write(expected(rows, choice), open_collection(folder))
    return results(folder)


class TestBands:
    @pytest.mark.parametrize(("number", "found"), [(12, 0.78), (42, 0.995)])
    def test_arithmetic_of_the_manual(self, number: int, found: float) -> None:
        assert bands.Bands(24, number, 1024).found(0.83) == pytest.approx(found, abs=0.002)

    def test_pairs_are_found_as_often_as_told(self) -> None:
        rng = np.random.default_rng(3)
        one = rng.integers(0, 2**64, (4000, 16), dtype=np.uint64)
        other = one ^ np.packbits(rng.random((4000, 1024)) < 0.085, axis=1).view(np.uint64)
        chosen = bands.choose(1_000_000, 0.83, 0.99, 1024)
        digits = chosen.width // 4
        ends = [start + digits for start in chosen.starts()][: chosen.number]

        hexes = zip(map(sketch.to_bytes, one), map(sketch.to_bytes, other), strict=True)
        found = [
            any(a.hex()[end - digits : end] == b.hex()[end - digits : end] for end in ends) for a, b in hexes
        ]

        assert np.mean(found) == pytest.approx(chosen.found(0.83), abs=0.006)

    @pytest.mark.parametrize("pages", [1, 100, 5_000, 1_000_000, 10**9])
    def test_choice_has_the_recall_and_fits(self, pages: int) -> None:
        chosen = bands.choose(pages, 0.83, 0.99, 1024)

        assert chosen.found(0.83) >= 0.99
        assert bands.Bands(chosen.width, chosen.number - 1, 1024).found(0.83) < 0.99
        assert max(chosen.starts()) + chosen.width // 4 <= (1024 + 64) // 4
        assert chosen.width == 24 or 2**chosen.width >= 8 * pages

    @pytest.mark.parametrize("recall", [0.0, 1.0, 2.0])
    def test_recall_that_is_none(self, recall: float) -> None:
        with pytest.raises(ConfigurationError, match=f"not {recall}"):
            bands.choose(10, 0.83, recall, 1024)

    def test_recall_out_of_reach(self) -> None:
        with pytest.raises(ConfigurationError, match="at most 0\\.00"):
            bands.choose(10, 0.1, 0.99, 64)


class TestResult:
    @pytest.mark.parametrize("choice", [CHOICE, clusters.Choice(CHOICE.rule, 0.5, 60, last_captures=True)])
    @pytest.mark.parametrize("heads", [clusters.HEADS, 1000])
    def test_is_that_of_plain_python(
        self, rows: list[Row], tmp_path: Path, choice: Choice, heads: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(clusters, "HEADS", heads)
        write_collection(tmp_path / "c", rows, files=3)
        collection = open_collection(tmp_path / "c")
        engine = DuckDB(clusters.job_folder(collection, choice))

        found = clusters.find(collection, engine, choice)
        clusters.write(found, collection)

        assert results(tmp_path / "c") == oracle(tmp_path / "oracle", rows, choice)
        assert found.relations.num_rows > len(rows) // 2

    @pytest.mark.parametrize("scope", ["host", "domain"])
    def test_scope_bounds_clusters(
        self, rows: list[Row], tmp_path: Path, scope: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = hosted(rows)
        write_collection(tmp_path / "c", made, files=3)
        (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = own_scope\n")
        (tmp_path / "own_scope.py").write_text(f"NEARDUP_SCOPE = {scope!r}\n")
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
        monkeypatch.delitem(sys.modules, "own_scope", raising=False)

        assert main(["collection", "clusters", str(tmp_path / "c")]) == 0

        choice = clusters.Choice(CHOICE.rule, scope=scope)
        assert results(tmp_path / "c") == oracle(tmp_path / "oracle", made, choice)
        hosts = {row["id"]: row["host"] for row in made}
        relations = pq.read_table(tmp_path / "c" / "clusters" / "relations.parquet").to_pylist()
        pairs = {(hosts[row["actual_hash_id"]], hosts[row["duplicate_hash_id"]]) for row in relations}
        assert any(one != other for one, other in pairs) == (scope == "domain")
        assert all(one.split(".")[-2:] == other.split(".")[-2:] for one, other in pairs)
        assert any(one == other for one, other in pairs)

    def test_does_not_depend_on_the_order_of_the_rows(
        self, folder: Path, rows: list[Row], tmp_path: Path
    ) -> None:
        mixed = random.Random(1).sample(rows, len(rows))
        write_collection(tmp_path / "mixed", mixed, files=7)

        assert main(["collection", "clusters", str(folder)]) == 0
        assert main(["collection", "clusters", str(tmp_path / "mixed")]) == 0

        assert results(tmp_path / "mixed") == results(folder)

    def test_many_headlines_alike_on_a_host(self, tmp_path: Path, rows: list[Row]) -> None:
        # One headline on more than six pages says nothing; another one, on few, tells pages apart.
        base = next(row for row in rows if row["url"].endswith("index.html"))
        made = [
            {
                **base,
                "id": number,
                "url": f"http://h.example/{number}",
                "host": "h.example",
                "text_digest": number + 1,
                "headline": np.array(
                    [2, 4 if number < 9 else 100 + 2 * number] + [0] * 18, dtype="<u4"
                ).tobytes(),
            }
            for number in range(12)
        ]
        write_collection(tmp_path / "c", made)

        assert main(["collection", "clusters", str(tmp_path / "c")]) == 0

        assert results(tmp_path / "c") == oracle(tmp_path / "oracle", made)
        assert (
            pq.read_table(tmp_path / "c" / "clusters" / "clusters.parquet")["size"].to_pylist()
            == [9] * 9 + [1] * 3
        )

    def test_a_chapter_with_another_number_under_the_same_name(self, tmp_path: Path, rows: list[Row]) -> None:
        base = next(row for row in rows if row["url"].endswith("index.html"))
        bits = np.unpackbits(np.frombuffer(base["sketch"], dtype=np.uint8))
        paths = ["old/arrays.html", "new/arrays.html", "new/index.html"]
        made = []
        for number, path in enumerate(paths):
            drawn = bits.copy()
            drawn[number * 128 : number * 128 + 128] ^= number > 0  # a resemblance of .75 to the first page
            made.append(
                {
                    **base,
                    "id": number,
                    "url": f"http://h.example/{path}",
                    "host": "h.example",
                    "text_digest": number + 1,
                    "sketch": np.packbits(drawn).tobytes(),
                    "headline": headlines.to_bytes(headlines.of_texts(f"9.{24 + number}. Arrays")),
                    "is_all_rare": True,
                }
            )
        write_collection(tmp_path / "c", made)

        assert main(["collection", "clusters", str(tmp_path / "c")]) == 0

        assert results(tmp_path / "c") == oracle(tmp_path / "oracle", made)
        found = pq.read_table(tmp_path / "c" / "clusters" / "clusters.parquet")["size"].to_pylist()
        assert found == [2, 2, 1]

    def test_collection_without_words(self, tmp_path: Path, rows: list[Row]) -> None:
        write_collection(tmp_path / "c", rows[-2:-1])

        assert main(["collection", "clusters", str(tmp_path / "c")]) == 0

        assert pq.read_table(tmp_path / "c" / "clusters" / "clusters.parquet").to_pylist() == [
            {"id": rows[-2]["id"], "canonical_id": rows[-2]["id"], "size": 1}
        ]

    def test_pages_with_too_few_words_are_counted(
        self, tmp_path: Path, rows: list[Row], capsys: pytest.CaptureFixture[str]
    ) -> None:
        short = [{**rows[at], "id": 1 + at, "features": 9, "url": f"http://a.example/{at}"} for at in (0, 1)]
        old = {**short[0], "id": 9, "date": None}  # of which short[0] is the last capture
        for name, made, told in (
            ("a", [*rows, *short], "3 pages"),
            ("b", [*rows[:2], short[0], old], "1 page"),
        ):
            write_collection(tmp_path / name, made)
            capsys.readouterr()
            database = f"sqlite:///{tmp_path}/{name}.db"
            store = ["--into-store", "--database", database] if name == "b" else []
            assert main(["collection", "clusters", str(tmp_path / name), *store]) == 0
            said = capsys.readouterr().out
            assert f"\n{told} with fewer than 10 words: compared with none\n" in said
            assert (" pages (last captures only), " in said) == (name == "b")


def test_kernels_do_not_depend_on_batches(rows: list[Row]) -> None:
    some = [row for row in rows if row.get("headline")]
    keys = pa.table({"host": [row["host"] for row in some], "headline": [row["headline"] for row in some]})
    pairs = [(a, b) for a in range(len(some)) for b in range(a)]
    columns: dict[str, Any] = {"a": [a for a, _ in pairs], "b": [b for _, b in pairs]}
    for end, side in (("a", 0), ("b", 1)):
        for name in ("sketch", "headline", "url", "host"):
            columns[f"{name}_{end}"] = [some[pair[side]][name] for pair in pairs]
        values = np.array([some[pair[side]]["hash_value"] for pair in pairs], dtype=np.uint64)
        columns[f"value_{end}"] = values.view(np.int64)
    for name in ("rare_places", "rare_limit", "is_all_rare", "is_article"):
        columns[name] = [some[b][name] for _, b in pairs]
    judgement = Judgement(CHOICE.rule, Templates({}), 1024)

    for kernel, table in ((HeadlineKeys(), keys), (judgement, pa.table(columns))):
        order = np.random.default_rng(2).permutation(table.num_rows)
        whole = pa.Table.from_batches(kernel(iter(table.to_batches())))
        parts = pa.Table.from_batches(kernel(iter(table.take(order).to_batches(max_chunksize=97))))
        assert whole.num_rows > 50
        assert sorted(map(str, parts.to_pylist())) == sorted(map(str, whole.to_pylist()))


class TestBadInput:
    def failure(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
        assert main(["collection", "clusters", *map(str, arguments)]) == 1
        return capsys.readouterr().err

    def test_folder_that_is_no_collection(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert "no collection.json" in self.failure(capsys, tmp_path)

    def test_damaged_state(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "collection.json").write_text("{")
        assert "collection.json is damaged" in self.failure(capsys, folder)

    def test_no_pages(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "pages" / "000000-0000.parquet").unlink()
        assert "no Parquet file" in self.failure(capsys, folder)

    def test_missing_column(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = folder / "pages" / "000000-0000.parquet"
        pq.write_table(pq.read_table(path).drop(["sketch"]), path)
        assert "has no column sketch" in self.failure(capsys, folder)

    def test_column_of_another_type(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = folder / "pages" / "000000-0000.parquet"
        table = pq.read_table(path)
        at = table.schema.get_field_index("features")
        pq.write_table(table.set_column(at, "features", table["features"].cast(pa.string())), path)
        assert "column features is string, not int32" in self.failure(capsys, folder)

    def test_damaged_file(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = folder / "pages" / "000000-0000.parquet"
        path.write_bytes(path.read_bytes()[:-10])
        assert f"{path} is not a Parquet file, or is damaged" in self.failure(capsys, folder)

    def test_damaged_row_group(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = folder / "pages" / "000000-0000.parquet"
        data = bytearray(path.read_bytes())
        data[4:4000] = bytes(3996)
        path.write_bytes(data)
        assert str(folder) in self.failure(capsys, folder)

    def test_sketch_of_another_size(
        self, rows: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_collection(tmp_path / "c", [{**rows[0], "sketch": bytes(64)}])
        assert "the sketch of page 0 has not the 1024 places" in self.failure(capsys, tmp_path / "c")

    def test_another_scheme(
        self, rows: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_collection(tmp_path / "c", rows[:2], scheme=SCHEME.replace("word-tf", "word-log-tf"))
        assert "NEARDUP_FEATURES" in self.failure(capsys, tmp_path / "c")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--engine", "spark"], "--remote sc://HOST"),
            (["--remote", "sc://a"], "give both"),
            (["--recall", "1"], "not 1.0"),
            (["--memory", "much"], "memory 'much'"),
        ],
    )
    def test_options(
        self, folder: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert message in self.failure(capsys, folder, *options)

    def test_verification_that_is_off(self, folder: Path) -> None:
        choice = clusters.Choice(Rule(3, 0.0))
        collection = open_collection(folder)
        with pytest.raises(ConfigurationError, match="neardup pairs"):
            clusters.find(collection, DuckDB(clusters.job_folder(collection, choice)), choice)


class TestResumption:
    def test_goes_on_where_it_stopped(self, folder: Path, rows: list[Row], tmp_path: Path) -> None:
        collection = open_collection(folder)
        work = clusters.job_folder(collection, CHOICE)

        def stop(stage: str) -> None:
            if stage.startswith("judging"):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            clusters.find(collection, DuckDB(work), CHOICE, stop)
        made = {path: path.stat().st_mtime_ns for path in work.rglob("*.parquet")}
        (work / "edge.begun").mkdir()
        (work / "edge.begun" / "part.parquet").write_bytes(b"half")
        found = clusters.find(collection, DuckDB(clusters.job_folder(collection, CHOICE)), CHOICE)
        clusters.write(found, collection)

        assert len(made) >= 4
        assert {path: path.stat().st_mtime_ns for path in made} == made
        assert results(folder) == oracle(tmp_path / "oracle", rows)

    def test_begins_anew_for_other_pages_or_another_choice(self, folder: Path, rows: list[Row]) -> None:
        collection = open_collection(folder)
        work = clusters.job_folder(collection, CHOICE)
        (work / "page").mkdir()
        assert (clusters.job_folder(collection, CHOICE) / "page").exists()

        assert not (clusters.job_folder(collection, clusters.Choice(CHOICE.rule, 0.9)) / "page").exists()
        (work / "page").mkdir()
        pq.write_table(pq.read_table(folder / "pages").slice(1), folder / "pages" / "000000-0000.parquet")
        assert not (clusters.job_folder(collection, clusters.Choice(CHOICE.rule, 0.9)) / "page").exists()

    @pytest.mark.slow
    def test_ctrl_c_within_a_statement(self, tmp_path: Path) -> None:
        program = (
            "import signal, sys; from pathlib import Path; from neardup.collection.engine import DuckDB;"
            # A shell has what it starts in the background ignore SIGINT.
            "signal.signal(signal.SIGINT, signal.default_int_handler);"
            "engine = DuckDB(Path(sys.argv[1])); print('begins', flush=True);"
            "engine.make('sums', 'SELECT sum(sqrt(number)) AS x FROM range(1000000000000) AS n(number)')"
        )
        begun = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with begun:
            assert begun.stdout is not None
            begun.stdout.readline()
            time.sleep(0.5)
            begun.send_signal(signal.SIGINT)
            try:
                _, error = begun.communicate(timeout=60)
            finally:
                begun.kill()

        assert error.decode().rstrip().endswith("KeyboardInterrupt")

    @pytest.mark.slow
    def test_full_disk(self, folder: Path, rows: list[Row], tmp_path: Path) -> None:
        # A limit of the process on the size of files stands for a disk that fills up.
        program = (
            "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000));"
            "from neardup.cli.main import main; sys.exit(main(['collection', 'clusters', sys.argv[1]]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False
        )

        assert done.returncode == 1
        assert "what is done is kept" in done.stderr
        assert "Traceback" not in done.stderr
        assert main(["collection", "clusters", str(folder)]) == 0
        assert results(folder) == oracle(tmp_path / "oracle", rows)


class TestIntoStore:
    @pytest.mark.slow
    def test_reports_and_later_crawls_have_them(
        self, folder: Path, rows: list[Row], database_url: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["db", "upgrade", "--database", database_url]) == 0
        for _ in range(2):  # stored again, nothing is there twice
            assert (
                main(["collection", "clusters", str(folder), "--into-store", "--database", database_url]) == 0
            )

        found = pq.read_table(folder / "clusters" / "relations.parquet")
        with Store.open(database_url, scheme=SCHEME, create=False) as store:
            pages = list(store.known_pages())
        assert len(pages) == len({row["url"] for row in rows}) < len(rows)
        duplicates = [page for page in pages if page.canonical_id is not None]
        assert len(duplicates) == found.num_rows
        by_id = {page.page_id: page.url for page in pages}
        urls = {row["id"]: row["url"] for row in rows}
        assert {(by_id[page.canonical_id], page.url) for page in duplicates if page.canonical_id} == {
            (urls[row["actual_hash_id"]], urls[row["duplicate_hash_id"]]) for row in found.to_pylist()
        }
        assert main(["db", "check", "--database", database_url]) == 0
        capsys.readouterr()
        assert main(["report", "--format", "json", "--database", database_url]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["overview"][0]["duplicates"] == found.num_rows

    def test_database_of_another_scheme(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        url = f"sqlite:///{tmp_path}/n.db"
        with Store.open(url, scheme="another") as store:
            store.begin_crawl(spider="s", settings={})

        assert main(["collection", "clusters", str(folder), "--into-store", "--database", url]) == 1
        said = capsys.readouterr()
        assert "'another'" in said.err
        assert "numbering the pages" not in said.err
        assert not (folder / "clusters" / "clusters.parquet").exists()
