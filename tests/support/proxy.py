"""A TCP proxy that behaves as networks and servers do on bad days: slow, cut, silent, gone."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tests.support.databases import SERVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

_RESET = struct.pack(
    "ii", 1, 0
)  # linger for no time: what is not sent is dropped, and the other side told so


class _Link:
    """One connection through the proxy: two sockets, and a thread for each direction."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy = proxy
        self.sockets = client, server
        self.dead = False
        """Swallows everything from now on, even when the proxy is well again: what has been swallowed never
        comes back.
        """
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.proxy.passed += 1
                time.sleep(self.proxy.delay)
                if not self.dead:
                    sink.sendall(data)
        if not self.dead:
            self.cut()

    def cut(self) -> None:
        for end in self.sockets:
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Proxy:
    """Listens on a free port of 127.0.0.1 and passes everything on to a server.

    ``delay``: seconds that each piece waits in either direction. ``passed`` counts the pieces.
    """

    def __init__(self, host: str, port: int) -> None:
        self.delay = 0.0
        self.passed = 0
        self._target = host, port
        self._links: list[_Link] = []
        self._silent = False
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]

    def cut(self) -> None:
        """Reset every connection; new ones are taken."""
        links, self._links = self._links, []
        for link in links:
            link.cut()

    def go_silent(self) -> None:
        """Half-open: connections stay, and new ones are accepted, but nothing sent arrives and nothing is
        answered.
        """
        self._silent = True
        for link in self._links:
            link.dead = True

    def go_away(self) -> None:
        """Cut everything and refuse connections, as a server that is stopped."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def come_back(self) -> None:
        """Take new connections again, and pass on what they say."""
        self._silent = False
        if self._listener.fileno() == -1:
            self._listener = self._listen(self.port)

    def close(self) -> None:
        self.go_away()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                link = _Link(self, client, socket.create_connection(self._target))
                link.dead = self._silent
                self._links.append(link)


@contextmanager
def through_proxy(url: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy before the server of a database URL, and the URL that goes through it."""
    parsed = sa.make_url(url)
    default = sa.make_url(SERVERS[parsed.get_backend_name()])
    port = parsed.port or default.port or {"postgresql": 5432, "mysql": 3306}[parsed.get_backend_name()]
    proxy = Proxy(parsed.host or "127.0.0.1", port)
    try:
        there = parsed.set(host="127.0.0.1", port=proxy.port)
        yield proxy, there.render_as_string(hide_password=False)
    finally:
        proxy.close()
