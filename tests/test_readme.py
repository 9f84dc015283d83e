"""The README is the manual: this holds it to the code."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from scrapy.settings import Settings

from crawler.items import PageItem
from crawler.spiders.site import SiteSpider
from neardup.cli import make_parser
from neardup.features import Features
from neardup.scheme import Scheme
from neardup.scrapy.options import SETTINGS, Options
from neardup.scrapy.summary import STAT_OF_KIND
from neardup.store.schema import metadata
from neardup.store.store import Store
from neardup.verdict import Kind
from tests.crawling import crawl
from tests.databases import BACKENDS, new_database
from tests.test_pages import PAGES
from tests.test_store import upgraded

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def section(title: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    level, text = re.search(rf"^(#+) {re.escape(title)}$\n(.*)", README, re.MULTILINE | re.DOTALL).groups()  # type: ignore[union-attr]
    return re.split(rf"^#{{1,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(table: str) -> list[str]:
    return re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)


def command(name: str) -> str:
    return re.search(rf"<!-- command: {name} -->\n```sh\n(.*)\n```", README).group(1)  # type: ignore[union-attr]


class TestSettings:
    def test_each_is_in_the_table_and_no_other(self) -> None:
        rows = re.findall(r"^\| `(NEARDUP_\w+)` \|", section("Settings"), re.MULTILINE)

        assert rows == list(SETTINGS)
        assert set(re.findall(r"NEARDUP_[A-Z_]+", README)) <= set(SETTINGS)

    def test_defaults_are_those_of_the_code(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NEARDUP_DATABASE_URL", raising=False)
        options = Options.from_settings(Settings())
        shown = dict(
            re.findall(r"^\| `(NEARDUP_\w+)` \| `?([^`|]+?)`? \|", section("Settings"), re.MULTILINE)
        )

        assert options.database_url.startswith("sqlite:///")
        del shown["NEARDUP_DATABASE_URL"]
        assert shown == {
            "NEARDUP_ENABLED": str(options.enabled),
            "NEARDUP_ACTION": f'"{options.action.value}"',
            "NEARDUP_WHEN_UNAVAILABLE": f'"{options.when_unavailable.value}"',
            "NEARDUP_SNAPSHOT": str(options.snapshot),
            "NEARDUP_SHARE": f'"{options.share.value}"',
            "NEARDUP_SHARE_INTERVAL": str(options.share_interval),
            "NEARDUP_MAX_AGE": "none" if options.max_age is None else "set",
            "NEARDUP_HISTORY": str(options.history),
            "NEARDUP_FEATURES": f'"{options.detector.features}"',
            "NEARDUP_CONTENT": f'"{options.detector.content}"',
            "NEARDUP_SELECTORS": "set" if options.detector.selectors else "none",
            "NEARDUP_SKETCH_SIZE": str(options.detector.sketch_size),
            "NEARDUP_VERIFY": str(options.detector.verify),
            "NEARDUP_MAX_DISTANCE": (
                "that of the features" if options.detector.max_distance is None else "set"
            ),
            "NEARDUP_SCOPE": f'"{options.detector.scope}"',
            "NEARDUP_RECALL": str(options.detector.recall),
            "NEARDUP_RECALL_SAMPLE": str(options.detector.recall_sample),
            "NEARDUP_INDEX": f'"{options.detector.index}"',
            "NEARDUP_MIN_FEATURES": str(options.detector.min_features),
            "NEARDUP_FOLLOW_PER_CLUSTER": str(options.detector.follow_per_cluster),
            "NEARDUP_CONTENT_FIELD": "none" if options.content_field is None else "set",
            "NEARDUP_URL_FIELD": f'"{options.url_field}"',
            "NEARDUP_VERDICT_FIELD": "none" if options.verdict_field is None else "set",
        }


def test_every_stat_is_in_the_table_and_no_other(tmp_path: Path) -> None:
    settings = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db",
        "NEARDUP_RECALL_SAMPLE": 1,
    }
    stats = crawl(SiteSpider, settings, url=str(PAGES)).stats
    source = "".join(path.read_text() for path in (ROOT / "neardup" / "scrapy").glob("*.py"))
    counted = set(re.findall(r'inc_value\("(neardup/[\w/]+)"\)', source)) | set(STAT_OF_KIND.values())

    listed = set(re.findall(r"`(neardup/[\w/]+)`", section("Stats")))

    assert counted | {name for name in stats if name.startswith("neardup/")} == listed


def test_distances_of_the_default_features_are_those_of_the_code() -> None:
    features = Features()

    assert (
        f"Unless set, {features.verified_max_distance} for `{features.name}` with verification and"
        f" {features.max_distance} without" in section("Settings")
    )


def test_nothing_is_left_to_fill_in() -> None:
    assert re.findall(r"@[A-Z]\w*@", README) == []


def test_every_verdict_is_in_the_table() -> None:
    assert first_cells(section("Verdicts")) == [f"`{kind.value}`" for kind in Kind]


def commands(
    parser: argparse.ArgumentParser, name: str = "neardup"
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """All verbs, and the verbs below them, by what is typed."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, below in action.choices.items():
                yield f"{name} {verb}", below
                yield from commands(below, f"{name} {verb}")


def test_every_command_and_option_is_in_the_table() -> None:
    text = section("Reports")

    for name, parser in commands(make_parser()):
        row = next((line for line in text.splitlines() if line.startswith(f"| `{name}")), "")
        assert row, name
        for action in parser._actions:
            for option in action.option_strings:
                assert option in {"-h", "--help", "--database"} or f"`{option}" in row, (name, option)
    assert "--database URL" in text


@pytest.mark.parametrize("table", metadata.tables.values(), ids=str)
def test_every_column_is_described(table: sa.Table) -> None:
    text = section("Tables")
    start = text.index(f"**`{table.name}`**")
    described = text[
        start : text.find("\n**`", start + 1) if "\n**`" in text[start + 1 :] else text.index("```sql")
    ]

    assert [column.name for column in table.columns if f"`{column.name}`" not in described] == []


def test_every_item_field_is_named() -> None:
    assert [field.name for field in fields(PageItem) if f"`{field.name}`" not in section("Try it")] == []


class TestSql:
    @pytest.fixture(params=BACKENDS)
    def stored(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
        with new_database(request.param, tmp_path) as url:
            settings = {
                "ADDONS": {"neardup.Addon": 500},
                "NEARDUP_DATABASE_URL": upgraded(url),
                "NEARDUP_HISTORY": True,
            }
            assert crawl(SiteSpider, settings, url=str(PAGES)).neardup("duplicates") >= 30
            yield url

    def test_examples_run_on_every_database(self, stored: str) -> None:
        examples = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
        assert len(examples) == 6
        with Store.open(stored, scheme=str(Scheme())) as store, store.reading() as connection:
            answers = [connection.execute(sa.text(sql)).mappings().all() for sql in examples]

        changes, by_host, by_distance, clusters, pairs, crawls = answers
        duplicates = crawls[0]["duplicates"]
        assert [(row["changes"], row["bits_a_change"]) for row in changes] == [(0, None)] * 10
        assert all(row["since"] == row["last_seen"] for row in changes)
        assert (by_host[0]["pages"], by_host[0]["duplicates"]) == (56, duplicates)
        assert float(by_host[0]["rate"]) == pytest.approx(100 * duplicates / 56)
        assert sum(row["duplicates"] for row in by_distance) == duplicates
        assert clusters[0]["duplicates"] == 3
        assert len(pairs) == duplicates
        assert pairs[0]["percentage"] == 100.0
        assert crawls[0]["first_seen_pages"] == 56


class TestCommands:
    def test_main_job_runs_as_it_stands_there(self, tmp_path: Path) -> None:
        # All but the installation, which has been done for this interpreter.
        job = command("run").split(" && ", 2)[2].replace(".venv/bin/", f"{Path(sys.executable).parent}/")
        environment = {**os.environ, "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db"}
        environment.pop("SCRAPY_SETTINGS_MODULE", None)

        done = subprocess.run(
            job.replace("pages.jsonl", str(tmp_path / "pages.jsonl")),
            shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip

        assert len((tmp_path / "pages.jsonl").read_text().splitlines()) == 56
        assert "By path prefix" in done.stdout
        for line in ("pages       56", "new         25", "duplicates  31 (55.4 %), 14 of them exact"):
            assert line in done.stderr
            assert line in README

    def test_test_command_is_what_ci_calls(self) -> None:
        assert command("test").startswith("python3 -m venv .venv && ")
        assert command("test").endswith(".venv/bin/pytest")
        assert "command: test" in (ROOT / ".ci" / "run").read_text()

    def test_library_example_runs(self, capsys: pytest.CaptureFixture[str]) -> None:
        code = re.search(r"```python\n(.*?)```", section("As a library"), re.DOTALL).group(1)  # type: ignore[union-attr]

        exec(code, {})

        assert capsys.readouterr().out.split() == ["new", "duplicate"]


def test_components_named_in_the_long_form_exist() -> None:
    from scrapy.utils.misc import load_object

    for name in re.findall(r'"(neardup\.[\w.]+)":', section("In a spider you already have")):
        assert load_object(name)


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"Python {project['requires-python'].replace('>=', '≥ ')}" in README
    scrapy = next(d for d in project["dependencies"] if d.startswith("scrapy"))
    assert f"Scrapy {scrapy.removeprefix('scrapy').replace('>=', '≥ ')}" in README
