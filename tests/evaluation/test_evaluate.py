"""``neardup evaluate``: scores that can be computed by hand, real pages, and what goes wrong."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import math
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.cli import evaluate
from neardup.detection.interval import wilson
from neardup.detection.rule import VERIFY
from neardup.errors import ConfigurationError
from neardup.evaluation import counting_kernels, folder, judged, measure, mistakes
from neardup.evaluation.labelled import Side, read_pairs
from neardup.evaluation.pages import Pages, Prints
from neardup.evaluation.result import Choices, Result, Trial
from neardup.fingerprint import sketch
from neardup.text.features import Features
from neardup.text.visible_text import text_of_bytes
from tests.support.places import PAGES, ROOT
from tests.support.real_pages import near_duplicates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMATS = (ROOT / "docs" / "reference" / "file-formats.md").read_text()


def text(seed: int, words: int = 200) -> str:
    rng = random.Random(seed)
    return " ".join(f"w{rng.randrange(10_000)}" for _ in range(words))


def written(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def choices(*features: str, **more: Any) -> Choices:
    return Choices([Features(name) for name in features or ("word-tf",)], **more)


def score_of(made: Result, by: str = "fingerprint", **named: object) -> measure.Score:
    (score,) = {
        row.score
        for row in made.rows
        if row.by == by and all(row.record()[name] == value for name, value in named.items())
    }
    return score


class TestMeasure:
    # Newcombe (1998), table I, method 3.
    @pytest.mark.parametrize(
        ("count", "total", "low", "high"),
        [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
    )
    def test_wilson_is_as_published(self, count: int, total: int, low: float, high: float) -> None:
        rate = wilson(count, total)

        assert rate is not None
        assert rate.value == count / total
        assert (round(rate.low, 4), round(rate.high, 4)) == (low, high)

    @given(st.integers(1, 500), st.integers(0, 500), st.integers(0, 500))
    def test_rates_lie_in_their_intervals(self, right: int, wrong: int, missed: int) -> None:
        score = measure.Score(right + wrong, right, right + missed, right)

        for rate in (score.precision, score.recall, score.f1):
            assert rate is not None
            assert 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
        assert score.f1 is not None
        assert score.f1.value == pytest.approx(2 * right / (2 * right + wrong + missed))

    def test_interval_of_f1_holds_19_of_20_times(self) -> None:
        # True rates of right, wrong and missed among the pairs that are either; F1 is then 2 · 0.7 / (2 · 0.7
        # + 0.3).
        drawn = np.random.default_rng(1).multinomial(200, (0.7, 0.1, 0.2), size=4000)
        truth = 1.4 / 1.7
        held = 0
        for right, wrong, missed in drawn.tolist():
            rate = measure.Score(right + wrong, right, right + missed, right).f1
            assert rate is not None
            held += rate.low <= truth <= rate.high

        assert 0.935 <= held / 4000 <= 0.965

    def test_nothing_reported_or_wanted(self) -> None:
        nothing = measure.Score(0, 0, 3, 0)

        assert nothing.precision is None
        assert nothing.recall is not None
        assert nothing.f1 is None
        assert measure.Score(3, 0, 0, 0).recall is None

    @given(st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.9]), st.booleans()), min_size=1, max_size=12))
    def test_best_cut_is_that_of_all_cuts(self, drawn: list[tuple[float, bool]]) -> None:
        values, labels = np.array([v for v, _ in drawn]), np.array([label for _, label in drawn])
        best = measure.best_cut(values, labels)
        if not labels.any():
            assert best is None
            return

        def f1(cut: float) -> float:
            found = measure.score(values >= cut, labels).f1
            return found.value if found else 0.0

        assert best == max(values.tolist(), key=lambda cut: (round(f1(cut), 9), cut))

    def test_spearman(self) -> None:
        # By hand: ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4; covariance 4.5, variances 4.5 and 5.
        a, b = np.array([1.0, 2.0, 2.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0])

        assert measure.spearman(a, b) == pytest.approx(4.5 / math.sqrt(4.5 * 5.0))
        assert measure.spearman(a, -b) == pytest.approx(-4.5 / math.sqrt(4.5 * 5.0))
        assert measure.spearman(a, np.ones(4)) is None


class TestPairs:
    """Four pairs: a copy labelled 1 (found), others labelled 1 (missed), a copy labelled 0 (wrong), others
    labelled 0.
    """

    @pytest.fixture
    def four(self, tmp_path: Path) -> Path:
        return written(
            tmp_path / "four.jsonl",
            [
                {"a": text(1), "b": text(1), "label": 1},
                {"a": text(2), "b": text(3), "label": True},
                {"a_text": text(4), "b_html": f"<p>{text(4)}</p>", "label": 0},
                {"a": text(5), "b": text(6), "label": "0"},
            ],
        )

    def test_scores_by_hand(self, four: Path) -> None:
        made = judged.evaluate_pairs(four, choices())

        for score in (
            score_of(made, distance=3, verify=None),
            score_of(made, distance=7, verify=VERIFY),
            score_of(made, "resemblance", cut=0.5),
            score_of(made, "estimate", cut=0.95),
        ):
            assert score == measure.Score(reported=2, right=1, wanted=2, found=1)
            assert score.f1 is not None
            assert score.f1.value == 0.5

    def test_verification_takes_back_what_the_distance_reports(self, tmp_path: Path) -> None:
        # The same words in another order: the same fingerprint, and no shingle in common.
        words = text(1).split()
        path = written(
            tmp_path / "p.jsonl", [{"a": " ".join(words), "b": " ".join(sorted(words)), "label": 0}]
        )

        made = judged.evaluate_pairs(path, choices(verify=(0.5, 0.9)))

        assert score_of(made, distance=0, verify=None).reported == 1
        assert score_of(made, distance=24, verify=0.5).reported == 0
        assert score_of(made, distance=24, verify=0.9).reported == 0

    def test_too_short_pages_never_match(self, tmp_path: Path) -> None:
        path = written(tmp_path / "p.jsonl", [{"a": "one two three", "b": "one two three", "label": 1}])

        made = judged.evaluate_pairs(path, choices())
        lower = judged.evaluate_pairs(path, choices(), min_features=3)

        assert made.source["too_short"] == 1
        assert {row.score.reported for row in made.rows} == {0}
        assert score_of(lower, distance=0, verify=None).found == 1

    def test_mistakes_are_the_worst_and_show_the_difference(self, four: Path) -> None:
        made = judged.evaluate_pairs(four, choices(), mistakes=5)

        missed, wrong = made.mistakes
        assert (missed.kind, missed.a) == ("missed", f"{four}:2 a")
        assert (wrong.kind, wrong.resemblance, wrong.distance, wrong.diff) == ("wrong", 1.0, 0, [])
        assert any(line.startswith("-w") for line in missed.diff)
        assert missed.distance > 7

    def test_real_pages_and_their_known_resemblance(self, tmp_path: Path) -> None:
        path = tmp_path / "graded.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a_path", "b_path", "label"])
            for (a, b), resemblance in near_duplicates().items():
                writer.writerow([PAGES / a, (PAGES / b).as_uri(), resemblance])

        made = judged.evaluate_pairs(path, choices("word-tf", "shingle-3"), graded_cut=0.9)

        assert made.source["pairs"] == len(near_duplicates())
        assert made.source["duplicates"] == sum(r >= 0.9 for r in near_duplicates().values())
        # The labels are exact resemblances of the same shingles, from another reading of the page.
        assert made.source["spearman_resemblance"] > 0.98
        assert made.source["spearman_estimate"] > 0.9
        best = score_of(made, "resemblance", note="best").f1
        assert best is not None
        assert best.value > 0.98
        verified = score_of(made, features="word-tf", distance=7, verify=VERIFY)
        assert verified.recall is not None
        assert verified.recall.value == 1.0
        assert verified.reported < score_of(made, features="word-tf", distance=7, verify=None).reported

    def test_each_features_own_rule_is_marked(self, four: Path) -> None:
        made = judged.evaluate_pairs(four, choices("word-tf", "shingle-3", verify=(0.85, 0.8)))
        word, shingle = Features("word-tf"), Features("shingle-3")

        assert [row.trial for row in made.rows if row.note == "default"] == [made.default]
        assert made.default == Trial("word-tf", word.verified_max_distance, 0.85)
        assert {row.trial for row in made.rows if row.note == "own"} == {
            Trial("word-tf", word.max_distance, None),
            Trial("word-tf", word.verified_max_distance, 0.8),
            Trial("shingle-3", shingle.max_distance, None),
            Trial("shingle-3", shingle.verified_max_distance, 0.85),
            Trial("shingle-3", shingle.verified_max_distance, 0.8),
        }


class TestForms:
    def sides(self, path: Path) -> list[tuple[str, str]]:
        return [(pair.a.kind, pair.a.text()) for pair in read_pairs(path)]

    def test_jsonl_says_what_is_what_or_lets_it_be_seen(self, tmp_path: Path) -> None:
        (tmp_path / "page.html").write_text("<title>no</title><p>a page")
        (tmp_path / "note").write_text("a < b in a note")
        (tmp_path / "tagged").write_text("<b>bold</b> move")
        with gzip.open(tmp_path / "page.html.gz", "wb") as file:
            file.write(b"<p>packed")
        given_ = [
            ({"a_text": "<b>kept</b>"}, ("text", "<b>kept</b>")),
            ({"a_html": "<b>gone</b>"}, ("html", "gone")),
            ({"a": "<b>gone</b>"}, ("html", "gone")),
            ({"a": "1 < 2  and 3 > 2"}, ("text", "1 < 2 and 3 > 2")),
            ({"a": "page.html"}, ("path", "a page")),
            ({"a_path": "note"}, ("path", "a < b in a note")),
            ({"a": "tagged"}, ("path", "bold move")),
            ({"a": "page.html.gz"}, ("path", "packed")),
            ({"a": (tmp_path / "page.html").as_uri()}, ("path", "a page")),
            ({"a": "x" * 5000}, ("text", "x" * 5000)),
            ({"a": "not\0a name"}, ("text", "not\0a name")),
        ]
        rows = [{**side, "b": "b", "label": 0} for side, _ in given_]

        assert self.sides(written(tmp_path / "p.jsonl", rows)) == [expected for _, expected in given_]

    def test_csv_with_huge_fields_columns_for_both_kinds_and_a_byte_order_mark(self, tmp_path: Path) -> None:
        huge = "long " * 100_000
        out = io.StringIO(newline="")
        writer = csv.writer(out)
        writer.writerow(["a_text", "a_html", "b", "label"])
        writer.writerow([huge + '"quoted",\nnext line', "", "b", "1"])
        writer.writerow(["", "<p>html", "b", "0.0"])
        path = tmp_path / "p.csv.gz"
        path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + out.getvalue().encode()))

        first, second = read_pairs(path)

        assert first.a.text() == huge + '"quoted", next line'
        assert (first.label, first.line) == (1.0, 3)
        assert (second.a.kind, second.label, second.line) == ("html", 0.0, 4)

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("p.txt", "", "read from .jsonl, .ndjson or .csv"),
            ("p.jsonl", "", "has no pairs"),
            ("p.csv", "a,b,label\n", "has no pairs"),
            ("p.csv", "", "no column label, but nothing at all"),
            ("p.csv", "a,b\nx,y\n", "no column label, but a, b"),
            ("p.csv", "a,label\nx,1\n", "no column b_text, b_html, b_path or b, but a, label"),
            ("p.csv", "a,b,label\nx,y,2\n", "line 2: label must be 0 or 1"),
            ("p.csv", "a,b,label\nx,y\n", "line 2: label must be 0 or 1"),
            ("p.jsonl", "{", "line 1: not JSON"),
            ("p.jsonl", "\n[1]\n", r"line 2: a JSON object with a, b and label is needed, not \[1\]"),
            ("p.jsonl", '{"a": "x", "label": 1}', "line 1: one of b_text, .* is needed, not none of them"),
            ("p.jsonl", '{"a": "x", "a_html": "y", "b": "z", "label": 1}', "not a and a_html"),
            ("p.jsonl", '{"a": 1, "b": "z", "label": 1}', "line 1: a must be a text, not 1"),
            ("p.jsonl", '{"a": "x", "b": "y", "label": "yes"}', "line 1: label must be 0 or 1 .* not 'yes'"),
            ("p.jsonl", '{"a": "x", "b": "y", "label": NaN}', "label must be 0 or 1 .* not nan"),
            pytest.param(
                "p.jsonl",
                '{"a": "x", "b": "y", "label": 1' + 400 * "0" + "}",
                "line 1: label must be 0 or 1",
                id="huge label",
            ),
            pytest.param("p.jsonl", '{"a": ' + 100_000 * "[", "line 1: not JSON", id="deep"),
            pytest.param("p.jsonl", '{"a": ' + 5000 * "9" + "}", "line 1: not JSON", id="huge number"),
            ("p.jsonl", '{"a_path": "gone", "b": "y", "label": 1}', "line 1: a_path names no file: 'gone'"),
            ("p.jsonl", '{"a": "y", "b": "file://[x", "label": 1}', r"line 1: b names no file: 'file://\[x'"),
            ("p.jsonl", '{"a": "y", "b": "gone.html", "label": 1}', "line 1: b names no file: 'gone.html'"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path: Path, name: str, content: str, message: str) -> None:
        path = tmp_path / name
        path.write_text(content)

        with pytest.raises(ConfigurationError, match=message) as caught:
            list(read_pairs(path))
        assert str(path) in str(caught.value)

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "latin.csv").write_bytes("a,b,label\nä,ö,1\n".encode("latin-1"))
        (tmp_path / "broken.jsonl.gz").write_bytes(b"no gzip")
        (tmp_path / "page.html.gz").write_bytes(b"no gzip")
        pairs = written(tmp_path / "p.jsonl", [{"a": "page.html.gz", "b": "b", "label": 1}])

        for name, message in (
            ("latin.csv", "not UTF-8"),
            ("broken.jsonl.gz", "cannot be read"),
            ("none.csv", "No such"),
        ):
            with pytest.raises(ConfigurationError, match=message):
                list(read_pairs(tmp_path / name))
        with pytest.raises(ConfigurationError, match=r"p\.jsonl, line 1: .*page\.html\.gz cannot be read"):
            judged.evaluate_pairs(pairs, choices())

    def test_grades_only_where_asked_for(self, tmp_path: Path) -> None:
        path = written(tmp_path / "p.jsonl", [{"a": "x", "b": "y", "label": 2.5}])

        assert [pair.label for pair in read_pairs(path, graded=True)] == [2.5]
        with pytest.raises(ConfigurationError, match="--graded-cut"):
            list(read_pairs(path))

    @pytest.mark.parametrize("label", [10**400, "1e400", "inf"], ids=["huge", "too large", "infinite"])
    def test_grades_are_finite(self, tmp_path: Path, label: object) -> None:
        path = written(tmp_path / "p.jsonl", [{"a": "x", "b": "y", "label": label}])

        with pytest.raises(ConfigurationError, match="line 1: label must be a finite number, not "):
            list(read_pairs(path, graded=True))

    def test_same_content_has_the_same_key(self) -> None:
        assert Side("x", "text", "a").key() == Side("y", "text", "a").key() != Side("x", "html", "a").key()


@pytest.fixture(scope="module")
def made() -> Result:
    return folder.evaluate_folders([PAGES], choices("word-tf", "shingle-2"), folder.FolderOptions())


@pytest.fixture(scope="module")
def known() -> Pages:
    pages = Pages([Features()])
    for path in sorted(PAGES.rglob("*.html")):
        pages.add(path.name, text_of_bytes(path.read_bytes()))
    return pages


class TestPages:
    def test_scores_are_those_of_comparing_every_pair(self, made: Result, known: Pages) -> None:
        prints = known.prints("word-tf")
        pairs = list(itertools.combinations(range(len(known)), 2))
        exact = np.array([sketch.resemblance(known.sets[a], known.sets[b]) for a, b in pairs])
        estimates = np.array(
            [sketch.compact_estimates(prints.sketches[a : a + 1], prints.sketches[b])[0] for a, b in pairs]
        )
        distances = np.array([(int(prints.values[a]) ^ int(prints.values[b])).bit_count() for a, b in pairs])
        same = np.array([known.texts[a] == known.texts[b] for a, b in pairs])

        def score(reported: Any, among: Any) -> measure.Score:
            reported = reported & among
            found = int(np.count_nonzero(reported & (exact >= 0.9)))
            right, wanted = (
                np.count_nonzero(reported & (exact >= 0.8)),
                np.count_nonzero((exact >= 0.9) & among),
            )
            return measure.Score(int(reported.sum()), int(right), int(wanted), found)

        assert made.source["pairs"] == len(pairs)
        assert made.source["wanted"] == np.count_nonzero(exact >= 0.9)
        assert made.source["right_different"] == np.count_nonzero((exact >= 0.8) & ~same)
        for row in made.rows:
            if row.by == "fingerprint" and row.trial and row.trial.features == "word-tf":
                reported = (distances <= row.trial.distance) & (estimates >= (row.trial.verify or -1.0))
            elif row.by == "estimate" and row.cut is not None:
                reported = estimates >= row.cut
            else:
                continue
            assert row.score == score(reported, among=True | same), row
            assert row.different == score(reported, among=~same), row

    def test_copies_do_not_hide_misses(self, made: Result) -> None:
        (row,) = (
            row for row in made.rows if row.by == "fingerprint" and row.trial == Trial("word-tf", 0, None)
        )

        assert row.different is not None
        assert row.score.recall is not None
        assert row.different.recall is not None
        assert row.different.recall.value < row.score.recall.value
        assert row.different.wanted == made.source["wanted_different"] < row.score.wanted

    def test_index_finds_nothing_that_comparing_does_not(self, made: Result) -> None:
        rows = [row for row in made.rows if row.by == "index"]

        assert {row.trial for row in rows} == {
            trial
            for one in (Features("word-tf"), Features("shingle-2"))
            for trial in choices().own_trials(one)
        }
        for row in rows:
            assert row.trial
            exact = score_of(made, **row.trial._asdict())
            assert 0.9 * exact.found <= row.score.found <= exact.found
            assert row.score.wanted == exact.wanted

    def test_index_that_finds_little_is_told_from_fingerprints(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # More than one leaf of the index holds, before the pages come: only then is there a choice of leaves
        # to probe.
        first, then = tmp_path / "1", tmp_path / "2"
        first.mkdir()
        for number in range(200):
            text = " ".join(f"{number}w{word}" for word in range(60))
            first.joinpath(f"{number}.html").write_text(f"<html><body><p>{text}</p></body></html>")
        shutil.copytree(PAGES, then)
        monkeypatch.setattr(folder, "RECALL", 0.01)
        few = folder.evaluate_folders([first, then], choices(distances=(12,)), folder.FolderOptions())

        named: dict[str, Any] = {"features": "word-tf", "distance": 12, "verify": None}
        assert score_of(few, "index", **named).reported < score_of(few, **named).reported

    def test_a_cut_of_0_is_the_distance_alone(self, made: Result) -> None:
        features = Features("word-tf")
        off = Choices([features], verify=(0.0, 0.83, 0.0), distances=(3,))

        assert off.cuts == (None, 0.83)
        assert off.default == Trial("word-tf", 3, None)
        assert Choices([features], verify=(0.0,)).default == Trial("word-tf", features.max_distance, None)
        assert folder._most_differing(0.0) == folder._most_differing(None) == 1024
        again = folder.evaluate_folders([PAGES], off, folder.FolderOptions(mistakes=3))
        wanted = [row.record() | {"note": ""} for row in made.rows if row.trial == Trial("word-tf", 3, None)]
        of_none = [row.record() | {"note": ""} for row in again.rows if row.trial == off.default]
        assert wanted[0] in of_none
        assert {row.trial.verify for row in again.rows if row.trial} == {None, 0.83}
        assert all(one.distance > 3 for one in again.mistakes if one.kind == "missed")

    def test_mistakes_are_what_the_rule_gets_wrong(self, made: Result) -> None:
        strict = folder.evaluate_folders([PAGES], choices(distances=(2,)), folder.FolderOptions(mistakes=3))
        loose = folder.evaluate_folders(
            [PAGES], choices(verify=(0.0,), distances=(12,)), folder.FolderOptions(mistakes=30)
        )

        assert [m.kind for m in strict.mistakes] == ["missed"] * 3
        assert all(m.resemblance >= 0.9 and m.distance > 2 and m.diff for m in strict.mistakes)
        assert [m.resemblance for m in strict.mistakes] == sorted(
            (m.resemblance for m in strict.mistakes), reverse=True
        )
        wrong = [m.resemblance for m in loose.mistakes if m.kind == "wrong"]
        assert len(wrong) > 3
        assert wrong == sorted(wrong)
        assert wrong[-1] < 0.8
        pages = [url for m in loose.mistakes for url in (m.a, m.b)]
        assert len(pages) == len(set(pages))
        assert made.mistakes == []

    def test_what_is_no_page_takes_no_part(self, tmp_path: Path) -> None:
        for name in ("a.html", "b.html"):
            (tmp_path / name).write_text(f"<p>{text(1)}")
        (tmp_path / "short.html").write_text("<p>three short words")
        (tmp_path / "map.html").write_text("URI: map.html.en\nContent-type: text/html")
        (tmp_path / "broken.html.gz").write_bytes(b"no gzip")

        made = folder.evaluate_folders([tmp_path], choices(), folder.FolderOptions())

        counts = {
            name: made.source[name]
            for name in ("pages", "texts", "too_short", "no_pages", "unreadable", "wanted")
        }
        assert counts == {"pages": 2, "texts": 1, "too_short": 1, "no_pages": 1, "unreadable": 1, "wanted": 1}
        assert score_of(made, distance=0, verify=VERIFY).found == 1
        (tmp_path / "b.html").unlink()
        with pytest.raises(ConfigurationError, match="1 of 4 pages have 10 distinct words; two are needed"):
            folder.evaluate_folders([tmp_path], choices(), folder.FolderOptions())

    def test_halves_share_no_page_and_keep_versions_together(self) -> None:
        halves = [
            {path for path in PAGES.rglob("*.html") if folder.in_half(path, half)} for half in folder.HALVES
        ]
        names = [{path.name for path in half} for half in halves]

        assert len(halves[0]) + len(halves[1]) == 56
        assert names[0]
        assert names[1]
        assert not names[0] & names[1]
        assert folder.in_half(Path("a/x.html"), "first") == folder.in_half(Path("b/x.html.gz"), "first")
        made = folder.evaluate_folders([PAGES], choices(), folder.FolderOptions(half="second"))
        assert made.source["pages"] == len(halves[1])

    @given(st.lists(st.sets(st.integers(0, 8), min_size=1), min_size=2, max_size=8), st.data())
    def test_counting_takes_each_pair_once_however_it_is_divided(
        self, sets: list[set[int]], data: st.DataObject
    ) -> None:
        values = np.array([sum(1 << i for i in one) for one in sets], dtype=np.uint64)
        at = data.draw(st.integers(0, len(sets)))
        prints = Prints(values, np.zeros((len(sets), 64)), values[:, None].copy())
        none = counting_kernels.Truth(
            np.zeros(len(sets) + 1, dtype=np.int64),
            np.empty(0, dtype=np.int64),
            np.empty(0, dtype=np.uint8),
            np.empty(0),
        )

        histogram = counting_kernels.count_pairs(prints, none, 0, at)
        histogram += counting_kernels.count_pairs(prints, none, at, len(sets))

        expected = np.zeros((8, 65, 65), dtype=np.int64)
        for a, b in itertools.combinations(sets, 2):
            expected[0, len(a ^ b), len(a ^ b)] += 1
        assert (histogram == expected).all()


class TestDiff:
    def test_one_more_word_does_not_shift_the_rest(self) -> None:
        sentences = [f"{text(i, 20)}." for i in range(20)]

        lines = mistakes.diff(" ".join(sentences), " ".join(["More", *sentences]))

        assert sum(line.startswith("+") for line in lines) <= 2

    def test_it_ends_somewhere(self) -> None:
        lines = mistakes.diff(text(1, 5000) + " x" * 1000, text(2, 5000) + "y" * 1000)

        assert len(lines) == 25
        assert re.fullmatch(r"… \d+ more lines", lines[-1])
        assert max(map(len, lines)) <= 160


class Command:
    """The command as ``neardup evaluate`` runs it, without the other commands."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> str:
        import argparse

        parser = argparse.ArgumentParser()
        evaluate.add_arguments(parser)
        evaluate.run(parser.parse_args(list(map(str, arguments))))
        return self._capsys.readouterr().out


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


class TestCommand:
    def test_table(self, command: Command) -> None:
        out = command("--pages", PAGES, "--features", "word-tf", "--mistakes", "1", "--distance", "2,7")

        assert f"word-tf, verified at {VERIFY}\n" in out
        assert "Candidates found by the index" in out
        row = next(line for line in out.splitlines() if line.startswith("         2 "))
        assert re.search(r"2 +\d+ +100\.0 \[\d+\.\d-100\.0\] +\d\d\.\d \[", row)
        assert "missed: resemblance 0." in out
        assert f"\n  {PAGES.as_uri()}/clang-" in out

    def test_no_verification(self, command: Command, tmp_path: Path) -> None:
        pairs = written(tmp_path / "p.jsonl", [{"a": text(1), "b": text(1), "label": 1}])

        out = command(pairs, "--features", "word-tf", "--verify", "0")

        assert "default rule: word-tf, distance 3, by distance alone\n" in out
        assert out.count("\nword-tf, by distance alone") == 1
        assert "verified at" not in out

    def test_undefined_rates_are_dashes_and_controls_are_not_obeyed(
        self, command: Command, tmp_path: Path
    ) -> None:
        other = text(1) + " \x1b[2J"
        path = written(tmp_path / "p.jsonl", [{"a": text(1), "b_text": other, "label": 0}])

        out = command(path, "--features", "word-tf", "--distance", "16")

        assert re.search(r"\n +16 +1 +0\.0 \[0\.0-79\.3\] +- +-", out)
        assert "\\x1b[2J" in out
        assert "\x1b" not in out

    def test_json_has_the_documented_fields_and_no_other(self, command: Command, tmp_path: Path) -> None:
        path = written(tmp_path / "p.jsonl", [{"a": text(1), "b": text(2), "label": 3}])
        pairs = json.loads(command(path, "--graded-cut", "2", "--format", "json"))
        pages = json.loads(command("--pages", PAGES, "--format", "json", "--distance", "2"))
        documented = set(re.findall(r"`(\w+)`", FORMATS[FORMATS.index("## Evaluation") :]))

        def fields(value: object) -> set[str]:
            if isinstance(value, dict):
                return set(value) | set().union(*map(fields, value.values()))
            return set().union(*map(fields, value)) if isinstance(value, list) else set()

        assert (pairs["version"], pairs["mode"], pages["mode"]) == (1, "pairs", "pages")
        assert fields(pairs) | fields(pages) <= documented
        assert "spearman_estimate" in pairs["source"]
        assert {row["distance"] for row in pairs["rows"] if row["by"] == "fingerprint"} == set(range(25))
        assert pages["mistakes"][0]["kind"] == "missed"

    @pytest.mark.slow
    @pytest.mark.parametrize("ending", ["svg", "png"])
    def test_plot(self, command: Command, tmp_path: Path, ending: str) -> None:
        path = written(
            tmp_path / "p.jsonl",
            [{"a": text(1), "b": text(1), "label": 1}, {"a": text(2), "b": text(3), "label": 0}],
        )
        command(path, "--plot", tmp_path / f"p.{ending}")

        data = (tmp_path / f"p.{ending}").read_bytes()
        assert data.startswith(b"<?xml" if ending == "svg" else b"\x89PNG")
        assert len(data) > 10_000

    def test_without_matplotlib(
        self, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        # It is said before anything is read.
        with pytest.raises(ConfigurationError, match=r"pip install 'neardup\[plot\]'"):
            command(tmp_path / "none.jsonl", "--plot", tmp_path / "p.svg")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "either PAIRS, .* or --pages"),
            (["p.jsonl", "--pages", "x"], "either PAIRS, .* or --pages"),
            (["p.jsonl", "--graded-cut", "nan"], "--graded-cut must be a finite number, not nan"),
            (["p.jsonl", "--graded-cut", "inf"], "--graded-cut must be a finite number, not inf"),
            (["p.jsonl", "--cut", "0.9"], "--cut is for --pages only"),
            (["--pages", "x", "--graded-cut", "1"], "--graded-cut is for PAIRS only"),
            (["--pages", "x", "--cut", "0"], "--cut must be above 0 and at most 1, not 0.0"),
            (["--pages", "nowhere"], "nowhere is not a folder"),
            (["p.jsonl", "--features", "words"], "there are no features 'words'"),
            (["p.jsonl", "--features", ","], "--features and --verify must name"),
            (["p.jsonl", "--verify", "80"], "--verify must be numbers from 0 to 1 .* not '80'"),
            (["p.jsonl", "--distance", "3,17"], "--distance must be numbers from 0 to 16 .* not '17'"),
            (["p.jsonl", "--distance", "2.5"], "--distance must be numbers from 0 to 16 .* not '2.5'"),
            (["p.jsonl", "--mistakes", "-1"], "--mistakes must not be below 0"),
            (["p.jsonl", "--min-features", "0"], "--min-features must be at least 1, not 0"),
            (["p.jsonl", "--plot", "p.pdf"], "must name a file that ends in .svg or .png, not p.pdf"),
            (["p.jsonl", "--plot", "nowhere/p.svg"], "nowhere is not a folder"),
            (["p.jsonl"], "p.jsonl cannot be read: No such file"),
        ],
    )
    def test_wrong_arguments(self, command: Command, arguments: list[str], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            command(*arguments)

    @pytest.mark.slow
    def test_from_the_shell(self, tmp_path: Path) -> None:
        path = written(tmp_path / "p.jsonl", [{"a": text(1), "b": text(1), "label": 1}])
        run = [sys.executable, "-m", "neardup", "evaluate"]

        done = subprocess.run([*run, path, "--format", "json"], capture_output=True, text=True, check=True)
        failed = subprocess.run([*run, tmp_path / "x.csv"], capture_output=True, text=True, check=False)

        assert json.loads(done.stdout)["source"]["duplicates"] == 1
        assert (failed.returncode, failed.stdout) == (1, "")
        assert failed.stderr.startswith(f"neardup: {tmp_path / 'x.csv'} cannot be read")
