"""Exports and imports: whole stores from one database into another, and files that are damaged or forged."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sqlalchemy as sa

from crawler.spiders.site import SiteSpider
from neardup.cli.main import main
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.rule import Rule
from neardup.detection.verdict import Kind
from neardup.errors import ConfigurationError, DatabaseUnavailable, StoreError
from neardup.fingerprint.scheme import Scheme
from neardup.store import removal, transfer
from neardup.store.archive import formats, jsonlines, parquet
from neardup.store.archive.layout import Header
from neardup.store.host_ips import store_ips
from neardup.store.page_links import StoredLinks
from neardup.store.schema import TABLES, page_ranks
from neardup.store.statements import upsert_ip
from neardup.store.store import Store
from neardup.text.headline import of_texts
from neardup.urls.rules import Rule as UrlRule
from neardup.urls.rules import Slot
from tests.support.crawling import crawl
from tests.support.databases import BACKENDS, new_database
from tests.support.places import PAGES
from tests.support.ready_databases import ready_database
from tests.support.stores import learned, taught, write
from tests.support.verdicts import duplicate, fingerprint, page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

FORMS = ("n.jsonl", "n.jsonl.gz", "n.parquet")

RULES = len(taught(None, "a.example").to_store(all_changed=True))
"""Rows of ``url_rules``; one of ``rule_effects`` and one of ``host_ips`` come after these."""


def fill(store: Store) -> None:
    """Rows with values that are easily lost on the way; more pages than are read at once."""
    first = store.begin_crawl(spider='a "spider" – ☃', settings={"NEARDUP_ACTION": "drop"})
    drawn = np.arange(16, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    write(
        store,
        page(1, "http://a.example/" + "x" * 70_000, fingerprint=fingerprint(2**64 - 1), sketch=drawn),
        page(2, "file:///data/ü%00 \n.html", Kind.TOO_SHORT, fingerprint=None, features=0),
        duplicate(
            3,
            "http://a.example/3",
            1,
            resemblance=0.1 + 0.2,
            fingerprint=fingerprint(0),
            headline=of_texts("Title", "Heading 3"),
        ),
        *(page(n, f"http://b.example/{n}", fingerprint=fingerprint(n * 7919)) for n in range(4, 2100)),
        crawl=first,
        links={3: 7},
        flags=[1],
    )
    store.finish_crawl(first, reason="finished", counts={"pages": 2099, "recall_checked": 3})
    second = store.begin_crawl(spider="b", settings={})
    rules = taught(None, "a.example")
    rules.effects.count(UrlRule("a.example", Slot.PARAMETER, "sid"), "deferred", 3)
    write(
        store,
        duplicate(second * PAGES_PER_CRAWL + 1, "http://c.example/", 4),
        page(1, "http://a.example/" + "x" * 70_000, Kind.UNCHANGED, fingerprint=fingerprint(2**64 - 1)),
        page(5, "http://b.example/5", Kind.CHANGED, fingerprint=fingerprint(5)),
        page(5, "http://b.example/5", Kind.CHANGED, fingerprint=fingerprint(4)),
        page(2, "file:///data/ü%00 \n.html", Kind.GONE, fingerprint=None, features=0),
        crawl=second,
        history=True,
        frequencies=learned({"a.example": 3}),
        rules=rules,
        page_links={page_id: StoredLinks(b"\x04", bytes(range(128))) for page_id in (1, 5)},
    )
    with store.begin_write() as connection:
        connection.execute(sa.insert(page_ranks).values(page_id=5, pagerank=1 / 3))
        moment = datetime(2026, 1, 2, tzinfo=UTC)
        store_ips(connection, upsert_ip(store.engine.dialect.name), {("b.example", "2001:db8::1"): moment})


def rows_of(url: str) -> dict[str, list[tuple[Any, ...]]]:
    with Store.open(url, scheme=None) as store, store.reading() as connection:
        return {
            table.name: [
                tuple(row)
                for row in connection.execute(sa.select(table).order_by(*table.primary_key.columns))
            ]
            for table in TABLES
        }


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "n.db"
    with Store.open(f"sqlite:///{path}", scheme=str(Scheme())) as store:
        fill(store)
    return path


@pytest.fixture
def source(filled: Path, tmp_path: Path) -> str:
    """A filled store that is the test's own."""
    folder = tmp_path / "source"
    folder.mkdir()
    return f"sqlite:///{shutil.copy(filled, folder)}"


@pytest.fixture
def target(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/target.db"


def run(*arguments: object, code: int = 0) -> None:
    assert main([str(argument) for argument in arguments]) == code


def export(url: str, path: Path) -> Path:
    run("db", "export", path, "--database", url)
    return path


class TestRoundTrip:
    def test_through_all_databases_and_forms(self, source: str, tmp_path: Path) -> None:
        rows = rows_of(source)
        assert [len(rows[table.name]) for table in TABLES] == [2, 2100, 2, 5, 2, 1, 1, RULES, 1, 0, 0, 1]
        with (
            ready_database("postgresql", tmp_path) as first,
            ready_database("mysql", tmp_path) as second,
            ready_database("sqlite", tmp_path) as third,
        ):
            last = source
            for url, form in zip((first, second, third), ("n.jsonl", "n.parquet", "n.jsonl.gz"), strict=True):
                run("db", "import", export(last, tmp_path / form), "--database", url)
                assert rows_of(url) == rows
                last = url

    @pytest.mark.parametrize("form", FORMS)
    def test_an_empty_store(self, target: str, tmp_path: Path, form: str) -> None:
        Store.open(f"sqlite:///{tmp_path}/empty.db", scheme=None).close()

        run("db", "import", export(f"sqlite:///{tmp_path}/empty.db", tmp_path / form), "--database", target)

        assert rows_of(target) == {table.name: [] for table in TABLES}

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_the_next_crawl_gets_ids_of_its_own(self, backend: str, tmp_path: Path) -> None:
        with Store.open(f"sqlite:///{tmp_path}/source.db", scheme=str(Scheme())) as store:
            fill(store)
            second_page = page(2 * PAGES_PER_CRAWL + 2, "http://kept.example/")
            write(store, second_page, crawl=2)
            write(store, second_page, crawl=1)  # another that ran at the same time saw it, too
            list(removal.remove_crawl(store, 2, Rule(8)))
        path = export(f"sqlite:///{tmp_path}/source.db", tmp_path / "n.jsonl")
        with ready_database(backend, tmp_path) as url:
            run("db", "import", path, "--database", url)
            with Store.open(url, scheme=str(Scheme())) as store:
                assert [row[0] for row in rows_of(url)["crawls"]] == [1]
                crawl_id = store.begin_crawl(spider="next", settings={})
                assert crawl_id == 3
                next_page = duplicate(crawl_id * PAGES_PER_CRAWL + 1, "http://d.example/", 4)
                write(store, next_page, crawl=crawl_id, history=True)
            assert len(rows_of(url)["duplicate_values"]) == 2
            ids = [row[0] for row in rows_of(url)["page_versions"]]
            assert len(ids) == len(set(ids)) == 1

    @pytest.mark.parametrize("backend", BACKENDS[1:])
    def test_a_crawl_on_the_imported_store_says_the_same(self, backend: str, tmp_path: Path) -> None:
        original = f"sqlite:///{tmp_path}/original.db"
        settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_SNAPSHOT": False}
        crawl(SiteSpider, settings | {"NEARDUP_DATABASE_URL": original}, url=str(PAGES / "clang-13"))
        path = export(original, tmp_path / "n.parquet")

        def verdicts(url: str) -> list[tuple[Any, ...]]:
            done = crawl(SiteSpider, settings | {"NEARDUP_DATABASE_URL": url}, url=str(PAGES))
            return [(item.url, item.verdict, item.canonical_url, item.resemblance) for item in done.items]

        with ready_database(backend, tmp_path) as url:
            run("db", "import", path, "--database", url)
            assert verdicts(url) == verdicts(original)

    def test_memory_does_not_hold_the_store(self, source: str, tmp_path: Path) -> None:
        asked: list[int] = []
        with Store.open(source, scheme=None) as store, transfer.snapshot_of(store) as connection:
            parts = [len(rows) for _, rows in transfer.stored_rows(connection, asked.append)]

        assert parts == [2, 1000, 1000, 100, 2, 5, 2, 1, 1, RULES, 1, 1]
        assert asked == [
            2,
            1002,
            2002,
            2102,
            2104,
            2109,
            2111,
            2112,
            2113,
            2113 + RULES,
            2114 + RULES,
            2115 + RULES,
        ]


class TestExport:
    def test_rows_are_readable_without_neardup(self, source: str, tmp_path: Path) -> None:
        lines = export(source, tmp_path / "n.jsonl").read_text().splitlines()
        header, crawl_row, *rows = map(json.loads, lines)

        assert header["rows"] == {
            "crawls": 2,
            "simhash_values": 2100,
            "duplicate_values": 2,
            "page_versions": 5,
            "page_links": 2,
            "page_ranks": 1,
            "document_frequencies": 1,
            "url_rules": RULES,
            "rule_effects": 1,
            "decisions": 0,
            "page_texts": 0,
            "host_ips": 1,
        }
        assert (header["neardup"], header["scheme"]) == (1, str(Scheme()))
        assert (crawl_row["table"], crawl_row["id"]) == ("crawls", 1)
        assert rows[1]["hash_value"] == "0xffffffffffffffff"
        assert rows[2]["hash_value"] is None
        assert [
            (row["page_id"], row["hash_value"], row["own_distance"]) for row in rows[-9 - RULES : -7 - RULES]
        ] == [
            (5, "0x0000000000000005", None),
            (5, "0x0000000000000004", 1),
        ]
        assert rows[1]["first_seen"].endswith("+00:00")

    @pytest.mark.parametrize("form", FORMS)
    def test_what_is_there_is_not_overwritten(self, source: str, tmp_path: Path, form: str) -> None:
        path = export(source, tmp_path / form)

        with pytest.raises(ConfigurationError, match="is there already"):
            formats.check_new(path)

    @pytest.mark.parametrize(
        ("name", "message"),
        [("n.csv", "an export is named .jsonl, .jsonl.gz"), ("no/folder/n.jsonl", "there is no folder")],
    )
    def test_paths_that_cannot_be_written(
        self, source: str, tmp_path: Path, name: str, message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run("db", "export", tmp_path / name, "--database", source, code=1)

        assert message in capsys.readouterr().err

    @pytest.mark.parametrize("form", FORMS)
    def test_an_interrupted_one_leaves_nothing(
        self, source: str, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored_rows = transfer.stored_rows

        def interrupted(*arguments: Any) -> Iterator[Any]:
            yield next(stored_rows(*arguments))
            raise KeyboardInterrupt

        monkeypatch.setattr(transfer, "stored_rows", interrupted)
        with pytest.raises(SystemExit) as caught:
            main(["db", "export", str(tmp_path / form), "--database", source])

        assert caught.value.code == 130
        assert [path.name for path in tmp_path.iterdir()] == ["source"]

    def test_parquet_after_a_crash_starts_anew(self, source: str, tmp_path: Path) -> None:
        left = tmp_path / "n.parquet.writing"
        left.mkdir()
        (left / "crawls.parquet").write_text("torn")

        export(source, tmp_path / "n.parquet")

        assert not left.exists()

    def test_parquet_without_pyarrow(
        self, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)

        run("db", "export", tmp_path / "n.parquet", "--database", source, code=1)

        assert "pip install 'neardup[parquet]', or use .jsonl" in capsys.readouterr().err
        assert not list(tmp_path.glob("n.parquet*"))


def edited(path: Path, number: int, edit: Callable[[dict[str, Any]], object]) -> Path:
    """The export with one of its lines changed."""
    lines = path.read_text().splitlines()
    record = json.loads(lines[number - 1])
    edit(record)
    lines[number - 1] = json.dumps(record)
    path.write_text("\n".join(lines) + "\n")
    return path


class TestRefusals:
    """Line 1 is the header, lines 2 and 3 are the crawls.

    The first page is line 4, the first relation line 2104, the first version line 2106, the host line 2114.
    """

    def refused(self, path: Path, url: str, capsys: pytest.CaptureFixture[str]) -> str:
        run("db", "import", path, "--database", url, code=1)
        return capsys.readouterr().err

    @pytest.mark.parametrize(
        ("line", "edit", "message"),
        [
            (1, {"neardup": 2}, "line 1: an export of format 2"),
            (1, {"revision": "9999"}, "of tables of revision 9999, this neardup has"),
            (1, {"rows": None}, "line 1: the header of this export is damaged"),
            (1, {"scheme": "other"}, "line 2: the row is of the scheme 'word-tf/"),
            (
                1,
                {"rows": {"crawls": 2, "simhash_values": 2101, "duplicate_values": 2, "page_versions": 0,
                          "page_links": 2, "page_ranks": 1, "document_frequencies": 1, "url_rules": RULES}},
                "is not complete: 2100 rows of simhash_values",
            ),
            (
                4,
                {"table": "pages"},
                "line 4: no row of crawls, simhash_values, duplicate_values, page_versions, page_links",
            ),
            (4, {"more": 1}, "line 4: a row of simhash_values with other columns (more)"),
            (4, {"id": "1"}, "line 4: id must be integer, not '1'"),
            (4, {"id": 2**63}, "line 4: id cannot be 9223372036854775808"),
            (4, {"id": True}, "line 4: id must be integer, not True"),
            (4, {"features": None}, "line 4: features is missing"),
            (4, {"hash_value": 12}, "line 4: hash_value must be a text, not 12"),
            (4, {"hash_value": "0x1"}, "line 4: hash_value must be fingerprint, not '0x1'"),
            (4, {"first_seen": "2026-01-01T00:00:00"}, "line 4: first_seen cannot be"),
            (4, {"last_seen": "soon"}, "line 4: last_seen must be time, not 'soon'"),
            (4, {"last_seen": "0001-01-01T00:00:00+23:59"}, "line 4: last_seen cannot be"),
            (4, {"url_key": "AAAA"}, "line 4: url_key cannot be"),
            (4, {"sketch": "*"}, "line 4: sketch must be bytes, not '*'"),
            (4, {"actual_url": "http://\ud800/"}, "line 4: actual_url cannot be"),
            (4, {"host": "x" * 300}, "line 4: host cannot be"),
            (5, {"id": 1}, "line 5: the database refuses the row"),
            (9, {"crawl_id": 77}, "line 9: the database refuses the row"),
            (2104, {"percentage": float("nan")}, "line 2104: percentage cannot be nan"),
            (2105, {"duplicate_hash_id": 3}, "line 2105: the database refuses the row"),
            (2106, {"own_distance": "2"}, "line 2106: own_distance must be integer, not '2'"),
            (2107, {"page_id": 77_777}, "line 2107: the database refuses the row"),
            (2114, {"pages": "many"}, "line 2114: pages must be integer, not 'many'"),
            (2114, {"counts": 5}, "line 2114: counts must be a text, not 5"),
        ],
    )  # fmt: skip
    def test_wrong_rows_are_named_and_nothing_is_imported(
        self, source: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
        line: int, edit: dict[str, Any], message: str,
    ) -> None:  # fmt: skip
        path = edited(export(source, tmp_path / "n.jsonl"), line, lambda record: record.update(edit))

        assert message in self.refused(path, target, capsys)
        assert rows_of(target) == {table.name: [] for table in TABLES}

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_a_row_that_the_database_refuses_is_named_on_all_databases(
        self, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], backend: str
    ) -> None:
        path = edited(export(source, tmp_path / "n.jsonl"), 1700, lambda record: record.update(id=5))

        with ready_database(backend, tmp_path) as url:
            error = self.refused(path, url, capsys)
            assert f"{path}, line 1700: the database refuses the row" in error
            assert rows_of(url) == {table.name: [] for table in TABLES}

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "line 1: no JSON"),
            (b"<html>\n", "line 1: no JSON"),
            (b"\xff\xfe\n", "line 1: no JSON"),
            (b'{"a": 1}\n', "line 1: this is no export of neardup"),
            (b"[1]\n", "line 1: this is no export of neardup"),
            (b'{"neardup": 1', "line 1: the line is cut off"),
        ],
    )
    def test_foreign_files(
        self, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
    ) -> None:
        path = tmp_path / "n.jsonl"
        path.write_bytes(content)

        assert message in self.refused(path, target, capsys)

    def test_numbers_too_large_and_nesting_too_deep(
        self, source: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = export(source, tmp_path / "n.jsonl")
        whole = path.read_bytes()

        edited(path, 2104, lambda record: record.update(percentage=10**400))
        assert "line 2104: percentage cannot be 1000" in self.refused(path, target, capsys)
        path.write_bytes(whole + b"[" * 100_000 + b"\n")
        assert "no JSON: maximum recursion depth" in self.refused(path, target, capsys)

    def test_missing(self, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for form in FORMS:
            error = self.refused(tmp_path / form, target, capsys)
            assert "cannot be read" in error
            assert "No such file" in error

    def test_cut_off(
        self, source: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = export(source, tmp_path / "n.jsonl")
        whole = path.read_bytes()
        path.write_bytes(whole[:-100])
        assert f"line {2116 + RULES}: the line is cut off" in self.refused(path, target, capsys)
        path.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
        assert "not complete: 0 rows of host_ips, its header says 1" in self.refused(path, target, capsys)
        assert rows_of(target) == {table.name: [] for table in TABLES}

    @pytest.mark.parametrize("damage", ["cut off", "flipped", "not packed"])
    def test_packed_and_damaged(
        self, source: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
    ) -> None:
        path = export(source, tmp_path / "n.jsonl.gz")
        whole = bytearray(path.read_bytes())
        half = len(whole) // 2
        changed = {
            "cut off": bytes(whole[:half]),
            "flipped": bytes(whole[:half])
            + bytes(byte ^ 255 for byte in whole[half : half + 50])
            + bytes(whole[half + 50 :]),
            "not packed": gzip.decompress(bytes(whole)),
        }
        path.write_bytes(changed[damage])

        assert f"{path}, line " in self.refused(path, target, capsys)
        run("db", "import", export(source, tmp_path / "whole.jsonl.gz"), "--database", target)

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_a_database_that_is_not_empty(
        self, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], backend: str
    ) -> None:
        path = export(source, tmp_path / "n.jsonl")
        with ready_database(backend, tmp_path) as url:
            run("db", "import", path, "--database", url)
            capsys.readouterr()

            run("db", "import", path, "--database", url, code=1)

            assert "is not empty: crawls has rows" in capsys.readouterr().err

    def test_tables_that_are_not_made(
        self, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = export(source, tmp_path / "n.jsonl")
        with new_database("postgresql", tmp_path) as url:
            run("db", "import", path, "--database", url, code=1)

        assert "run: neardup db upgrade" in capsys.readouterr().err

    def test_full_disk_is_named(self, source: str, target: str, tmp_path: Path) -> None:
        archive = formats.open_archive(export(source, tmp_path / "n.jsonl"), transfer.EXPORTED)
        with Store.open(target, scheme=archive.header.scheme) as store:
            sa.event.listen(store.engine, "connect", lambda c, _: c.execute("PRAGMA max_page_count = 60"))
            store.engine.dispose()

            with pytest.raises(DatabaseUnavailable, match="cannot be used: database or disk is full"):
                transfer.import_rows(store, archive, lambda _: None)

    def test_an_interrupted_import_leaves_nothing(self, source: str, target: str, tmp_path: Path) -> None:
        archive = formats.open_archive(export(source, tmp_path / "n.jsonl"), transfer.EXPORTED)

        def progress(done: int) -> None:
            if done > 1500:
                raise KeyboardInterrupt

        with Store.open(target, scheme=None) as store, pytest.raises(KeyboardInterrupt):
            transfer.import_rows(store, archive, progress)

        assert rows_of(target) == {table.name: [] for table in TABLES}


class TestParquet:
    def test_files_of_two_exports(
        self, source: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        one, other = (export(source, tmp_path / f"{name}.parquet") for name in "ab")
        (other / "crawls.parquet").replace(one / "crawls.parquet")

        run("db", "import", one, "--database", target, code=1)

        assert "all files must be of one" in capsys.readouterr().err

    @pytest.mark.parametrize("damage", ["torn", "foreign", "other columns", "a byte"])
    def test_damaged(
        self, source: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
    ) -> None:
        import pyarrow as pa
        from pyarrow import parquet as files

        path = export(source, tmp_path / "n.parquet")
        file = path / "simhash_values.parquet"
        whole = file.read_bytes()
        if damage == "torn":
            file.write_bytes(whole[: len(whole) // 2])
        elif damage == "foreign":
            files.write_table(pa.table({"id": [1]}), file)
        elif damage == "other columns":
            table = files.read_table(file)
            files.write_table(table.drop_columns(["sketch"]), file)
        else:
            file.write_bytes(whole[:200] + bytes(byte ^ 255 for byte in whole[200:260]) + whole[260:])

        run("db", "import", path, "--database", target, code=1)

        error = capsys.readouterr().err
        assert str(file) in error
        messages = {
            "torn": "is not a Parquet file, or is damaged",
            "foreign": "this is no export of neardup",
            "other columns": "has other columns than this neardup exports",
            "a byte": "",
        }
        assert messages[damage] in error
        assert not any(_rows_if_any(target).values())

    def test_a_wrong_row_is_named(
        self, source: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        import pyarrow as pa
        from pyarrow import parquet as files

        path = export(source, tmp_path / "n.parquet")
        table = files.read_table(path / "simhash_values.parquet")
        rows = table.to_pylist()
        rows[1234]["weak_bits"] = b"short"
        changed = pa.Table.from_pylist(rows, schema=table.schema)
        files.write_table(changed, path / "simhash_values.parquet")

        run("db", "import", path, "--database", target, code=1)

        assert "simhash_values.parquet, row 1235: weak_bits cannot be b'short'" in capsys.readouterr().err

    def test_small_batches_become_large_groups(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from datetime import UTC, datetime

        from pyarrow import parquet as files

        monkeypatch.setattr(parquet, "_ROWS_OF_A_GROUP", 10)
        values = {"time": datetime(2026, 1, 1, tzinfo=UTC), "text": "x", "integer": 1}
        table = transfer.EXPORTED[0]
        row = tuple(values[column.kind.value] for column in table.columns)
        header = Header(revision="r", scheme=None, rows={})

        parquet.save(tmp_path / "n.parquet", header, transfer.EXPORTED, [(table, [row] * 4)] * 6)

        found = files.ParquetFile(tmp_path / "n.parquet" / "crawls.parquet").metadata
        assert [found.row_group(number).num_rows for number in range(found.num_row_groups)] == [12, 12]


def _rows_if_any(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """No rows if the import has not even made the database."""
    from pathlib import Path

    return rows_of(url) if Path(url.removeprefix("sqlite:///")).exists() else {}


def test_every_line_is_read_once(source: str, tmp_path: Path) -> None:
    archive = jsonlines.JsonLines(export(source, tmp_path / "n.jsonl"), transfer.EXPORTED)
    sizes = [
        (batch.table, len(batch.rows), batch.places[0].rpartition(" ")[2]) for batch in archive.batches()
    ]

    assert sizes == [
        ("crawls", 2, "2"), ("simhash_values", 1000, "4"), ("simhash_values", 1000, "1004"),
        ("simhash_values", 100, "2004"), ("duplicate_values", 2, "2104"), ("page_versions", 5, "2106"),
        ("page_links", 2, "2111"), ("page_ranks", 1, "2113"),
        ("document_frequencies", 1, "2114"), ("url_rules", RULES, "2115"),
        ("rule_effects", 1, str(2115 + RULES)), ("host_ips", 1, str(2116 + RULES)),
    ]  # fmt: skip


def test_an_import_refuses_rows_under_its_transaction(source: str, target: str, tmp_path: Path) -> None:
    archive = formats.open_archive(export(source, tmp_path / "n.jsonl"), transfer.EXPORTED)
    with Store.open(target, scheme=str(Scheme())) as store:
        store.begin_crawl(spider="s", settings={})

        with pytest.raises(StoreError, match="is not empty: crawls has rows"):
            transfer.import_rows(store, archive, lambda done: None)
