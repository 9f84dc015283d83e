"""Serving the live page on a port of this machine."""

from __future__ import annotations

import signal
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import uvicorn

from neardup.errors import NeardupError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

MOST_AT_ONCE = 100
"""Connections that are served at once; more get 503."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; ``port`` 0: on any free port. NeardupError: somebody else has the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, or asyncio lets the kernel wait 40 ms for more before a small answer leaves.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(MOST_AT_ONCE)
    except OSError as exc:
        made.close()
        raise NeardupError(
            f"port {port} of {host} cannot be served: {exc.strerror}; --port names another one"
        ) from exc
    return made


def loaded(app: ASGIApp) -> uvicorn.Server:
    """A server that has imported all that the first answer takes: call this before somebody is told where to
    ask.
    """
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        limit_concurrency=MOST_AT_ONCE,
        timeout_graceful_shutdown=2,
    )
    config.load()
    return uvicorn.Server(config)


def serve(server: uvicorn.Server, listening: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    # As Ctrl-C: uvicorn raises the signal once more when all is closed, and SIGTERM would end all at once.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
    finally:
        signal.signal(signal.SIGTERM, before)
