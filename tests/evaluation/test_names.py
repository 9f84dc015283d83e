"""``neardup evaluate --same-name``: a detector's verdicts against the names of pages."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse

from neardup.cli.main import main
from neardup.detection.detector import Detector, DetectorOptions
from neardup.errors import ConfigurationError
from neardup.evaluation.name_scores import Judged, score_names
from neardup.evaluation.names import MOST_COMPARED, NameOptions, NameResult, judge_names
from neardup.evaluation.orders import CRAWL, FILES, ORDERS, RANDOM, in_order
from neardup.text.folders import html_files
from tests.support.places import PAGES, ROOT
from tests.support.real_pages import near_duplicates

if TYPE_CHECKING:
    from neardup.detection.verdict import Verdict

VERSIONS = r"clang-\d+/(.+)"
FORMATS = (ROOT / "docs" / "reference" / "file-formats.md").read_text()


def judged(
    *folders: Path, name: str = VERSIONS, options: DetectorOptions | None = None, **more: object
) -> NameResult:
    detector = Detector(options or DetectorOptions())
    return judge_names(folders or [PAGES], detector, NameOptions(name=name, **more))  # type: ignore[arg-type]


def page(path: Path, words: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<html><body><p>{words}</p></body></html>")
    return path


def words(first: int, number: int = 200) -> str:
    return " ".join(f"word{first + place}" for place in range(number))


@st.composite
def clusters(draw: st.DrawFn) -> list[Judged]:
    """Stars of pages with names and texts; a canonical page may be judged after its duplicates."""
    number = draw(st.integers(1, 12))
    canonical = sorted(draw(st.sets(st.integers(0, number - 1), min_size=1)))
    return [
        Judged(
            draw(st.integers(0, 4)),
            draw(st.integers(0, 4)),
            row if row in canonical else draw(st.sampled_from(canonical)),
        )
        for row in range(number)
    ]


class TestScores:
    @given(clusters(), st.integers(0, 14))
    def test_they_are_those_of_looking_at_every_pair(self, pages: list[Judged], early: int) -> None:
        pairs = list(itertools.combinations(range(len(pages)), 2))

        def same(what: str, a: int, b: int) -> bool:
            return bool(getattr(pages[a], what) == getattr(pages[b], what))

        wanted = {b for a, b in pairs if same("name", a, b)}
        scores = score_names(pages, dict.fromkeys(wanted, 0.85), early=early)

        stars = [(row, one.canonical) for row, one in enumerate(pages) if one.canonical != row]
        counted = [pair for pair in stars if same("name", *pair) or not same("text", *pair)]
        assert scores.pairs.reported == len(counted)
        assert scores.pairs.right == sum(same("name", *pair) for pair in counted)
        assert scores.pairs.wanted == len(wanted)
        found = {b for a, b in pairs if same("name", a, b) and same("canonical", a, b)}
        assert scores.pairs.found == len(found)

        joined = [pair for pair in pairs if same("canonical", *pair)]
        right = sum(same("name", *pair) for pair in joined)
        assert scores.same_text == sum(same("text", *pair) and not same("name", *pair) for pair in joined)
        assert scores.clusters.reported == len(joined) - scores.same_text
        assert scores.clusters.right == scores.clusters.found == right
        assert scores.clusters.wanted == sum(same("name", *pair) for pair in pairs)

        copies = {b for a, b in pairs if same("name", a, b) and same("text", a, b)}
        numbers = [(one.wanted, one.found) for one in scores.recalls]
        everything = (len(wanted), len(found))
        different = (len(wanted - copies), len(found - copies))
        assert numbers == [everything, different, (0, 0), *[everything] * 4]  # from .9, .8, .7, .6, .5 on

        for share, first in zip(scores.different, (0, early), strict=True):
            late = [pair for pair in stars if pair[0] >= first and not same("name", *pair)]
            assert share.pages == max(0, len(pages) - first)
            assert share.called == sum(not same("text", *pair) for pair in late)
            assert share.same_text == sum(same("text", *pair) for pair in late)

    def test_by_hand(self) -> None:
        # Versions a, a′ and a″; b, wrongly taken for a; c, with the text of a; and d, alone.
        a, b, c, d = range(4)
        pages = [Judged(a, 10, 0), Judged(b, 11, 0), Judged(a, 12, 0), Judged(c, 10, 0), Judged(d, 13, 4)]
        pages.append(Judged(a, 14, 5))

        scores = score_names(pages, {2: 0.95, 5: 0.6}, early=1)

        assert scores.pairs.precision is not None
        assert scores.pairs.precision.value == 1 / 2
        assert scores.pairs.recall is not None
        assert scores.pairs.recall.value == 1 / 2
        assert scores.same_text == 1
        numbers = [(one.wanted, one.found) for one in scores.recalls]
        assert numbers == [(2, 1), (2, 1), (1, 1), (1, 1), (1, 1), (2, 1), (2, 1)]
        assert scores.different[0][1:] == (6, 1, 1)
        assert scores.different[1][1:] == (5, 1, 1)


class TestOrders:
    FILES = html_files([PAGES])

    def order(self, name: str, seed: int = 0) -> list[Path]:
        return in_order(self.FILES, name, seed, lambda *_: None)

    @pytest.mark.parametrize("name", ORDERS)
    def test_each_has_every_page_once(self, name: str) -> None:
        assert sorted(self.order(name)) == self.FILES
        assert self.order(name) == self.order(name)

    def test_random_order_is_that_of_its_seed(self) -> None:
        assert self.order(FILES) == self.FILES != self.order(RANDOM) != self.order(RANDOM, seed=1)

    def test_a_crawl_goes_along_the_links_breadth_first(self) -> None:
        order = self.order(CRAWL)
        linked_by: dict[str, int] = {}
        for place, file in enumerate(order):
            for link in HtmlResponse(file.as_uri(), body=file.read_bytes()).css("a::attr(href)").getall():
                linked_by.setdefault(urljoin(file.as_uri(), link).partition("#")[0], place)
        linkers = [linked_by.get(file.as_uri(), place) for place, file in enumerate(order)]
        starts = [place for place, linker in enumerate(linkers) if linker >= place]

        assert linkers == sorted(linkers)
        assert order[0].name == "index.html"
        assert 4 <= len(starts) < len(order) // 3

    def test_odd_links_lead_nowhere(self, tmp_path: Path) -> None:
        hrefs = ("http://[", "b%20b.html#x", "//[", "../..", "%00", "mailto:x", "sub", "\x01", "c.html?q=1")
        start = tmp_path / "index.html"
        start.write_text("".join(f'<a href="{href}">x</a>' for href in hrefs))
        others = [page(tmp_path / name, "x") for name in ("a.html", "b b.html", "c.html", "sub/index.html")]
        files = html_files([tmp_path])

        order = in_order(files, CRAWL, 0, lambda *_: None)

        assert order == [start, others[1], others[3], others[2], others[0]]

    def test_an_unknown_order_is_named(self) -> None:
        with pytest.raises(ConfigurationError, match="no order 'size', but random, crawl, files"):
            judged(order="size")


@pytest.fixture(scope="module")
def made() -> NameResult:
    return judged(mistakes=30)


class TestVerdicts:
    def test_they_are_the_detectors_own(self) -> None:
        detector = Detector(DetectorOptions())
        verdicts: dict[str, Verdict] = {}
        for path in html_files([PAGES]):
            verdicts[path.as_uri()] = detector.examine_html(path.as_uri(), path.read_bytes())
        duplicates = {url: one.canonical_url for url, one in verdicts.items() if one.canonical_url}

        def name(url: str | None) -> str:
            assert url is not None
            return url.rpartition("/clang-")[2].partition("/")[2]

        made = judged(order=FILES)

        assert made.source["pages"] == len(verdicts) == 56
        assert made.scores.pairs.reported == len(duplicates) > 20
        assert made.scores.pairs.right == sum(name(a) == name(b) for a, b in duplicates.items())
        assert made.scores.different[0].called == sum(name(a) != name(b) for a, b in duplicates.items())
        assert made.at_first is None

    def test_settings_decide(self, made: NameResult) -> None:
        loose = judged(options=DetectorOptions(verify=0.0, max_distance=8))

        assert loose.scores.pairs.found > made.scores.pairs.found
        assert loose.scores.pairs.reported > made.scores.pairs.reported

    def test_alone_every_page_is_different(self) -> None:
        made = judged(name=".+")

        assert made.source["names"] == made.source["pages"] == 56
        assert made.scores.pairs.wanted == made.scores.pairs.right == 0
        reported = made.scores.pairs.reported
        share = made.scores.different[0]
        assert share.called == reported > 20
        # Of ten exact copies of another version, the canonical page is such a copy of three.
        assert 56 - made.source["texts"] == 10
        assert share.same_text == 3
        assert {one.kind for one in made.mistakes} == {"wrong"}

    def test_resemblances_are_the_known_ones(self, made: NameResult) -> None:
        known = near_duplicates()
        mistakes = [one for one in made.mistakes if one.kind == "missed"]

        assert mistakes
        assert [one.resemblance for one in mistakes] == sorted(
            (one.resemblance for one in mistakes), reverse=True
        )
        for one in judged(name=".+", mistakes=50).mistakes:
            pair = sorted(url.removeprefix(f"{PAGES.as_uri()}/") for url in (one.a, one.b))
            if one.resemblance < 1.0:
                assert known[pair[0], pair[1]] == pytest.approx(one.resemblance, abs=0.02)

    def test_a_missed_page_is_shown_with_the_likest_of_its_name(self, made: NameResult) -> None:
        for one in made.mistakes:
            names = {url.rpartition("/clang-")[2].partition("/")[2] for url in (one.a, one.b)}
            assert one.kind == "missed"
            assert len(names) == 1
            assert (one.a_canonical or one.a) != (one.b_canonical or one.b)
            assert one.diff

    def test_pages_in_no_order_that_matters(self, made: NameResult) -> None:
        assert judged(seed=0, mistakes=30) == made
        assert judged(seed=1).source["seed"] == 1
        assert judged(order=FILES).source["seed"] is None

    def test_progress_ends_where_the_pages_end(self) -> None:
        told: list[tuple[str, int, int]] = []
        judge_names(
            [PAGES], Detector(DetectorOptions()), NameOptions(name=".+"), lambda *said: told.append(said)
        )

        ends = {what: (done, end) for what, done, end in told}
        assert ends["pages judged"] == ends["exact resemblances"] == (56, 56)
        assert ends["pages wrongly joined"][0] == ends["pages wrongly joined"][1] > 20


class Regretful(Detector):
    """Takes back every verdict about a page of another folder than its canonical page."""

    def canonical_of(self, url: str) -> str | None:
        row = next(row for row in range(len(self.pages)) if self.pages.urls[row] == url)
        canonical = self.pages.urls[self.pages.canonical[row]]
        return canonical if canonical != url and Path(canonical).parent == Path(url).parent else None


class TestCorrections:
    def test_the_final_standing_counts(self, tmp_path: Path) -> None:
        for number, folder in enumerate(("1", "1", "2", "2")):
            page(tmp_path / folder / f"{number}.html", f"{words(0)} {number}")

        made = judge_names(
            [tmp_path], Regretful(DetectorOptions()), NameOptions(name=r"(\d)/", order=FILES, mistakes=5)
        )

        assert made.at_first is not None
        first, final = made.at_first, made.scores
        assert (first.pairs.reported, first.pairs.right, first.pairs.found) == (3, 1, 2)
        assert (final.pairs.reported, final.pairs.right, final.pairs.found) == (1, 1, 1)
        assert (first.different[0].called, final.different[0].called) == (2, 0)
        assert [(one.kind, one.b_canonical) for one in made.mistakes] == [("missed", None)]


class TestNames:
    def test_text_of_another_name_is_counted_apart(self, tmp_path: Path) -> None:
        for name in ("a", "b", "c"):
            page(tmp_path / f"{name}.html", words(0))
        page(tmp_path / "d.html", f"{words(0)} more")

        made = judged(tmp_path, name=".+", order=FILES, early=0)

        assert made.scores.pairs.reported == 1
        assert made.scores.same_text == 3
        assert made.scores.different[0][1:] == made.scores.different[1][1:] == (4, 1, 2)
        assert [one.b for one in made.mistakes] == [(tmp_path / "d.html").as_uri()]

    def test_a_group_else_the_whole_match_is_the_name(self, tmp_path: Path) -> None:
        for version, name in itertools.product("12", "ab"):
            page(tmp_path / f"v{version}" / f"{name}.html", words(ord(name) * 1000))

        def names(expression: str, *folders: Path) -> tuple[int, int]:
            source = judged(*(folders or (tmp_path,)), name=expression).source
            return source["names"], source["unnamed"]

        assert names(".+") == (4, 0)
        assert names(".+", tmp_path / "v1", tmp_path / "v2") == (2, 0)
        assert names(r"v\d/(.+)") == names(r"\w\.html") == names(r"(\w)\.(html)") == (2, 0)
        assert names(r"v\d") == (2, 0)
        # What matches nothing, or an empty text, has a name of its own.

        assert names("a.html") == names("(a.html)?$") == (3, 2)
        assert names("v1/(a)?") == (4, 3)

    def test_relative_folders_and_such_within_each_other(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.copytree(PAGES / "clang-13", tmp_path / "x" / "13")
        shutil.copytree(PAGES / "clang-14", tmp_path / "x" / "14")
        monkeypatch.chdir(tmp_path)

        both = judged(Path("x/13"), Path("x/14"), name=".+")
        within = judged(Path("x"), Path("x/14"), name=r"\d\d/(.+)")

        assert both.scores == within.scores
        assert both.source["names"] == within.source["names"] == 12

    def test_a_name_of_many_pages(self, tmp_path: Path) -> None:
        for number in range(MOST_COMPARED + 3):
            page(
                tmp_path / f"{number:02}.html",
                words(0 if number in {0, MOST_COMPARED + 2} else 1000 * number),
            )

        made = judged(tmp_path, name="html", order=FILES)

        assert made.scores.pairs.wanted == MOST_COMPARED + 2
        assert made.scores.pairs.found == 1
        # The first page is not among the latest ones.
        assert made.scores.recalls[2].wanted == 0

    def test_what_is_no_page_takes_no_part(self, tmp_path: Path) -> None:
        for name in "ab":
            page(tmp_path / f"{name}.html", words(0))
        page(tmp_path / "short.html", "three short words")
        (tmp_path / "map.html").write_text("URI: map.html.en\nContent-type: text/html")
        (tmp_path / "broken.html.gz").write_bytes(b"no gzip")
        page(tmp_path / "long.html", words(0, 2000))

        made = judged(tmp_path, name=".+", options=DetectorOptions(max_words=1000))

        left_out = {name: made.source[name] for name in ("too_short", "unjudged", "no_pages", "unreadable")}
        assert left_out == {"too_short": 1, "unjudged": 1, "no_pages": 1, "unreadable": 1}
        assert made.source["pages"] == 2
        for name in ("a", "b", "long"):
            (tmp_path / f"{name}.html").unlink()
        with pytest.raises(ConfigurationError, match="none of 3 pages could be judged"):
            judged(tmp_path, name=".+")

    def test_half_of_the_pages_and_the_early_ones(self) -> None:
        halves = [judged(half=half) for half in ("first", "second")]

        assert sum(one.source["pages"] for one in halves) == 56
        assert judged().source["early"] == 5
        assert judged(early=20).scores.different[1].pages == 36
        assert judged(early=99).scores.different[1].pages == 0

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("a(b", r"--same-name a\(b: no regular expression: missing \), .* at position 1"),
            ("a{99999999999}", "--same-name a.*: no regular expression: the repetition number is too large"),
            (
                "nowhere",
                r"finds a name in the path of none of 56 pages, such as apache/de/mod/mpm_winnt\.html",
            ),
            ("", "finds a name in the path of none of 56 pages"),
        ],
    )
    def test_wrong_expressions(self, name: str, message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            judged(name=name)

    def test_wrong_folders(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match=f"^{re.escape(str(tmp_path))} has no HTML pages$"):
            judged(PAGES, tmp_path)
        with pytest.raises(ConfigurationError, match="nowhere is not a folder"):
            judged(Path("nowhere"))


class Command:
    """``neardup evaluate --pages`` with ``--same-name``, as from the shell."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object, fails: bool = False) -> str:
        code = main(["evaluate", "--pages", str(PAGES), *map(str, arguments)])
        captured = self._capsys.readouterr()
        assert code == fails
        return captured.err if fails else captured.out


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)  # out of this project, whose settings would count
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    return Command(capsys)


def fields(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | set().union(*map(fields, value.values()))
    return set().union(*map(fields, value)) if isinstance(value, list) else set()


class TestCommand:
    def test_table(self, command: Command) -> None:
        out = command("--same-name", VERSIONS, "--mistakes", 1)

        assert out.startswith(f"names: folders {PAGES}, same_name {VERSIONS}, half -, order random, seed 0, ")
        assert "\nsettings: defaults\n" in out
        row = r"duplicate and canonical page +(\d+) +\1 +36 +\1 +100\.0 \[.*\] +\d\d\.\d \["
        assert re.search(row, out)
        assert re.search(r"\n  after the first 5 +51 +0 +0\.0 \[0\.0-7\.0\] +0\n", out)
        assert re.search(r"\nmissed: resemblance 0\.8\d\d, distance \d+\n  file:///.*\n  file:///", out)

    def test_json_has_the_documented_fields_and_no_other(self, command: Command) -> None:
        made = json.loads(command("--same-name", ".+", "--format", "json", "--early", 7, "--seed", 3))
        documented = set(re.findall(r"`(\w+)`", FORMATS[FORMATS.index("## Evaluation") :]))

        assert (made["version"], made["mode"], made["settings"]) == (1, "names", {})
        assert fields(made) <= documented
        assert (made["source"]["early"], made["source"]["seed"]) == (7, 3)
        assert made["scores"] == judged(name=".+", seed=3, early=7).scores.record()
        assert len(made["mistakes"]) == 10

    @pytest.mark.slow
    def test_settings_are_those_of_the_project_and_the_command_line(self, tmp_path: Path) -> None:
        (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = settings_of_names\n")
        (tmp_path / "settings_of_names.py").write_text("NEARDUP_VERIFY = 0.5\nNEARDUP_SCOPE = 'host'\n")

        # In a process of its own, because reading a project's settings changes the environment.
        run = [sys.executable, "-m", "neardup", "evaluate", "--pages", str(PAGES), "--same-name", VERSIONS]
        given = ["--set", "NEARDUP_VERIFY=0", "--set", "NEARDUP_MAX_DISTANCE=8", "--format", "json"]
        environment = {name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"}
        environment["PYTHONPATH"] = str(ROOT)
        out = subprocess.check_output([*run, *given], cwd=tmp_path, env=environment)
        made = json.loads(out)

        assert made["settings"] == {"NEARDUP_VERIFY": 0.0, "NEARDUP_MAX_DISTANCE": 8, "NEARDUP_SCOPE": "host"}
        options = DetectorOptions(verify=0.0, max_distance=8, scope="host")
        assert made["scores"] == judged(options=options).scores.record()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--same-name", "("], "missing ), unterminated subpattern at position 0"),
            (["--same-name", ".", "--cut", ".9"], "--cut is for --pages only"),
            (["--same-name", ".", "--plot", "x.svg"], "--plot is for PAIRS and --pages only"),
            (["--same-name", ".", "--verify", ".9"], "only; with --same-name say --set NEARDUP_VERIFY=…"),
            (["--same-name", ".", "--mistakes", "-1"], "--mistakes must not be below 0"),
            (["--same-name", ".", "--early", "-1"], "--early must not be below 0, but is -1"),
            (
                ["--same-name", ".", "--set", "VERIFY=1"],
                "--set must be given NEARDUP_…=VALUE, not 'VERIFY=1'",
            ),
            (["--same-name", ".", "--set", "NEARDUP_VERIFY"], "--set must be given NEARDUP_…=VALUE"),
            (["--same-name", ".", "--set", "NEARDUP_VERIFI=1"], "did you mean NEARDUP_VERIFY?"),
            (["--same-name", ".", "--set", "NEARDUP_VERIFY=2"], "NEARDUP_VERIFY must be a resemblance"),
            (["--order", "files"], "--order is for --same-name only"),
            (["--seed", "0"], "--seed is for --same-name only"),
            (["--set", "NEARDUP_VERIFY=1"], "--set is for --same-name only"),
        ],
    )
    def test_wrong_arguments(self, command: Command, arguments: list[str], message: str) -> None:
        assert message in command(*arguments, fails=True)

    def test_names_need_pages(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["evaluate", "pairs.jsonl", "--same-name", "x"]) == 1
        assert "--same-name needs --pages FOLDER…" in capsys.readouterr().err
