"""Canonical pages of a collection, chosen anew: who is chosen, what is written, what cannot be done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from neardup.cli.main import main
from tests.support.faults import small_disk
from tests.support.made_pages import Made, make_collection

if TYPE_CHECKING:
    from pathlib import Path

FAR = 0xFFFF << 40

PAGES = [
    # Both others are like the first one, but not like each other.
    Made("aaaa", 0, 1, turned=80), Made("bb", 0, 3), Made("ccc", 0, 2, turned=160),
    Made("xxxxx", FAR, 1, turned=500), Made("yyyy", FAR | 1, 3, turned=510),
    Made("zzz", FAR | 1, 2, turned=510), Made("alone", 0xFFFF << 20, 9, turned=900),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = make_collection(tmp_path / "made", PAGES, parts=2)
    assert main(["collection", "clusters", str(made)]) == 0
    return made


def elected(capsys: pytest.CaptureFixture[str], folder: Path, by: str, *arguments: str) -> list[Any]:
    capsys.readouterr()
    assert main(["collection", "elect", str(folder), "--by", by, "--format", "json", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)["elected"]
    return [(row["by"], row["canonical"][-3:], row["before"][-3:], row["duplicates"]) for row in found]


def clusters(folder: Path) -> dict[str, str]:
    """The canonical page of each page, as ``relations`` and as ``clusters`` have it."""
    names = [page.name for page in PAGES]
    rows = pq.read_table(folder / "clusters/clusters.parquet").to_pylist()
    found = {names[row["id"]]: names[row["canonical_id"]] for row in rows}
    relations = pq.read_table(folder / "clusters/relations.parquet").to_pylist()
    stars = {names[row["duplicate_hash_id"]]: names[row["actual_hash_id"]] for row in relations}
    assert stars == {page: canonical for page, canonical in found.items() if page != canonical}
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "clusters").iterdir()}


STARS = dict.fromkeys(("aaaa", "bb", "ccc"), "aaaa") | {"alone": "alone"}
BEFORE = STARS | dict.fromkeys(("xxxxx", "yyyy", "zzz"), "xxxxx")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "rule", "chosen"),
    [
        ("pagerank", "pagerank", "yyyy"),
        ("shortest", "shortest", "zzz"),
        ("https,first_seen,pagerank", "pagerank", "yyyy"),
    ],
)
def test_the_first_page_that_all_others_are_like(
    folder: Path, capsys: pytest.CaptureFixture[str], by: str, rule: str, chosen: str
) -> None:
    assert clusters(folder) == BEFORE
    before = files(folder)

    assert elected(capsys, folder, by, "--dry-run") == [(rule, chosen[-3:], "xxx", 2)]
    assert files(folder) == before
    assert elected(capsys, folder, by) == [(rule, chosen[-3:], "xxx", 2)]

    assert clusters(folder) == STARS | dict.fromkeys(("xxxxx", "yyyy", "zzz"), chosen)
    relations = pq.read_table(folder / "clusters/relations.parquet").to_pylist()
    by_name = {PAGES[row["duplicate_hash_id"]].name: row for row in relations}
    copy = by_name["zzz" if chosen == "yyyy" else "yyyy"]
    assert (copy["hamming_distance"], copy["resemblance"], copy["evidence"]) == (0, 1.0, "text")
    other = by_name["xxxxx"]
    assert (other["hamming_distance"], other["percentage"]) == (1, 98.4375)
    assert other["resemblance"] == pytest.approx(1 - 2 * 10 / 1024)
    written = files(folder)
    assert elected(capsys, folder, by) == []
    assert files(folder) == written


def test_clusters_that_keep_their_pages_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["collection", "elect", str(folder), "--by", "shortest"]) == 0

    said = capsys.readouterr().out
    assert "of 2 clusters, 1 have another canonical page; 1 keep theirs" in said


def test_what_is_missing_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def problem(*arguments: str) -> str:
        assert main(["collection", "elect", str(folder), "--by", "pagerank", *arguments]) == 1
        return capsys.readouterr().err

    assert "two sources" in problem("--database", "sqlite:///n.db")
    (folder / "pagerank.parquet").unlink()
    assert "run neardup collection pagerank" in problem()
    (folder / "clusters/relations.parquet").unlink()
    assert "run neardup collection clusters" in problem()


def test_a_full_disk_ends_a_command_with_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    with small_disk(mounted, 4) as disk:
        made = make_collection(mounted / "made", PAGES, parts=2)
        for command in (["pagerank"], ["clusters"], ["elect", "--by", "shortest"]):
            verb = [*command[:1], str(made), *command[1:]]
            disk.fill()
            assert main(["collection", *verb]) == 1, command
            said = capsys.readouterr().err
            assert "No space left" in said, command
            assert str(mounted) in said, command
            disk.empty()
            assert main(["collection", *verb]) == 0, command
