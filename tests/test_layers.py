"""The shape of the code: who may import whom, no cycles, no overgrown files."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = sorted([*(ROOT / "neardup").rglob("*.py"), *(ROOT / "crawler").rglob("*.py")])
MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 60

OWNERS = {
    "sqlalchemy": ("neardup.store",),
    "alembic": ("neardup.store",),
    "scrapy": ("neardup.scrapy", "neardup.cli", "neardup.commands", "crawler"),
    "twisted": ("neardup.scrapy",),
    "itemadapter": ("neardup.scrapy",),
    "numba": ("neardup.compiled", "neardup.index.instructions"),
    "llvmlite": ("neardup.index.instructions",),
    "pyarrow": ("neardup.batch_files", "neardup.archive.parquet"),
    "matplotlib": ("neardup.evaluation.plot",),
    "bs4": ("neardup.purify",),
    "Stemmer": ("neardup.features",),
    "icu4py": ("neardup.words",),
    "resiliparse": ("neardup.content",),
    "cssselect": ("neardup.content",),
    "tldextract": ("neardup.scope",),
}
"""Who may import which library."""

LAYERS = (
    ("crawler", "neardup.__main__"),
    ("neardup.cli", "neardup.commands"),
    ("neardup.scrapy",),
    ("neardup.detector", "neardup.following", "neardup.store"),
    ("neardup.evaluation",),
    (
        "neardup.archive",
        "neardup.batch",
        "neardup.plan",
        "neardup.batch_files",
        "neardup.batch_kernels",
        "neardup.batch_pairs",
        "neardup.batch_plan",
        "neardup.batch_progress",
    ),
    (
        "neardup.index",
        "neardup.recall",
        "neardup.verdict",
        "neardup.sketches",
        "neardup.verification",
        "neardup.watch",
        "neardup.pages",
        "neardup.page_kernels",
        "neardup.records",
        "neardup.snapshot",
    ),
    (
        "neardup.reading",
        "neardup.scheme",
        "neardup.scope",
        "neardup.content",
        "neardup.purify",
        "neardup.rule",
    ),
    (
        "neardup.simhash",
        "neardup.features",
        "neardup.idf",
        "neardup.sketch",
        "neardup.join",
        "neardup.templates",
    ),
    (
        "neardup.age",
        "neardup.words",
        "neardup.folders",
        "neardup.feature_kernels",
        "neardup.hamming",
        "neardup.compiled",
        "neardup.errors",
    ),
)
"""A module imports from its own group or one further down, never from one further up."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, *, with_types: bool) -> set[str]:
    """Names of the modules a file imports; ``with_types``: also those only mypy reads."""
    tree = ast.parse(path.read_text())
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in for_types and not with_types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


MODULES = {module_name(path): path for path in CODE}
del MODULES["neardup"]  # it imports the add-on when asked for it, not before


def own_imports(name: str, *, with_types: bool = False) -> set[str]:
    return {
        other for other in imports(MODULES[name], with_types=with_types) if other in MODULES and other != name
    }


def layer(name: str) -> int:
    for number, members in enumerate(LAYERS):
        if any(name == member or name.startswith(f"{member}.") for member in members):
            return number
    raise AssertionError(f"{name} belongs to no layer: add it to LAYERS")


@pytest.mark.parametrize("name", sorted(MODULES))
def test_libraries_are_used_by_their_owners_only(name: str) -> None:
    for library, owners in OWNERS.items():
        uses = any(found.split(".")[0] == library for found in imports(MODULES[name], with_types=True))
        allowed = any(name == owner or name.startswith(f"{owner}.") for owner in owners)
        assert allowed or not uses, f"{name} imports {library}"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_point_down(name: str) -> None:
    for other in own_imports(name, with_types=True):
        assert layer(name) <= layer(other), f"{name} imports {other}"


def test_detector_and_store_do_not_know_each_other() -> None:
    assert not any(
        other.startswith("neardup.store") for other in own_imports("neardup.detector", with_types=True)
    )
    for name in MODULES:
        if name.startswith("neardup.store"):
            found = own_imports(name, with_types=True)
            assert not any(other.startswith(("neardup.detector", "neardup.index")) for other in found), name


def test_no_module_imports_from_the_package_itself() -> None:
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
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


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_readable(path: Path) -> None:
    text = path.read_text()

    assert len(text.splitlines()) <= MOST_LINES_OF_A_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno + 1 <= MOST_LINES_OF_A_FUNCTION, node.name


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
    free = {name for name in MODULES if layer(name) >= layer("neardup.detector")}

    assert not free & scrapy_users
    assert not any(other in scrapy_users for name in free for other in own_imports(name))
