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
