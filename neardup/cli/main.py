"""The ``neardup`` command: reports over what crawls have stored."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING

import neardup
from neardup import native
from neardup.cli.output import complain
from neardup.cli.progress import INTERRUPTED
from neardup.cli.verbs import Verb, add_verbs
from neardup.errors import NeardupError

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = {
    "report": Verb(
        "neardup.cli.report",
        "pages, duplicates and rates: by host, path, parameter, distance, evidence and crawl; across sites;"
        " the largest clusters",
    ),
    "check": Verb(
        "neardup.cli.check",
        "duplication percentage of pages (URLs or files) against the store, without storing them",
    ),
    "show": Verb(
        "neardup.cli.show",
        "all about one page: fingerprint, visits, canonical page or duplicates, history, rules about its URL",
    ),
    "web": Verb(
        "neardup.cli.web",
        "explore the store in a browser: clusters, pairs side by side, pages, hosts, crawls",
    ),
    "serve": Verb(
        "neardup.cli.serve",
        "leave near-duplicates out of the answers of a search engine, over HTTP",
    ),
    "crawls": Verb(
        "neardup.cli.crawls",
        "the crawls of the store; remove one with all that only it brought (remove)",
    ),
    "rules": Verb(
        "neardup.cli.url_rules",
        "what was learned of URLs: lists the rules; show, pin, ban, revoke, export and import are its verbs",
    ),
    "decisions": Verb(
        "neardup.cli.decisions",
        "decisions of people about pages: lists them; undo, and export as labelled pairs, are its verbs",
    ),
    "rethreshold": Verb(
        "neardup.cli.rethreshold",
        "what the store would hold with another distance, resemblance or minimum of words; --apply"
        " makes it so",
    ),
    "match": Verb(
        "neardup.cli.match",
        "near-duplicates of a batch of queries in a file of fingerprints (.npy, Parquet) larger than memory",
    ),
    "pairs": Verb("neardup.cli.pairs", "all near-duplicates within one file of fingerprints (.npy, Parquet)"),
    "mirrors": Verb("neardup.cli.mirrors", "pairs of hosts and folders that have the same pages"),
    "collection": Verb(
        "neardup.cli.collection",
        "stored pages: datasets (build), near-duplicates (clusters), PageRank (pagerank), elections"
        " (elect), clean-up by queries (clean), mirrored hosts (mirrors)",
    ),
    "plan": Verb(
        "neardup.cli.plan",
        "which index suits so many pages on this machine, and what it costs there",
    ),
    "evaluate": Verb(
        "neardup.cli.evaluate",
        "precision and recall of features, distances and verification, on labelled pairs or on pages",
    ),
    "learn-idf": Verb(
        "neardup.cli.learn_idf",
        "learn a table of word frequencies from the pages in folders, or from those stored, for word-"
        " tfidf:FILE",
    ),
    "db": Verb(
        "neardup.cli.db",
        "the database: what it holds (info, stats), whether it is whole (check), its tables (upgrade),"
        " old pages (prune), export and import",
    ),
}


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="neardup", description="Near-duplicate pages of web crawls.")
    version = f"neardup {neardup.__version__}, {native.describe()}"
    parser.add_argument("--version", action="version", version=version)
    add_verbs(parser, VERBS, dest="verb")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; 0 if it did what it was told, 1 with a message if it could not, 130 after Ctrl-C."""
    if isinstance(sys.stdout, TextIOWrapper):
        # What is printed comes from the web, and a terminal or a file may not know all of its characters.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        parsed = make_parser().parse_args(arguments)  # which imports the verb, and may take a second
        parsed.run(parsed)
        sys.stdout.flush()
    except NeardupError as exc:
        complain(exc)
        return 1
    except KeyboardInterrupt:
        print("\nneardup: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _flush_or_close()  # its reader has had enough, as head(1) does; those of processes have other errors
    except OSError as exc:  # such as a full disk behind standard output
        _flush_or_close()
        complain(exc)
        return 1
    return 0


def _flush_or_close() -> None:
    """Close a standard output that takes no more: Python would try again at exit, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            sys.stdout.close()
