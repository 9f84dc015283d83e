"""What is done again and again: ``nox`` runs lint, types and test; ``nox -s NAME`` one session, ``nox -l``
lists them.

What follows ``--`` goes to the program: ``nox -s test -- tests/text``, ``nox -s bench -- text``, ``nox -s
fuzz -- words --seconds 600``.
"""

from __future__ import annotations

from pathlib import Path

import nox

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
    "tests/e2e/test_processes.py",  # Scrapy, itemadapter: whole crawls of the ready project
    "tests/scrapy/test_guard.py::test_with_a_reactor_the_connection_takes_the_answer_that_was_checked",
]
"""The tests that use each library most. None crawls in the process of the tests, for which the lowest Scrapy
needs a reactor. They take two minutes.
"""


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


@nox.session
def slow(session: nox.Session) -> None:
    """The slow tests."""
    session.install("-e", ".[dev]")
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
def fuzz(session: nox.Session) -> None:
    """A target of the fuzzer, for ten minutes unless told otherwise: ``purify``, ``words``, ``snapshot`` or
    ``files``.
    """
    session.install("-e", ".[dev,fuzz]")
    arguments = session.posargs or ["purify", "--seconds", "600"]
    # libFuzzer ends with 130 when its time is over; what it found it has shown and written.
    session.run("python", "-m", "tests.support.fuzz", *arguments, success_codes=[0, 130])
