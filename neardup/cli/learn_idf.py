"""``neardup learn-idf``: a table of inverse document frequencies for ``word-tfidf:FILE``, from the pages in
folders or those stored.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.address import host_of
from neardup.cli import database
from neardup.cli.arguments import count
from neardup.cli.fetch import fetch
from neardup.cli.output import complain
from neardup.cli.progress import Progress, interruptible
from neardup.errors import ConfigurationError, NeardupError
from neardup.store import page_report
from neardup.store.whole_file import target
from neardup.text import idf
from neardup.text.features import HASH, Features
from neardup.text.folders import html_files, read_page
from neardup.text.limits import Limits
from neardup.text.visible_text import text_of_bytes, text_of_html

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    Source = tuple[str, Callable[[], str]]

MIN_PAGES = 2
_BASE = "word-tf"
_PAUSE_SECONDS = 1.0
"""Between two pages of one host, as a crawl has it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="every HTML page below it counts")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the table (.npz)")
    parser.add_argument("--name", help="name of the table in the scheme (default: that of FILE)")
    parser.add_argument(
        "--min-pages",
        type=count,
        default=MIN_PAGES,
        metavar="N",
        help="leave out words of fewer pages (default: %(default)s)",
    )
    parser.add_argument(
        "--modifiers",
        default="",
        metavar="M",
        help="those of the features it is for, such as stop-english+stem-porter (default: none)",
    )
    parser.add_argument(
        "--from-store",
        action="store_true",
        help="learn from the canonical pages of the database: files are read, others fetched, one a second",
    )
    database.add_arguments(parser)
    parser.add_argument("--limit", type=count, metavar="N", help="at most so many stored pages")


def run(arguments: argparse.Namespace) -> None:
    if bool(arguments.folders) == arguments.from_store:
        raise ConfigurationError("give either folders or --from-store")
    name = idf.check_name(arguments.out.stem if arguments.name is None else arguments.name)
    features = Features("+".join(filter(None, (_BASE, *arguments.modifiers.split("+")))))
    if not arguments.out.parent.is_dir():
        # Not only after all pages have been read.
        raise ConfigurationError(f"{arguments.out} cannot be written: {arguments.out.parent} is not a folder")
    out = target(arguments.out)
    with interruptible(f"{arguments.out} is not written"):
        pages = _stored(arguments) if arguments.from_store else _in_folders(arguments.folders)
        table = _learn(pages, features).frequencies(
            name,
            modifiers=features.name.removeprefix(_BASE),
            hashed_by=HASH,
            min_pages=arguments.min_pages,
        )
        table.save(out)
    print(
        f"{arguments.out}: {table.identity}, {table.hashes.size:,} words of {table.pages:,} different pages"
    )
    print(f"features: word-tfidf:{arguments.out}{table.modifiers}")


def _in_folders(folders: list[str]) -> list[Source]:
    files = html_files(folders)
    if not files:
        raise ConfigurationError(f"no HTML page below {', '.join(folders)}")
    return [(str(path), partial(_text_of_file, path)) for path in files]


def _text_of_file(path: Path) -> str:
    return text_of_bytes(read_page(path))


def _stored(arguments: argparse.Namespace) -> list[Source]:
    # Duplicates would count the words of one page many times; pages of no words count nowhere.
    with database.open_store(database.read_options(arguments)) as store, store.reading() as connection:
        ids, _ = page_report.canonical_fingerprints(connection, min_features=1)
        chosen: list[int] = ids[: arguments.limit].tolist()
        urls = list(page_report.urls_of(connection, chosen).values())
    if not urls:
        raise ConfigurationError(f"no page with words is stored in {store.location}")
    fetched = _Fetched()
    return [(url, partial(fetched.text, url)) for url in urls]


class _Fetched:
    """Pages by their URLs; a host is not asked again before a pause is over."""

    def __init__(self) -> None:
        self._asked: dict[str, float] = {}

    def text(self, url: str) -> str:
        host = host_of(url)
        if host in self._asked:
            time.sleep(max(0.0, self._asked[host] + _PAUSE_SECONDS - time.monotonic()))
        try:
            return text_of_html(fetch(url).text)
        finally:
            if host:
                self._asked[host] = time.monotonic()


def _learn(pages: list[Source], features: Features) -> idf.Learner:
    learner = idf.Learner()
    copies = failed = 0
    progress = Progress("pages", len(pages))
    for done, (name, text) in enumerate(pages):
        progress(done)
        try:
            extracted = features.extract(text(), Limits().check_words)
        except (NeardupError, ValueError) as exc:
            failed += 1
            complain(f"{name} is left out: {exc}")
            continue
        copies += not learner.add(extracted.words, extracted.hashes)
    print(
        f"{len(pages):,} pages: {learner.pages:,} different, {copies:,} copies or without words, {failed:,}"
        " left out",
        file=sys.stderr,
    )
    return learner
