"""The ``neardup`` command: reports over what crawls have stored."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import neardup
from neardup import native
from neardup.cli import (
    check,
    collection,
    crawls,
    db,
    decisions,
    evaluate,
    learn_idf,
    match,
    mirrors,
    pairs,
    plan,
    report,
    rethreshold,
    serve,
    show,
    url_rules,
    web,
)
from neardup.cli.output import complain
from neardup.errors import NeardupError

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = {
    "report": report,
    "check": check,
    "show": show,
    "web": web,
    "serve": serve,
    "crawls": crawls,
    "rules": url_rules,
    "decisions": decisions,
    "rethreshold": rethreshold,
    "match": match,
    "pairs": pairs,
    "mirrors": mirrors,
    "collection": collection,
    "plan": plan,
    "evaluate": evaluate,
    "learn-idf": learn_idf,
    "db": db,
}


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="neardup", description="Near-duplicate pages of web crawls.")
    version = f"neardup {neardup.__version__}, {native.describe()}"
    parser.add_argument("--version", action="version", version=version)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, module in VERBS.items():
        module.add_arguments(verbs.add_parser(name, help=module.HELP, description=_plain(module.__doc__)))
    return parser


def _plain(docstring: str | None) -> str:
    """A docstring for the terminal, where the marks of reStructuredText only disturb."""
    return (docstring or "").replace("``", "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; 0 if it did what it was told, 1 with a message if it could not."""
    parsed = make_parser().parse_args(arguments)
    try:
        VERBS[parsed.verb].run(parsed)
    except NeardupError as exc:
        complain(exc)
        return 1
    except BrokenPipeError:
        # The reader of our output has had enough, as head(1) does; Python would complain once more at exit.
        sys.stderr.close()
    return 0
