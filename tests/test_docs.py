"""The README and the manual in ``docs/``, held to the code."""

from __future__ import annotations

import importlib.metadata
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

import neardup
from benchmarks import pages as benchmark_pages
from crawler.items import PageItem
from crawler.spiders.site import SiteSpider
from docs import command_pages, terminal_picture
from neardup import errors
from neardup.address import Address
from neardup.cli.main import make_parser
from neardup.detection.verdict import Kind, Verdict
from neardup.fingerprint.scheme import Scheme
from neardup.scrapy.options import SETTINGS, Options, is_guarded
from neardup.scrapy.summary import STAT_OF_EVIDENCE, STAT_OF_KIND, STAT_OF_LIMIT
from neardup.store.schema import duplicate_values, metadata, simhash_values
from neardup.store.store import Store
from neardup.text.features import Features
from tests.support.crawling import crawl
from tests.support.databases import BACKENDS
from tests.support.places import PAGES, ROOT
from tests.support.prose import sentences_of, sentences_of_docstring, sentences_of_markdown
from tests.support.readme import README, command, main_job
from tests.support.ready_databases import ready_database

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = ROOT / "docs"
SETTINGS_PAGE = (DOCS / "reference" / "settings.md").read_text()
PAGES_OF_MANUAL = sorted(DOCS.rglob("*.md"))
MANUAL = [ROOT / "README.md", *PAGES_OF_MANUAL]

MOST_LINES_OF_README = 120
LONGEST_LINE = 110
MOST_WORDS_OF_SENTENCE = 25


def reference(name: str) -> str:
    return (DOCS / "reference" / f"{name}.md").read_text()


def section(page: str, title: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}$\n(.*)", page, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    level, text = found.groups()
    return re.split(rf"^#{{1,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(table: str) -> list[str]:
    return re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)


class TestSettings:
    def test_each_has_a_heading_and_no_other(self) -> None:
        headings = re.findall(r"^### `(NEARDUP_\w+)`$", SETTINGS_PAGE, re.MULTILINE)

        assert sorted(headings) == sorted(SETTINGS)

    @pytest.mark.parametrize("page", MANUAL, ids=lambda page: str(page.relative_to(ROOT)))
    def test_pages_name_no_other(self, page: Path) -> None:
        named = set(re.findall(r"NEARDUP_[A-Z_]+(?![A-Z_…])", page.read_text()))

        of_the_native_core = {"NEARDUP_NATIVE", "NEARDUP_BOUNDSCHECK", "NEARDUP_INSTRUCTIONS"}
        assert named - {"NEARDUP_MAX_"} - of_the_native_core <= set(SETTINGS)

    def test_defaults_are_those_of_the_code(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NEARDUP_DATABASE_URL", raising=False)
        options = Options.from_settings(Settings())
        shown = dict(
            re.findall(r"^### `(NEARDUP_\w+)`\n\nDefault: `?([^`\n]+)`?$", SETTINGS_PAGE, re.MULTILINE)
        )

        assert options.database_url.startswith("sqlite:///")
        del shown["NEARDUP_DATABASE_URL"]
        assert shown == {
            "NEARDUP_ENABLED": str(options.enabled),
            "NEARDUP_ACTION": f'"{options.action.value}"',
            "NEARDUP_PREDICT": f'"{options.predict.value}"',
            "NEARDUP_LOSS_BUDGET": "none" if options.loss_budget is None else "set",
            "NEARDUP_ENDLESS_AFTER": str(options.endless_after),
            "NEARDUP_WHEN_UNAVAILABLE": f'"{options.when_unavailable.value}"',
            "NEARDUP_SNAPSHOT": str(options.snapshot),
            "NEARDUP_SHARE": f'"{options.share.value}"',
            "NEARDUP_SHARE_INTERVAL": str(options.share_interval),
            "NEARDUP_MAX_AGE": "none" if options.max_age is None else "set",
            "NEARDUP_HISTORY": str(options.history),
            "NEARDUP_KEEP_TEXT": str(options.keep_text),
            "NEARDUP_REPORT": "none" if options.report is None else "set",
            "NEARDUP_LINKS": str(options.links),
            "NEARDUP_GUARD": str(is_guarded(Settings())),
            "NEARDUP_FEATURES": f'"{options.detector.features}"',
            "NEARDUP_CONTENT": f'"{options.detector.content}"',
            "NEARDUP_SELECTORS": "set" if options.detector.selectors else "none",
            "NEARDUP_ALT_TEXTS": str(options.detector.alt_texts),
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
            "NEARDUP_MAX_PAGE_BYTES": str(options.detector.max_page_bytes),
            "NEARDUP_MAX_TAGS": str(options.detector.max_tags),
            "NEARDUP_MAX_ATTRIBUTES": str(options.detector.max_attributes),
            "NEARDUP_MAX_WORDS": str(options.detector.max_words),
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
    counted = (
        set(re.findall(r'(?:inc_value|set_value|count)\("(neardup/[\w/]+)"', source))
        | set(STAT_OF_KIND.values())
        | set(STAT_OF_LIMIT.values())
        | set(STAT_OF_EVIDENCE.values())
    )

    listed = set(re.findall(r"`(neardup/[\w/]+)`", reference("stats")))

    assert counted | {name for name in stats if name.startswith("neardup/")} == listed


def test_distances_of_the_default_features_are_those_of_the_code() -> None:
    features = Features()

    assert (
        f"Unless set, {features.verified_max_distance} for `{features.name}` with verification and"
        f" {features.max_distance} without" in SETTINGS_PAGE
    )


def test_every_verdict_is_in_the_table() -> None:
    table = reference("verdicts").partition("\n## ")[0]

    assert first_cells(table) == [f"`{kind.value}`" for kind in Kind]


def test_every_field_of_a_verdict_is_described() -> None:
    verdict = Verdict(address=Address(""), kind=Kind.NEW, follow=True, reason="")
    described = {cell.strip("`") for cell in first_cells(section(reference("verdicts"), "Fields"))}

    assert {name for name in described if not hasattr(verdict, name)} == set()
    assert set(verdict.as_dict()) - {"verdict"} <= described


@pytest.mark.parametrize(
    ("page", "before"),
    [("tutorial/existing-spider.md", "the fields "), ("reference/settings.md", "The value is a dict with ")],
)
def test_fields_of_the_verdict_in_items_are_listed(page: str, before: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    listed = text.partition(before)[2].partition(".\n")[0]
    verdict = Verdict(address=Address(""), kind=Kind.NEW, follow=True, reason="")

    assert re.findall(r"`(\w+)`", listed) == list(verdict.as_dict())


def test_every_command_and_option_is_shown() -> None:
    shown = command_pages.markdown()
    found = dict(command_pages.verbs(make_parser()))

    assert {"neardup report", "neardup db export"} <= set(found)
    for name, parser in found.items():
        text = section(shown, f"`{name}`").partition("\n#")[0]
        for action in parser._actions:
            for option in action.option_strings:
                assert option in {"-h", "--help"} or f"`{option}" in text, (name, option)
    assert "<!-- commands -->" in reference("commands")


def test_commands_in_the_manual_exist() -> None:
    parser = make_parser()
    lines = [
        line.partition(" #")[0].partition(" > ")[0].removeprefix("$ ").removeprefix(".venv/bin/")
        for page in MANUAL
        for block in re.findall(r"```(?:sh|text)\n(.*?)```", page.read_text(), re.DOTALL)
        for line in block.splitlines()
        if re.match(r"(\$ )?(\.venv/bin/)?neardup ", line)
    ]

    assert len(lines) >= 10
    for line in lines:
        parser.parse_args(shlex.split(line)[1:])


def test_every_exception_is_in_the_table() -> None:
    tree = {
        name
        for name, found in vars(errors).items()
        if isinstance(found, type) and issubclass(found, Exception)
    }

    listed = {cell.strip("`") for cell in first_cells(reference("exceptions"))}

    assert listed == tree | {"NearDuplicatePage", "IgnoreRequest"}


def test_every_public_name_is_in_the_reference() -> None:
    page = reference("python-api")

    assert set(neardup.__all__) <= set(dir(neardup))
    for name in neardup.__all__:
        assert f"`{name}`" in page
        public = getattr(neardup, name)
        assert name == "__version__" or f"::: {public.__module__}.{public.__qualname__}\n" in page
    assert neardup.__version__ == importlib.metadata.version("neardup")


def test_what_the_python_reference_shows_exists() -> None:
    named = re.findall(r"^::: ([\w.]+)$", reference("python-api") + reference("exceptions"), re.MULTILINE)

    assert len(named) >= 10
    for name in named:
        assert pkgutil.resolve_name(name)


@pytest.mark.parametrize("table", metadata.tables.values(), ids=str)
def test_every_column_is_described(table: sa.Table) -> None:
    described = section(reference("tables"), f"`{table.name}`").partition("\n\n## ")[0]
    cells = " ".join(first_cells(described))

    assert re.findall(r"`(\w+)`", cells) == [
        name for name in re.findall(r"`(\w+)`", cells) if name in table.c
    ]
    assert [column.name for column in table.columns if f"`{column.name}`" not in cells] == []


def test_every_item_field_is_named() -> None:
    described = first_cells(section(reference("file-formats"), "Items of the ready project"))

    assert described == [f"`{field.name}`" for field in fields(PageItem)]


class TestSql:
    @pytest.fixture(params=BACKENDS)
    def stored(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
        with ready_database(request.param, tmp_path) as url:
            settings = {
                "ADDONS": {"neardup.Addon": 500},
                "NEARDUP_DATABASE_URL": url,
                "NEARDUP_HISTORY": True,
            }
            assert crawl(SiteSpider, settings, url=str(PAGES)).neardup("duplicates") >= 30
            yield url

    @pytest.mark.slow
    def test_examples_run_on_every_database(self, stored: str) -> None:
        examples = re.findall(r"```sql\n(.*?)```", reference("tables"), re.DOTALL)
        assert len(examples) == 7
        with Store.open(stored, scheme=str(Scheme())) as store:
            with store.begin_write() as connection:
                copy, canonical = connection.execute(
                    sa.select(duplicate_values.c.duplicate_hash_id, simhash_values.c.actual_url)
                    .join(simhash_values, simhash_values.c.id == duplicate_values.c.actual_hash_id)
                    .limit(1)
                ).one()
                tagged = sa.update(simhash_values).where(simhash_values.c.id == copy)
                connection.execute(tagged.values(declared_url="http://a.example/"))
            with store.reading() as connection:
                answers = [connection.execute(sa.text(sql)).mappings().all() for sql in examples]

        changes, by_host, by_distance, clusters, pairs, tags, crawls = answers
        duplicates = crawls[0]["duplicates"]
        assert [(row["changes"], row["bits_a_change"]) for row in changes] == [(0, None)] * 10
        assert all(row["since"] == row["last_seen"] for row in changes)
        assert (by_host[0]["pages"], by_host[0]["duplicates"]) == (56, duplicates)
        assert float(by_host[0]["rate"]) == pytest.approx(100 * duplicates / 56)
        assert sum(row["duplicates"] for row in by_distance) == duplicates
        assert clusters[0]["duplicates"] == 3
        assert len(pairs) == duplicates
        assert pairs[0]["percentage"] == 100.0
        (tag,) = tags
        assert (tag["declared_url"], tag["canonical_url"]) == ("http://a.example/", canonical)
        assert crawls[0]["first_seen_pages"] == 56


class TestCommands:
    def test_main_job_runs_as_it_stands_there(self, tmp_path: Path) -> None:
        # All but the installation, which has been done for this interpreter.
        job = main_job()
        environment = {**os.environ, "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db"}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment.pop("SCRAPY_SETTINGS_MODULE", None)

        done = subprocess.run(
            job.replace("pages.jsonl", str(tmp_path / "pages.jsonl")),
            shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip

        assert len((tmp_path / "pages.jsonl").read_text().splitlines()) == 56
        assert "By path prefix" in done.stdout
        for line in ("  pages       56\n", "  links       "):
            assert line in done.stderr
            assert line in README
        # The order of answers decides which of several versions a page is found to be a copy of.
        new, said = (int(re.search(r"  new +(\d+)\n", text)[1]) for text in (done.stderr, README))  # type: ignore[index]
        assert abs(new - said) <= 3

    def test_test_command_is_what_ci_calls(self) -> None:
        assert command("test").startswith("python3 -m venv .venv && ")
        assert ". .venv/bin/activate && " in command("test")
        assert command("test").endswith(" && pytest")
        assert "command: test" in (ROOT / ".ci" / "run").read_text()

    def test_library_example_runs(self, capsys: pytest.CaptureFixture[str]) -> None:
        code = re.search(
            r"```python\n(.*?)```", section(reference("python-api"), "As a library"), re.DOTALL
        ).group(1)  # type: ignore[union-attr]

        exec(code, {})

        assert capsys.readouterr().out.split() == ["new", "duplicate"]


def test_components_named_in_the_long_form_exist() -> None:
    page = (DOCS / "tutorial" / "existing-spider.md").read_text()
    named = re.findall(r'"(neardup\.[\w.]+)":', section(page, "Place the components yourself"))

    assert len(named) == 6
    for name in named:
        assert load_object(name)


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"Python {project['requires-python'].replace('>=', '≥ ')}" in README
    scrapy = next(d for d in project["dependencies"] if d.startswith("scrapy"))
    assert f"Scrapy {scrapy.removeprefix('scrapy').replace('>=', '≥ ')}" in README


class TestPicture:
    @pytest.mark.slow
    def test_figures_are_those_of_a_report(self, tmp_path: Path) -> None:
        database = f"sqlite:///{tmp_path}/n.db"
        crawl(
            SiteSpider, {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": database}, url=str(PAGES)
        )
        done = subprocess.run(
            [sys.executable, "-m", "neardup", "report", "--database", database],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip

        drawn = re.findall(r"<text [^>]*>(.*?)</text>", (DOCS / "images" / "report.svg").read_text())
        rows = [" ".join(row.replace("\N{NO-BREAK SPACE}", " ").split()) for row in drawn]
        report = " ".join(done.stdout.replace(str(ROOT), "/srv/neardup").split())

        assert rows[0] == terminal_picture.COMMAND
        assert len(rows) > 10
        # But for the figures: the order of answers decides which version a page is found to be a copy of.
        report = re.sub(r"\b[\d.]+\b", "0", report)
        assert [row for row in rows[1:] if re.sub(r"\b[\d.]+\b", "0", row) not in report] == []


class TestText:
    def test_readme_is_short(self) -> None:
        assert len(README.splitlines()) <= MOST_LINES_OF_README

    @pytest.mark.parametrize("page", MANUAL, ids=lambda page: str(page.relative_to(ROOT)))
    def test_lines_are_short(self, page: Path) -> None:
        # A table or a heading cannot be wrapped, so the target of a link does not count there; nor does the
        # one long command.
        text = page.read_text().replace(command("run"), "")
        lines = [
            re.sub(r"\]\([^)]*\)", "]", line) if line.startswith(("|", "#")) else line
            for line in text.splitlines()
        ]

        assert [line for line in lines if len(line) > LONGEST_LINE] == []

    @pytest.mark.parametrize("page", MANUAL, ids=lambda page: str(page.relative_to(ROOT)))
    def test_links_lead_somewhere(self, page: Path) -> None:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)

        for target in re.findall(r"\]\(([^)]+)\)", text):
            name, _, anchor = target.partition("#")
            if name.startswith(("http:", "https:")):
                continue
            path = (page.parent / name).resolve() if name else page
            assert path.exists(), target
            assert not anchor or anchor in anchors(path), target

    def test_sentences_are_short(self) -> None:
        pages = [*MANUAL, ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"]
        modules = [path for package in ("neardup", "crawler") for path in (ROOT / package).rglob("*.py")]
        found = [(path, sentence) for path in [*pages, *modules] for sentence in sentences_of(path)]

        assert len(found) > 3000
        assert [pair for pair in found if len(pair[1].split()) > MOST_WORDS_OF_SENTENCE] == []

    def test_sentences_are_told_from_tables_code_and_formulas(self) -> None:
        page = """
            # A title without a stop

            Eq. 4.5 is [cited](here.md). It ends (here.) Then
            this list begins:

            - one
            - two

            1. three

            ```sh
            neardup report
            ```

            | a | table |
            |---|---|
            """
        docstring = """A summary.

        A paragraph
        of two lines.

            x = 2 · y

        >>> 1 + 1
        2
        """

        assert list(sentences_of_markdown(textwrap.dedent(page))) == [
            "A title without a stop",
            "Eq. 4.5 is [cited].",
            "It ends (here.)",
            "Then this list begins:",
            "one",
            "two",
            "three",
        ]
        assert list(sentences_of_docstring(docstring)) == ["A summary.", "A paragraph of two lines."]

    def test_every_page_can_be_found(self) -> None:
        pages = {str(page.relative_to(DOCS)) for page in PAGES_OF_MANUAL}
        listed = set(re.findall(r"[\w./-]+\.md", (ROOT / "mkdocs.yml").read_text()))
        decisions = set(re.findall(r"\(([\w-]+\.md)\)", (DOCS / "decisions" / "index.md").read_text()))

        assert pages == listed | {f"decisions/{name}" for name in decisions}

    def test_page_of_benchmarks_is_made_from_the_results(self) -> None:
        assert benchmark_pages.PAGE.read_text() == benchmark_pages.page()

    def test_layers_of_the_architecture_are_those_of_the_code(self) -> None:
        rooms = {path.name for path in (ROOT / "neardup").iterdir() if (path / "__init__.py").exists()}
        listed = first_cells(section((DOCS / "architecture.md").read_text(), "The rooms"))

        assert {cell.strip("`/") for cell in listed} == rooms


def anchors(page: Path) -> set[str]:
    """Those that mkdocs makes of the headings, and of what the Python reference shows."""
    text = page.read_text()
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles} | set(
        re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)
    )


@pytest.mark.slow
def test_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")

    arguments = ["build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    commands = (tmp_path / "site" / "reference" / "commands" / "index.html").read_text()
    assert "--older-than" in commands
    assert (
        "IndexBinaryHash"
        in (tmp_path / "site/benchmarks/results/peers-hashes-10000000/index.html").read_text()
    )
