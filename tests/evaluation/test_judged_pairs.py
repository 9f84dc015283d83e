"""The pairs that people would agree on, made of real pages, and the benchmarks that judge them."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from benchmarks import judged_pairs
from neardup.evaluation.judged import evaluate_pairs
from neardup.evaluation.result import Choices
from neardup.text.features import Features
from tests.support.places import PAGES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.judged_pairs import Pair

VERSIONS = [PAGES / f"clang-{version}" for version in range(13, 17)]
MOST = 8
SITES = ("--site", f"clang={','.join(map(str, VERSIONS))}", "--translated", f"apache={PAGES / 'apache'}")


@pytest.fixture(scope="module")
def pairs() -> dict[str, list[Pair]]:
    """The pairs by kind."""
    clang = judged_pairs.load("clang", VERSIONS, "")
    apache = judged_pairs.load("apache", [PAGES / "apache"], "", translated=True)
    found = defaultdict(list)
    for pair in judged_pairs.all_pairs([clang, apache], MOST):
        found[pair.kind].append(pair)
    return dict(found)


def texts(pair: Pair) -> tuple[bytes, bytes]:
    return pair.a.text, pair.b.text


def test_pages_of_one_path_are_the_same_and_have_changed(pairs: dict[str, list[Pair]]) -> None:
    versions = pairs["version"] + pairs["revised"]

    assert len(versions) > MOST
    assert all(pair.same and pair.a.name == pair.b.name for pair in versions)
    assert all(pair.a.text != pair.b.text for pair in versions)


@pytest.mark.parametrize("kind", ["items, nearest", "items, any", "lists, nearest", "translations"])
def test_real_pages_of_other_paths_are_different(kind: str, pairs: dict[str, list[Pair]]) -> None:
    assert pairs[kind]
    assert not any(pair.same or pair.a.name == pair.b.name for pair in pairs[kind])


def test_the_nearest_page_is_at_least_as_like_as_any(pairs: dict[str, list[Pair]]) -> None:
    nearest = {pair.b.url: pair for pair in pairs["items, nearest"]}
    compared = [(nearest[pair.b.url], pair) for pair in pairs["items, any"]]

    def alike(pair: Pair) -> float:
        return len(set(pair.a.shingles) & set(pair.b.shingles)) / len(
            set(pair.a.shingles) | set(pair.b.shingles)
        )

    assert compared
    # The nearest is told from sketches.
    assert all(alike(near) >= alike(other) - 0.1 for near, other in compared)


@pytest.mark.parametrize("kind", judged_pairs.CORRECT)
def test_correct_pairs_differ_in_nothing_else(kind: str, pairs: dict[str, list[Pair]]) -> None:
    assert len(pairs[kind]) == MOST
    for pair in pairs[kind]:
        a, b = (text.split() for text in texts(pair))
        same_place = sum(one == other for one, other in zip(a, b, strict=True))
        assert pair.same
        assert len(a) - same_place <= 20
        assert (a == b) == (kind in {"invisible", "URL"})  # URLs are no part of a text


def test_products_differ_by_label(pairs: dict[str, list[Pair]]) -> None:
    same = pairs["product, other price"] + pairs["list, other order"]
    different = pairs["product, other"] + pairs["product, other model"] + pairs["list, other page"]

    assert {pair.same for pair in same} == {True}
    assert {pair.same for pair in different} == {False}
    assert all(pair.a.text != pair.b.text for pair in same + different)


def run(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", f"benchmarks.{module}", *SITES, "--most", str(MOST), *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_benchmark_of_the_rule_writes_pairs_that_evaluate_reads(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl.gz"

    report = run("bench_judgement", "--pairs", str(file))

    read = evaluate_pairs(file, Choices([Features()]))
    assert f"- n: {read.source['pairs']:,} pairs of " in report
    assert "| invisible | same | 8 | 1.00, 1.00, 1.00 | 1.000 | 1.000 | 1.000 | 1.000 |" in report
    assert "| translations | different | 4 |" in report


@pytest.mark.slow
def test_benchmark_of_candidates_runs() -> None:
    report = run("bench_candidates", "--features", "word-tf,shingle-3")

    assert "| kind | people | n | word-tf (8) | shingle-3 (11) |" in report
    assert "| clang | 48 | 26 | word-tf | 8 | 1.0000 |" in report


@pytest.mark.slow
def test_benchmark_of_what_is_rare_runs_and_kept_texts_are_exact() -> None:
    command = [sys.executable, "-m", "benchmarks.bench_rare", *SITES[:2]]

    report = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert "| places (today) | clang | 0.0 | " in report
    assert "| kept text | 0.00% | 0.000 | 0.000 | 0.00% | 0.00% | 0.000 | 0.00% | 0.00% |" in report
