"""What is done again and again: ``nox`` runs lint, types and test; ``nox -s NAME`` one session, ``nox -l``
lists them.

What follows ``--`` goes to the program: ``nox -s test -- tests/text``, ``nox -s bench -- text``, ``nox -s
fuzz -- words --seconds 60``.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import nox

if TYPE_CHECKING:
    from collections.abc import Iterator

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "test"]

LOWEST = [
    "tests/text/test_visible_text.py",  # Beautiful Soup, lxml
    "tests/text/test_content.py",  # cssselect, resiliparse
    "tests/text/test_words.py",  # regex, icu4py
    "tests/text/test_features.py",  # mmh3, PyStemmer
    "tests/fingerprint",  # NumPy
    "tests/index/test_index.py",
    "tests/detection/test_detector.py",
    "tests/detection/test_twins.py::TestScopes",  # tldextract
    "tests/collection/test_matching.py",  # PyArrow
    "tests/evaluation/test_evaluate.py",  # Matplotlib
    "tests/store/test_store.py",  # SQLAlchemy, psycopg, PyMySQL
    "tests/store/test_migrations.py",  # Alembic
    "tests/scrapy/test_guard.py::test_with_a_reactor_the_connection_takes_the_answer_that_was_checked",
]
"""The tests that use each library most. None crawls in the process of the tests, for which the lowest Scrapy
needs a reactor. They take two minutes.
"""

LOWEST_CRAWLS = [
    f"tests/e2e/test_processes.py::{name}"
    for name in (
        "test_folder",
        "test_http_along_the_links",
        "test_loss_budget_ends_the_crawl",
        "test_second_crawl_over_the_same_database",
        "test_stopped_crawl_goes_on_where_it_was",
    )
]
"""Slow tests: whole crawls of the ready project, with the lowest Scrapy and itemadapter. Other tests of that
file tell of exit codes, which the lowest Scrapy has not, or of the order in which it makes requests.
"""

SANITIZED = [
    "tests/test_native.py",
    "tests/faults/test_fuzz.py",
    "tests/scrapy/test_page_links.py",
    *(f"tests/{room}" for room in ("text", "fingerprint", "index", "collection", "detection", "evaluation")),
]
NOT_SANITIZED = [
    # The sanitizers take terabytes of addresses, of which there is then no limit that a test could set.
    "--deselect=tests/index/test_index.py::test_an_index_without_memory_keeps_what_it_has",
]

FUZZED = ["text", "words", "index", "snapshot"]
"""The targets that reach the native core."""


@nox.session
def lint(session: nox.Session) -> None:
    """Rules of style, of Scrapy projects and of workflows."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    project = [Path("scrapy.cfg"), *Path("crawler").rglob("*.py")]
    session.run("scrapy-lint", *(str(path.absolute()) for path in project))  # it takes no relative ones
    session.run("zizmor", "--offline", "--quiet", ".github/workflows")


@nox.session
def types(session: nox.Session) -> None:
    """All types, strictly."""
    session.install("-e", ".[dev]")
    session.run("mypy", *session.posargs)


@nox.session
def test(session: nox.Session) -> None:
    """All tests but the slow ones."""
    session.install("-e", ".[dev]")
    session.run("pytest", *session.posargs)


@nox.session(python="3.11", venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """Tests of every library with the lowest versions that ``pyproject.toml`` allows, Scrapy's among them."""
    session.install("--resolution", "lowest-direct", "-e", ".[test]")
    session.run("pytest", *(session.posargs or LOWEST))
    if not session.posargs:
        session.run("pytest", "-m", "slow", *LOWEST_CRAWLS)


@nox.session
def slow(session: nox.Session) -> None:
    """The slow tests."""
    session.install("-e", ".[dev,test-spark]")
    session.run("pytest", "-m", "slow", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The manual, as a site in ``build/site/``."""
    session.install("-e", ".[docs]")
    session.run("mkdocs", "build", "--strict", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """A benchmark: its name without ``bench_``, then its arguments."""
    session.install("-e", ".[dev,bench]")
    if not session.posargs:
        session.error("name a benchmark: nox -s bench -- NAME")
    name, *arguments = session.posargs
    session.run("python", "-m", f"benchmarks.bench_{name}", *arguments)


@nox.session
def sanitize(session: nox.Session) -> None:
    """Tests of the native core, watched by AddressSanitizer and UndefinedBehaviorSanitizer (of GCC)."""
    session.install("-e", ".[dev]")
    names = ("libasan.so", "libubsan.so", "libstdc++.so")  # Arrow's errors are C++ exceptions
    libraries = [_answer(session, "gcc", f"-print-file-name={name}") for name in names]
    with _sanitized(session, "gcc", libraries) as environment:
        # One process, whose exit status tells of leaks; reports go to a stderr that nobody takes away.
        options = ["--numprocesses=0", "--capture=sys", "-p", "tests.support.leaks"]
        session.run("pytest", *options, *NOT_SANITIZED, *(session.posargs or SANITIZED), env=environment)


@nox.session
def fuzz(session: nox.Session) -> None:
    """A target of the fuzzer on a native core that is watched so; without a name all that reach it, for ten
    minutes each.
    """
    session.install("-e", ".[dev,fuzz]")
    folder = _answer(session, "python", "-c", "import atheris; print(atheris.path())")
    runs = [session.posargs] if session.posargs else [[name] for name in FUZZED]
    compiler = os.environ.get("CC", "gcc")
    with _sanitized(session, compiler, [f"{folder}/asan_with_fuzzer.so"]) as environment:
        for arguments in runs:
            session.run("python", "-m", "tests.support.fuzz", *arguments, env=environment)


@contextlib.contextmanager
def _sanitized(session: nox.Session, compiler: str, libraries: list[str]) -> Iterator[dict[str, str]]:
    """Build a native core that is watched, and the usual one at the end; gives the environment of programs
    that use the first.
    """
    session.run("python", "hatch_build.py", env={"NEARDUP_SANITIZE": "1", "CC": compiler})
    try:
        yield {
            "LD_PRELOAD": " ".join(libraries),
            "PYTHONMALLOC": "malloc",  # or a byte too far would be one of the interpreter's own
            "ASAN_OPTIONS": "leak_check_at_exit=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
    finally:
        session.run("python", "hatch_build.py")


def _answer(session: nox.Session, *command: str) -> str:
    return str(session.run(*command, external=True, silent=True)).strip()
