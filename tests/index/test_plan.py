from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from neardup import native
from neardup.cli.main import main
from neardup.errors import ConfigurationError
from neardup.index import plan
from neardup.index.psm.psm_index import PSMIndex
from neardup.index.tables import MankuTables, MultiIndexHashing
from tests.support.stores import upgraded

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt


def evenly_spread(count: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(11).integers(0, 2**64 - 1, size=count, dtype=np.uint64)


def test_shares_of_levels_add_up() -> None:
    for pages in (1, 30, 1000, 10**6, 10**9):
        assert plan.level_shares(pages).sum() == pytest.approx(1.0)
    assert plan.level_shares(10)[0] > 0.99
    assert plan.level_shares(300)[0] < 0.01


@pytest.mark.parametrize("pages", [3000, 30_000, 200_000])
@pytest.mark.parametrize("max_distance", [1, 3, 5])
def test_probes_and_candidates_are_those_of_the_index(pages: int, max_distance: int) -> None:
    queries = plan.typical_queries(500)
    _, probes, candidates = plan.probes_of_psm(pages, max_distance=max_distance, recall=0.95, queries=queries)
    index = PSMIndex(max_distance=max_distance, recall=0.95)
    index.extend(evenly_spread(pages), np.arange(pages))
    for query in queries:
        index.find_all(query)

    assert probes == pytest.approx(index.stats.probes / 500, rel=0.25)
    assert candidates == pytest.approx(index.stats.candidates / 500, rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MultiIndexHashing, MankuTables])
@pytest.mark.parametrize("pages", [3000, 200_000])
def test_work_of_exact_indexes(kind: type[MultiIndexHashing | MankuTables], pages: int) -> None:
    index = kind(max_distance=3)
    _, probes, candidates, nbytes = plan.work_of_tables(index, pages)
    index.extend(evenly_spread(pages), np.arange(pages))
    queries = plan.typical_queries(300)
    before = replace(index.stats)
    for query in queries:
        index.find_all(query)

    assert (index.stats.probes - before.probes) / 300 == pytest.approx(probes, rel=0.25)
    assert (index.stats.candidates - before.candidates) / 300 == pytest.approx(candidates, rel=0.25)
    assert index.nbytes == pytest.approx(nbytes, rel=0.25)


@pytest.mark.skipif(not native.available, reason="the scan may be the fastest without the native core")
def test_plan_of_what_was_built_is_what_was_measured() -> None:
    costs = {cost.name: cost for cost in plan.plan(50_000, max_distance=3, recall=0.95)}

    assert set(costs) == {"psm", "multi-index", "manku", "scan"}
    assert costs["psm"].nbytes / 50_000 < 24 < costs["manku"].nbytes / 50_000
    assert costs["scan"].candidates == 50_000
    assert all(cost.microseconds > 0 for cost in costs.values())
    assert costs["scan"].microseconds > costs["psm"].microseconds


@pytest.mark.slow
def test_skewed_fingerprints_are_planned_for() -> None:
    rng = np.random.default_rng(4)
    skewed = np.packbits(rng.random((60_000, 64)) < rng.beta(0.4, 0.4, 64), axis=1).view(">u8").ravel()
    queries = plan.typical_queries(200)
    even = plan.plan(60_000, max_distance=3, recall=0.95, sample=plan.Sample(evenly_spread(60_000), queries))
    uneven = plan.plan(
        60_000, max_distance=3, recall=0.95, sample=plan.Sample(skewed.astype(np.uint64), queries)
    )

    assert {c.name: c.candidates for c in even}["manku"] != pytest.approx(
        {c.name: c.candidates for c in uneven}["manku"], rel=0.5
    )


@pytest.mark.slow
@pytest.mark.parametrize(("max_distance", "recall"), [(0, 0.98), (3, 0.5), (3, 0.98)])
def test_a_small_sample_for_many_pages(max_distance: int, recall: float) -> None:
    sample = plan.Sample(evenly_spread(500), plan.typical_queries(50))

    costs = {c.name: c for c in plan.plan(50_000, max_distance=max_distance, recall=recall, sample=sample)}

    assert all(np.isfinite(cost[1:]).all() for cost in costs.values())
    assert costs["psm"].microseconds > 0.0


def test_a_sample_that_tells_nothing() -> None:
    with pytest.raises(ConfigurationError, match="a sample of 3 fingerprints"):
        plan.plan(
            50, max_distance=3, recall=0.9, sample=plan.Sample(evenly_spread(3), plan.typical_queries(5))
        )


@pytest.mark.skipif(not native.available, reason="takes its time without the native core")
def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--pages", "20000", "--memory", "1M", "--format", "json"]) == 0

    rows = {row["index"]: row for row in json.loads(capsys.readouterr().out)["plan"]}
    assert rows["psm"]["MB"] < 0.5
    assert rows["manku"]["advice"] == "too large"
    assert "fastest" in {row["advice"] for row in rows.values()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pages", "0"], "--pages must be at least 1, not 0"),
        (["--pages", "9", "--memory", "much"], "such as 500M, not 'much'"),
        (["--pages", "9", "--distance", "17"], "between 0 and 16 of 64 bits, not 17"),
        (["--pages", "9", "--recall", "0"], "above 0 and at most 1, not 0.0"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_database_with_too_few_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = upgraded(f"sqlite:///{tmp_path}/n.db")

    assert main(["plan", "--pages", "100", "--database", url]) == 1
    assert "holds 0 canonical pages" in capsys.readouterr().err
