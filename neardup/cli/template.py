"""``neardup show --template``: what of a page is taken for template on its host."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from neardup.cli import database
from neardup.cli.fetch import fetch
from neardup.cli.output import printable, show_json
from neardup.detection.template_words import are_template
from neardup.errors import NeardupError
from neardup.store import explore
from neardup.store.frequencies import frequencies_of
from neardup.store.types import stored_host
from neardup.text.visible_text import parse

if TYPE_CHECKING:
    import argparse

    from neardup.detection.document_frequencies import HostFrequencies
    from neardup.fingerprint.reader import Reader

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Run:
    """Words in a row that are all template, or none of them."""

    template: bool
    words: str


@dataclass(frozen=True, slots=True)
class Marked:
    """A page with its template marked.

    ``pages`` is how many pages of the host were counted. A shingle on more than ``limit`` of them is
    template. ``share`` is that of the words of the page, 0 to 1.
    """

    host: str
    url: str
    pages: int
    limit: int
    share: float
    runs: list[Run]


def show(arguments: argparse.Namespace) -> None:
    """Print a page of a host with its template marked."""
    options = database.read_options(arguments)
    reader = options.detector.make_reader()
    host = stored_host(arguments.template.lower())
    with (
        database.open_store(options, scheme=str(reader.scheme)) as store,
        store.reading() as connection,
    ):
        known = frequencies_of(connection, [host]).of(host)
        canonical = None if arguments.page else explore.canonical_of_host(connection, host)
    if known is None:
        raise NeardupError(f"nothing is known of the template of {printable(host)} in {store.location}")
    page = arguments.page or (canonical.url if canonical else None)
    if page is None:
        raise NeardupError(f"no canonical page of {printable(host)} is stored; give one by --page")
    marked = _marked(host, page, known, reader, private=arguments.private)
    if arguments.format == "json":
        show_json(asdict(marked))
        return
    print(
        f"{printable(marked.url)}: {100 * marked.share:.1f} % of the words are template, which is what more"
        f" than {marked.limit} of {marked.pages} pages of {printable(marked.host)} have"
    )
    for run in marked.runs:
        text = printable(run.words)
        if sys.stdout.isatty():
            print(f"{_DIM}{text}{_PLAIN}" if run.template else text)
        else:
            print(f"{'template' if run.template else 'own     '}  {text}")


def _marked(host: str, page: str, known: HostFrequencies, reader: Reader, *, private: bool) -> Marked:
    response = fetch(page, private=private)
    reading = reader.read_response(response)
    root = parse(response.text)
    text = "" if root is None else reader.content.text(response.url, root)
    words = reader.features.words(text)
    is_template = are_template(known, reading.shingles, len(words))
    runs = [
        Run(template, " ".join(word for word, _ in run))
        for template, run in groupby(zip(words, is_template.tolist(), strict=True), key=lambda pair: pair[1])
    ]
    share = float(is_template.mean()) if words else 0.0
    return Marked(host, response.url, known.pages, known.limit, share, runs)
