"""The shape of the code: who may import whom, no cycles."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

from tests.support.places import ROOT
from tests.support.source_code import CODE, imports, module_name, nodes

MOST_LINES_OF_A_FUNCTION = 60

OWNERS = {
    "sqlalchemy": ("neardup.store",),
    "alembic": ("neardup.store",),
    "scrapy": ("neardup.scrapy", "neardup.cli", "crawler"),
    "twisted": ("neardup.scrapy",),
    "itemadapter": ("neardup.scrapy",),
    "pyarrow": ("neardup.parquet", "neardup.collection.fingerprint_files", "neardup.store.archive.parquet"),
    "matplotlib": ("neardup.evaluation.plot",),
    "bs4": ("neardup.text.visible_text",),
    "Stemmer": ("neardup.text.features",),
    "icu4py": ("neardup.text.words",),
    "resiliparse": ("neardup.text.content",),
    "fastwarc": ("neardup.collection.inputs.archives",),
    "cssselect": ("neardup.text.content", "neardup.text.selectors"),
    "tldextract": ("neardup.address",),
    "jinja2": ("neardup.web",),
    "markupsafe": ("neardup.web",),
    "starlette": ("neardup.web",),
    "uvicorn": ("neardup.web",),
    "anyio": ("neardup.web",),
}
"""Who may import which library."""

ROOMS = (
    ("errors", "native", "parquet", "address"),
    ("text",),
    ("fingerprint",),
    ("index",),
    ("detection",),
    ("urls",),
    ("store",),
    ("evaluation", "collection"),
    ("web",),
    ("scrapy",),
    ("cli", "__main__"),
)
"""The rooms of ``neardup/``, in the way of a page. A module imports from its own room and those before it."""


MODULES = {module_name(path): path for path in CODE}
del MODULES["neardup"]  # it imports the add-on when asked for it, not before


def own_imports(name: str, *, with_types: bool = False) -> set[str]:
    return {
        other for other in imports(MODULES[name], with_types=with_types) if other in MODULES and other != name
    }


def place(name: str) -> int:
    """The place of a module's room in the row; the ready project comes last."""
    package, _, rest = name.partition(".")
    room = rest.partition(".")[0]
    if package == "crawler":
        return len(ROOMS)
    return next(number for number, rooms in enumerate(ROOMS) if room in rooms)


def test_libraries_are_used_by_their_owners_only() -> None:
    for name, path in MODULES.items():
        used = {found.split(".")[0] for found in imports(path, with_types=True)}
        for library in used & set(OWNERS):
            assert f"{name}.".startswith(tuple(f"{owner}." for owner in OWNERS[library])), (
                f"{name} imports {library}"
            )


def test_imports_point_to_the_left() -> None:
    for name in MODULES:
        for other in own_imports(name, with_types=True):
            assert place(name) >= place(other), f"{name} imports {other}"


def test_detector_and_store_do_not_know_each_other() -> None:
    assert not any(
        other.startswith("neardup.store")
        for other in own_imports("neardup.detection.detector", with_types=True)
    )
    for name in MODULES:
        if name.startswith("neardup.store"):
            found = own_imports(name, with_types=True)
            assert not any(
                other.startswith(("neardup.detection.detector", "neardup.index")) for other in found
            ), name


def test_no_module_imports_from_the_package_itself() -> None:
    for name, path in MODULES.items():
        if name.startswith("crawler."):  # a user of the public names, like any project
            continue
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and node.module in {
                "neardup",
                "neardup.index",
                "neardup.store",
            }:
                assert all(f"{node.module}.{alias.name}" in MODULES for alias in node.names), name


def test_no_import_cycle() -> None:
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " imports ".join((*path, name))
        if name not in done:
            for other in sorted(own_imports(name)):
                visit(other, (*path, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())


def test_functions_stay_readable() -> None:
    for path in CODE:
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                told = len((ast.get_docstring(node) or "").splitlines())
                lines = node.end_lineno - node.lineno + 1 - told
                assert lines <= MOST_LINES_OF_A_FUNCTION, f"{path}: {node.name}"


def test_no_dumping_grounds() -> None:
    names = {path.stem for path in CODE}

    assert not names & {"utils", "util", "helpers", "common", "misc"}


def test_library_does_not_start_scrapy() -> None:
    # The parts are usable without Scrapy: only the lazily imported add-on brings it in.
    scrapy_users = {
        name
        for name in MODULES
        if any(o.split(".")[0] == "scrapy" for o in imports(MODULES[name], with_types=False))
    }
    free = {name for name in MODULES if place(name) < place("neardup.scrapy")}

    assert not free & scrapy_users
    assert not any(other in scrapy_users for name in free for other in own_imports(name))
    program = "import sys, neardup; neardup.Detector; sys.exit('scrapy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


TESTS = sorted((ROOT / "tests").rglob("*.py"))
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))
TEST_MODULE = re.compile(r"\b(?:from|import)\s+(tests\.(?:\w+\.)*test_\w+)")


def test_no_module_imports_a_test_module() -> None:
    # In the text, not in its tree: what a test hands to another process imports as well.
    found = {str(path): TEST_MODULE.findall(path.read_text()) for path in [*TESTS, *BENCHMARKS]}

    assert {path: names for path, names in found.items() if names} == {}


def test_benchmarks_use_of_the_tests_their_support_only() -> None:
    found = {name for path in BENCHMARKS for name in imports(path, with_types=True)}
    of_tests = {name for name in found if name.split(".")[0] in {"tests", "migrations"}}

    assert {name for name in of_tests if not f"{name}.".startswith("tests.support.")} == set()
