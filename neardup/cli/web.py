"""``neardup web``: explore what crawls have stored, in a browser."""

from __future__ import annotations

import getpass
import secrets
import webbrowser
from functools import partial
from typing import TYPE_CHECKING

from neardup.cli import database, listening
from neardup.cli.fetch import fetch
from neardup.cli.rules import stored_rule
from neardup.web.extra import needed_for

if TYPE_CHECKING:
    import argparse

    from neardup.web.security import Secret

_PORT = 8642


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    listening.add_arguments(parser, port=_PORT)
    parser.add_argument(
        "--private",
        action="store_true",
        help="let pages be fetched from private networks and from files, too",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def run(arguments: argparse.Namespace) -> None:
    with needed_for("neardup web"):
        from neardup.web import background  # noqa: PLC0415
        from neardup.web.app import application  # noqa: PLC0415
        from neardup.web.checking import KnownPages  # noqa: PLC0415
        from neardup.web.counting import Figures  # noqa: PLC0415
        from neardup.web.security import TOKEN, Secret  # noqa: PLC0415
        from neardup.web.server import listen, loaded, serve  # noqa: PLC0415
        from neardup.web.site import Site  # noqa: PLC0415
        from neardup.web.trials import Trials  # noqa: PLC0415
    options = database.read_options(arguments)
    reader = options.detector.make_reader(keeps_text=options.keep_text)
    password = listening.password(arguments)
    token = secrets.token_urlsafe(24)
    secret: Secret = Secret(token) if password is None else Secret(password, is_password=True)
    background.prepare()
    with database.open_store(options) as store, listen(arguments.host, arguments.port) as socket:
        rule = stored_rule(store)
        site = Site(
            store=store,
            rule=rule,
            figures=Figures(store, rule),
            trials=Trials(store, rule),
            known=KnownPages(store, options.detector),
            secret=secret,
            options=options.detector,
            reader=reader,
            fetch=partial(fetch, private=arguments.private, trusted=False),
            person=getpass.getuser(),
            settings=options.recorded,
        )
        server = loaded(application(site, names=listening.names(arguments)))
        address = listening.address(arguments.host, socket)
        if password is None:
            address += f"?{TOKEN}={token}"
        print(f"{store.location}\n{address}\nCtrl-C ends it", flush=True)
        if not arguments.no_browser and listening.is_loopback(arguments.host):
            webbrowser.open(address)
        try:
            serve(server, socket)
        finally:
            site.figures.stop()
            site.trials.stop()
