"""Where a server of this machine listens, and what others must know who ask it."""

from __future__ import annotations

import argparse
import getpass
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from socket import socket

_SHORTEST_PASSWORD = 10
_HIGHEST_PORT = 65_535


def add_arguments(parser: argparse.ArgumentParser, *, port: int) -> None:
    """Add ``--host``, ``--port``, ``--name`` and ``--password-file``."""
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen at (default: 127.0.0.1); another asks for a password",
    )
    parser.add_argument("--port", type=_port, default=port, help=f"default: {port}; 0: any free one")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        help="host name by which clients may ask, such as that of a proxy",
    )
    parser.add_argument(
        "--password-file", type=Path, metavar="FILE", help="read the password there instead of asking for it"
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a whole number from 0 to {_HIGHEST_PORT}")
    return int(text)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def names(arguments: argparse.Namespace) -> frozenset[str]:
    """Host names by which the server may be asked. A name to listen at is one of them."""
    host = arguments.host
    is_address = host.replace(".", "").isdecimal() or ":" in host
    return frozenset(arguments.name if is_address else [*arguments.name, host])


def address(host: str, listening: socket) -> str:
    """The URL of the server."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/"


def password(arguments: argparse.Namespace) -> str | None:
    """What others must know; None if only this machine reaches the server and no file was named."""
    if arguments.password_file is not None:
        try:
            given: str = arguments.password_file.read_text("utf-8").strip()
        except OSError as exc:
            raise ConfigurationError(f"{arguments.password_file} cannot be read: {exc.strerror}") from exc
    elif is_loopback(arguments.host):
        return None
    elif sys.stdin.isatty():
        given = getpass.getpass(f"Password for everyone who reaches {arguments.host}: ")
    else:
        raise ConfigurationError(f"--host {arguments.host} is open to others: --password-file FILE is needed")
    if len(given) < _SHORTEST_PASSWORD:
        raise ConfigurationError(f"the password must have {_SHORTEST_PASSWORD} characters or more")
    return given
