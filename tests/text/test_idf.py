"""Tables of document frequencies: learning, files, and the command that makes them."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.spiders.site import SiteSpider
from neardup.cli import learn_idf, progress
from neardup.cli.main import main
from neardup.detection.detector import Detector, DetectorOptions
from neardup.errors import ConfigurationError
from neardup.fingerprint.reader import ReadingSeconds
from neardup.text import idf
from neardup.text.features import HASH, Features, hash_feature
from neardup.text.idf import Frequencies, Learner
from tests.support.crawling import Page, crawl, serve
from tests.support.places import PAGES

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable
    from pathlib import Path


def table(**changes: Any) -> Frequencies:
    hashes = np.array([3, 5, 2**63 + 1], dtype=np.uint64)
    made = Frequencies("few", 10, "", HASH, hashes, np.array([1, 10, 4], dtype=np.uint32))
    return replace(made, **changes)


def learn(pages: Iterable[list[int]], min_pages: int = 1) -> Frequencies:
    learner = Learner()
    for page in pages:
        words = np.array(page, dtype=np.uint64)
        learner.add(words, np.unique(words))
    return learner.frequencies("t", modifiers="", hashed_by=HASH, min_pages=min_pages)


def counts(made: Frequencies) -> dict[int, int]:
    return dict(zip(made.hashes.tolist(), made.frequencies.tolist(), strict=True))


class TestWeights:
    def test_formula_of_robertson_and_sparck_jones_made_positive(self) -> None:
        asked = np.array([5, 2**63 + 1, 4, 3, 0, 2**64 - 1, 5], dtype=np.uint64)

        weights = table().weights(asked)

        assert weights == pytest.approx(
            [math.log(1 + (10 - found + 0.5) / (found + 0.5)) for found in (10, 4, 0, 1, 0, 0, 10)]
        )
        assert weights.min() > 0
        assert table().weights(asked[:0]).shape == (0,)

    @given(st.integers(1, 10**9), st.data())
    def test_rarer_words_weigh_more_and_none_nothing(self, pages: int, data: st.DataObject) -> None:
        rarer, commoner = sorted(data.draw(st.lists(st.integers(1, pages), min_size=2, max_size=2)))
        hashes = np.array([1, 2], dtype=np.uint64)
        made = Frequencies("t", pages, "", HASH, hashes, np.array([rarer, commoner], dtype=np.uint32))

        unknown, of_rarer, of_commoner = made.weights(np.array([0, 1, 2], dtype=np.uint64))

        assert unknown > of_rarer >= of_commoner > 0


class TestLearner:
    @given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=20), st.integers(1, 3))
    def test_counts_pages_by_word(self, pages: list[list[int]], min_pages: int) -> None:
        different = {tuple(page) for page in pages if page}
        expected = {word: sum(word in page for page in different) for word in range(10)}
        expected = {word: count for word, count in expected.items() if count >= min_pages}

        if expected:
            assert counts(learn(pages, min_pages)) == expected
            assert learn(pages, min_pages).pages == len(different)
        else:
            with pytest.raises(
                ConfigurationError, match=f"no word stands in {min_pages} of the {len(different)} "
            ):
                learn(pages, min_pages)

    def test_exact_copies_count_once_but_another_order_is_another_page(self) -> None:
        assert counts(learn([[1, 2], [1, 2], [2, 1], [1, 1, 2]])) == {1: 3, 2: 3}

    def test_merged_in_between(self, monkeypatch: pytest.MonkeyPatch) -> None:
        generator = random.Random(0)
        pages = [[generator.randrange(50) for _ in range(20)] for _ in range(100)]
        expected = counts(learn(pages))

        monkeypatch.setattr(idf, "_MERGE_AT", 30)

        assert counts(learn(pages)) == expected

    def test_order_of_pages_does_not_matter(self) -> None:
        pages = [[1, 2], [2, 3], [3, 4, 5]]

        assert learn(pages).identity == learn(reversed(pages)).identity


class TestIdentity:
    def test_golden(self) -> None:
        # Stored with fingerprints: it must stay what it is.
        assert table().identity == "few@f77cd7c0"

    @pytest.mark.parametrize(
        "changes",
        [
            {"pages": 11},
            {"modifiers": "+icu"},
            {"hashed_by": "md5"},
            {"hashes": np.array([3, 5, 6], dtype=np.uint64)},
            {"frequencies": np.array([1, 9, 4], dtype=np.uint32)},
        ],
    )
    def test_changes_with_all_that_weights_depend_on(self, changes: dict[str, Any]) -> None:
        assert table(**changes).identity != table().identity

    def test_name_is_part_of_it(self) -> None:
        assert table(name="other").digest == table().digest
        assert table(name="other").identity == table().identity.replace("few", "other")

    @pytest.mark.parametrize("name", ["", "a b", "a+b", "a@b", "a/b", ".a", "ä", "a" * 33, "a\n"])
    def test_names_that_a_scheme_cannot_have(self, name: str) -> None:
        with pytest.raises(ConfigurationError, match="a table cannot be named"):
            table(name=name)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"pages": 9}, "frequencies must be from 1 to the 9 pages"),
            ({"frequencies": np.array([0, 1, 1], dtype=np.uint32)}, "frequencies must be from 1"),
            ({"frequencies": np.array([1, 1], dtype=np.uint32)}, "a frequency for each"),
            ({"frequencies": np.array([1, 1, 1], dtype=np.int64)}, "frequencies uint32"),
            ({"hashes": np.array([1, 2, 3], dtype=np.int64)}, "must be uint64"),
            ({"hashes": np.array([1, 3, 2], dtype=np.uint64)}, "distinct and ascending"),
            ({"hashes": np.array([1, 2, 2], dtype=np.uint64)}, "distinct and ascending"),
            ({"hashes": np.ones((3, 1), dtype=np.uint64)}, "distinct and ascending"),
            ({"hashes": np.array([], dtype=np.uint64)}, "there must be words"),
            ({"modifiers": []}, "modifiers and the hash must be texts"),
            ({"hashed_by": None}, "modifiers and the hash must be texts"),
            ({"pages": 2**32}, "4294967295 pages at most"),
            ({"pages": 10**400}, "4294967295 pages at most"),
        ],
    )
    def test_impossible_tables(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            table(**changes)


class TestFiles:
    def test_what_is_saved_is_loaded(self, tmp_path: Path) -> None:
        made = learn([[1, 2, 2**64 - 1], [2, 3]])
        made.save(tmp_path / "t.npz")

        again = idf.load(tmp_path / "t.npz")

        assert counts(again) == counts(made)
        assert (again.name, again.pages, again.modifiers, again.hashed_by) == ("t", 2, "", HASH)
        assert again.identity == made.identity
        assert [path.name for path in tmp_path.iterdir()] == ["t.npz"]

    def test_home_is_found(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        table().save(tmp_path / "t.npz")

        assert idf.load("~/t.npz").name == "few"

    @pytest.mark.parametrize("position", range(0, 1000, 7))
    def test_a_changed_byte_is_noticed_or_does_not_matter(self, position: int, tmp_path: Path) -> None:
        file = tmp_path / "t.npz"
        table().save(file)
        data = bytearray(file.read_bytes())
        data[position % len(data)] ^= 0xFF
        file.write_bytes(data)

        try:
            again = idf.load(file)
        except ConfigurationError as exc:
            assert str(file) in str(exc)  # noqa: PT017
        else:
            assert again.digest == table().digest

    @pytest.mark.parametrize("length", [0, 1, 100, 400, -1])
    def test_a_part_of_a_file(self, length: int, tmp_path: Path) -> None:
        file = tmp_path / "t.npz"
        table().save(file)
        file.write_bytes(file.read_bytes()[:length])

        with pytest.raises(ConfigurationError, match=r"t\.npz .*table of frequencies"):
            idf.load(file)

    @pytest.mark.parametrize(
        "arrays",
        [
            {},
            {"values": np.ones(3)},
            {"meta": np.ones(3), "hashes": np.ones(3), "frequencies": np.ones(3)},
            {"meta": np.frombuffer(b"[]", np.uint8), "hashes": np.ones(3), "frequencies": np.ones(3)},
            {"meta": np.frombuffer(b"{}", np.uint8), "hashes": np.ones(3), "frequencies": np.ones(3)},
            {"meta": np.array([{"an": "object"}]), "hashes": np.ones(3), "frequencies": np.ones(3)},
        ],
        ids=["nothing", "fingerprints", "no JSON", "a list", "an empty object", "pickled"],
    )
    def test_foreign_archives(self, arrays: dict[str, Any], tmp_path: Path) -> None:
        np.savez(tmp_path / "t.npz", **arrays)

        with pytest.raises(
            ConfigurationError, match="is not a table of frequencies as neardup learn-idf makes"
        ):
            idf.load(tmp_path / "t.npz")

    @pytest.mark.parametrize("data", [b"", b"\0" * 99, b"name,count\n", pickle.dumps({"a": 1})])
    def test_foreign_files(self, data: bytes, tmp_path: Path) -> None:
        (tmp_path / "t.npz").write_bytes(data)

        with pytest.raises(ConfigurationError, match="is not a table of frequencies"):
            idf.load(tmp_path / "t.npz")

    def test_a_single_array(self, tmp_path: Path) -> None:
        np.save(tmp_path / "t.npy", np.ones(3))

        with pytest.raises(ConfigurationError, match="is not a table of frequencies"):
            idf.load(tmp_path / "t.npy")

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"format": 2}, "has format 2, and this neardup reads format 1"),
            ({"pages": 12}, "its digest does not fit"),
            ({"modifiers": "+icu"}, "its digest does not fit"),
            ({"digest": "0"}, "its digest does not fit"),
            ({"pages": 3}, "from 1 to the 3 pages"),
            ({"name": "a b"}, "cannot be named"),
            ({"modifiers": []}, "must be texts"),
            ({"hashed_by": 5}, "must be texts"),
            ({"pages": 10**400}, "4294967295 pages at most"),
        ],
    )
    def test_changed_meta(self, changes: dict[str, Any], message: str, tmp_path: Path) -> None:
        file = tmp_path / "t.npz"
        self.save_with_meta(file, changes)

        with pytest.raises(ConfigurationError, match=f"damaged or foreign: .*{message}"):
            idf.load(file)

    @pytest.mark.parametrize(
        "changes",
        [{"pages": math.inf}, {"pages": math.nan}, {"pages": []}, {"pages": None}, {"name": []}, {"name": 1}],
    )
    def test_meta_of_other_types(self, changes: dict[str, Any], tmp_path: Path) -> None:
        file = tmp_path / "t.npz"
        self.save_with_meta(file, changes)

        with pytest.raises(ConfigurationError, match="is not a table of frequencies"):
            idf.load(file)

    def test_odd_archives(self, tmp_path: Path) -> None:
        file = tmp_path / "t.npz"
        deep = np.frombuffer(b"[" * 100_000, dtype=np.uint8)
        np.savez(file, meta=deep, hashes=np.ones(3), frequencies=np.ones(3))
        with pytest.raises(ConfigurationError, match="is not a table of frequencies"):
            idf.load(file)

        np.savez_compressed(file, meta=np.zeros(10_000))
        data = bytearray(file.read_bytes())
        data[60:80] = b"\xff" * 20
        file.write_bytes(data)
        with pytest.raises(ConfigurationError, match="is not a table of frequencies"):
            idf.load(file)

    def save_with_meta(self, file: Path, changes: dict[str, Any]) -> None:
        table().save(file)
        with np.load(file) as data:
            arrays = dict(data)
        meta = json.loads(arrays["meta"].tobytes()) | changes
        arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
        np.savez(file, **arrays)

    def test_a_detector_does_not_read_the_table_again(self, tmp_path: Path) -> None:
        file = tmp_path / "t.npz"
        table().save(file)
        options = DetectorOptions(features=f"word-tfidf:{file}")
        reader = options.make_reader()
        file.unlink()

        detector = Detector(options, reader=reader)

        assert detector.reader is reader
        assert reader.seconds == ReadingSeconds()

    def test_missing_file_and_folder(self, tmp_path: Path) -> None:
        for path in (tmp_path / "none.npz", tmp_path):
            with pytest.raises(ConfigurationError, match="neardup learn-idf makes them"):
                idf.load(path)
        with pytest.raises(ConfigurationError, match="cannot be written: No such file"):
            table().save(tmp_path / "none" / "t.npz")

    def test_a_failure_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "t.npz"
        table().save(file)

        def full(out: io.BufferedWriter, **_: object) -> None:
            out.write(b"half")
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(np, "savez", full)
        with pytest.raises(ConfigurationError, match="cannot be written: No space left"):
            table(name="new").save(file)

        assert idf.load(file).name == "few"
        assert [path.name for path in tmp_path.iterdir()] == ["t.npz"]


class TestCommand:
    """``neardup learn-idf``."""

    def test_folders(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = tmp_path / "manuals.npz"

        assert main(["learn-idf", str(PAGES), str(PAGES / "apache"), "--out", str(out)]) == 0

        captured = capsys.readouterr()
        made = idf.load(out)
        assert "56 pages: 46 different, 10 copies or without words, 0 left out" in captured.err
        assert f"{out}: {made.identity}, {made.hashes.size:,} words of 46 different pages" in captured.out
        assert f"features: word-tfidf:{out}\n" in captured.out
        assert (made.name, made.pages, made.modifiers) == ("manuals", 46, "")
        assert int(made.frequencies.min()) == 2
        assert counts(made)[hash_feature("the")] > counts(made)[hash_feature("compiler")] > 2
        assert Features(f"word-tfidf:{out}").name == f"word-tfidf:{made.identity}"

    def test_options(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = tmp_path / "t.npz"
        options = ["--name", "n", "--min-pages", "5", "--modifiers", "stem-porter+stop-english"]

        assert main(["learn-idf", str(PAGES), "--out", str(out), *options]) == 0

        made = idf.load(out)
        assert (made.name, made.modifiers) == ("n", "+stop-english+stem-porter")
        assert f"features: word-tfidf:{out}+stop-english+stem-porter\n" in capsys.readouterr().out
        assert int(made.frequencies.min()) == 5
        assert {hash_feature("the"), hash_feature("compiler")}.isdisjoint(counts(made))
        assert hash_feature("compil") in counts(made)

    def test_unreadable_pages_are_left_out(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for name in ("a.html", "b.html", "c.html.gz"):
            (tmp_path / name).write_text(f"<p>page {name}")
        (tmp_path / "d.html").write_text("")

        assert main(["learn-idf", str(tmp_path), "--out", str(tmp_path / "t.npz")]) == 0

        error = capsys.readouterr().err
        assert f"neardup: {tmp_path / 'c.html.gz'} is left out: " in error
        assert "4 pages: 2 different, 1 copies or without words, 1 left out" in error
        assert counts(idf.load(tmp_path / "t.npz")) == {hash_feature("page"): 2, hash_feature("html"): 2}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["{}/none", "--out", "{}/t.npz"], "none is not a folder"),
            (["{}", "--out", "{}/t.npz"], "no HTML page below"),
            (["--out", "{}/t.npz"], "either folders or --from-store"),
            (["{}", "--from-store", "--out", "{}/t.npz"], "either folders or --from-store"),
            (["{}", "--out", "{}/none/t.npz"], "none is not a folder"),
            (["{}", "--out", "{}/a b.npz"], "a table cannot be named 'a b'"),
            (["{}", "--out", "{}/t.npz", "--name", ""], "a table cannot be named ''"),
            (["{}", "--out", "{}/t.npz", "--modifiers", "stem-x"], "stem-LANGUAGE can be"),
            (["{}", "--out", "{}/t.npz", "--modifiers", "porter"], "there are no features"),
            (["--from-store", "--out", "{}/t.npz", "--database", "sqlite:///{}/n.db"], "n.db"),
        ],
    )
    def test_errors(
        self, arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["learn-idf", *(argument.format(tmp_path) for argument in arguments)]) == 1

        assert message in capsys.readouterr().err
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("option", ["--min-pages", "--limit"])
    def test_counts_are_checked(self, option: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            main(["learn-idf", ".", "--out", "t.npz", option, "0"])

        assert "'0' is not a whole number of at least 1" in capsys.readouterr().err

    def test_interrupted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        asked: list[Path] = []

        def interrupted(path: Path) -> bytes:
            asked.append(path)
            if len(asked) == 5:
                raise KeyboardInterrupt
            return path.read_bytes()

        monkeypatch.setattr(learn_idf, "read_page", interrupted)
        with pytest.raises(SystemExit) as stopped:
            main(["learn-idf", str(PAGES), "--out", str(tmp_path / "t.npz")])

        assert stopped.value.code == 130
        assert "t.npz is not written" in capsys.readouterr().err
        assert not list(tmp_path.iterdir())

    def test_progress(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(progress, "_BETWEEN_SECONDS", 0.0)
        monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)

        assert main(["learn-idf", str(PAGES / "apache"), "--out", str(tmp_path / "t.npz")]) == 0

        assert "7 of 8 pages, " in capsys.readouterr().err

    @pytest.mark.slow
    def test_from_store(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        url = f"sqlite:///{tmp_path}/n.db"
        crawl(SiteSpider, {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": url}, url=str(PAGES))
        out = tmp_path / "t.npz"

        assert main(["learn-idf", "--from-store", "--database", url, "--out", str(out)]) == 0
        error = capsys.readouterr().err
        assert main(["learn-idf", "--from-store", "--database", url, "--out", str(out), "--limit", "3"]) == 0

        assert idf.load(out).pages == 3
        assert "pages: " in error
        assert 20 <= int(error.split(" pages: ")[1].split()[0]) <= 40  # canonical pages only

    def test_from_store_over_http(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        slept: list[float] = []
        url = f"sqlite:///{tmp_path}/n.db"
        settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": url}
        monkeypatch.setattr("time.sleep", slept.append)
        bodies = [page.read_bytes() for page in sorted((PAGES / "apache").rglob("*.html"))[:4]]
        with serve() as site:
            site.pages = {f"/{number}": Page(body) for number, body in enumerate(bodies)}
            crawl(SiteSpider, settings, url=",".join(f"{site.url}/{number}" for number in range(4)))
            del site.pages["/3"]
            options = [
                "--from-store",
                "--database",
                url,
                "--out",
                str(tmp_path / "t.npz"),
                "--min-pages",
                "1",
            ]
            assert main(["learn-idf", *options]) == 0

        assert idf.load(tmp_path / "t.npz").pages == 3
        assert f"neardup: {site.url}/3 is left out: " in capsys.readouterr().err
        assert len(slept) == 3
        assert max(slept) <= 1.0


def test_digest_is_that_of_the_values_in_little_endian_order() -> None:
    few = table()
    digest = hashlib.sha256(f'[10, "", "{HASH}"]'.encode())
    digest.update(b"".join(value.to_bytes(8, "little") for value in few.hashes.tolist()))
    digest.update(b"".join(value.to_bytes(4, "little") for value in few.frequencies.tolist()))

    assert few.digest == digest.hexdigest()
