"""``neardup serve``: leave near-duplicates out of the answers of a search engine, over HTTP.

``POST /results`` takes an answer of Elasticsearch, OpenSearch or Solr. The same answer comes back with the
first results that are no near-duplicates of each other; each names the results that it hides.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from neardup.cli import database, listening
from neardup.detection.rule import VERIFY
from neardup.errors import ConfigurationError
from neardup.store import page_report
from neardup.web.extra import needed_for

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager

    from neardup.fingerprint.reader import Reader
    from neardup.store.store import Store

_PORT = 8643
_KEEP = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument(
        "--results",
        action="store_true",
        required=True,
        help="serve POST /results: an answer of a search engine in, the same without near-duplicates out",
    )
    parser.add_argument(
        "--keep",
        type=int,
        default=_KEEP,
        help=f"results of an answer (default: {_KEEP}); a request may say ?keep=",
    )
    parser.add_argument(
        "--url-field",
        metavar="NAME",
        default="url",
        help="field of a result with the URL of its page (default: url); without it, the id is the URL",
    )
    parser.add_argument(
        "--text-field",
        metavar="NAME",
        help="field with the text to compare by where the store does not know the page;"
        " the store is asked only if --database names it",
    )
    listening.add_arguments(parser, port=_PORT)


def run(arguments: argparse.Namespace) -> None:
    with needed_for("neardup serve"):
        from neardup.web.results import PATH, Cleaner, application, checked_keep  # noqa: PLC0415
        from neardup.web.security import Secret  # noqa: PLC0415
        from neardup.web.server import listen, loaded, serve  # noqa: PLC0415
    checked_keep(str(arguments.keep))
    options = database.read_options(arguments)
    reader = options.detector.make_reader()
    password = listening.password(arguments)
    stores: AbstractContextManager[Store | None] = nullcontext()
    if arguments.database or not arguments.text_field:
        stores = database.open_store(options)
    with stores as store, listen(arguments.host, arguments.port) as socket:
        if store is not None and arguments.text_field:
            _check_scheme(store, reader)
        cleaner = Cleaner(
            store=store,
            reader=reader,
            verify=options.detector.verify or VERIFY,
            keep=arguments.keep,
            url_field=arguments.url_field,
            text_field=arguments.text_field,
        )
        secret = None if password is None else Secret(password, is_password=True)
        server = loaded(application(cleaner, secret, names=listening.names(arguments)))
        address = listening.address(arguments.host, socket)
        where = f"texts of the field {arguments.text_field}" if store is None else store.location
        print(f"{where}\nPOST {address}{PATH[1:]}\nCtrl-C ends it", flush=True)
        serve(server, socket)


def _check_scheme(store: Store, reader: Reader) -> None:
    """Sketches of texts are compared with those of the store."""
    with store.looking() as connection:
        stored = page_report.stored_scheme(connection)
    if stored is not None and stored != str(reader.scheme):
        raise ConfigurationError(
            f"the store has sketches of the scheme {stored}, these settings make {reader.scheme}; start the"
            " command in the folder of the project, or leave out --text-field"
        )
