"""What a made site is, and the web server that serves it on loopback and notes what is asked for."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

HTML = "text/html; charset=utf-8"


@dataclass(frozen=True)
class Ask:
    """A request as a site sees it; ``target`` is path and query as they came."""

    method: str
    target: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    cookies: dict[str, str]
    host: str = ""
    """Scheme, name and port that were asked."""


@dataclass(frozen=True)
class Answer:
    """A response, in an ``encoding``; ``key`` names what it shows: two answers of one key are copies, and
    None is nothing that anybody wants.
    """

    body: str
    key: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": HTML})
    encoding: str = "utf-8"


class MadeSite:
    """A site: :meth:`answer` gives its pages, ``keys`` says what there is to be found on it.

    ``spider`` is the name of the one of :mod:`tests.support.sites.spiders` that crawls it, with
    ``arguments``. ``most_requests``: how many a crawl may make before it is called endless; 0 if the site
    ends by itself. ``items``: how many items the crawl yields; None: one for each page that it gets.
    """

    start = "/"
    spider = "follow"
    most_requests = 0

    def __init__(self) -> None:
        self.keys: frozenset[str] = frozenset()
        self.arguments: dict[str, str] = {}

    def begin(self) -> None:
        """Forget what the last crawl did."""

    def answer(self, ask: Ask) -> Answer:
        raise NotImplementedError


NOT_FOUND = Answer("<h1>Not found</h1><p>There is no such page.</p>", status=404)


def page(title: str, *parts: str, key: str | None = None, links: dict[str, str] | None = None) -> Answer:
    """An HTML page of a heading, parts (HTML, or a paragraph of text) and links, text by target."""
    blocks = [part if part.startswith("<") else f"<p>{part}</p>" for part in parts]
    anchors = " ".join(f'<a href="{target}">{text}</a>' for target, text in (links or {}).items())
    return Answer(
        f"<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1>"
        f"{''.join(blocks)}<nav>{anchors}</nav></body></html>",
        key=key,
    )


class Request(NamedTuple):
    """What the server has noted of a request."""

    target: str
    key: str | None
    status: int


@dataclass
class Served:
    """A site that is being served."""

    site: MadeSite
    url: str
    log: list[Request] = field(default_factory=list)

    @property
    def start(self) -> str:
        return self.url + self.site.start

    @property
    def found(self) -> set[str]:
        """The keys of all pages that were asked for."""
        return {request.key for request in self.log if request.key is not None}

    def begin(self) -> None:
        """Before the next crawl."""
        self.log.clear()
        self.site.begin()


@contextmanager
def serve_site(site: MadeSite, port: int = 0) -> Iterator[Served]:
    """Serve a site on a port of 127.0.0.1, by default a free one."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body leave together

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            cookies = SimpleCookie(self.headers.get("Cookie", ""))
            ask = Ask(
                self.command,
                self.path,
                parts.path,
                dict(parse_qsl(parts.query)),
                dict(parse_qsl(body)),
                {name: morsel.value for name, morsel in cookies.items()},
                f"http://{self.headers.get('Host', '')}",
            )
            with lock:
                answer = site.answer(ask)
                served.log.append(Request(self.path, answer.key, answer.status))
            encoded = answer.body.encode(answer.encoding)
            self.send_response(answer.status)
            for name, value in {**answer.headers, "Content-Length": str(len(encoded))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(encoded)
            self.wfile.flush()

        do_POST = do_GET  # noqa: N815 - the name that http.server calls

        def log_message(self, *args: object) -> None:
            """Keep the output free of access logs."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False  # connections are kept alive by clients that have gone
        request_queue_size = 64

        def handle_error(self, *args: object) -> None:
            """Keep the output free of clients that have been killed; what a site raises, the crawl meets as
            an error.
            """

    server = Server(("127.0.0.1", port), Handler)
    served = Served(site, f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.begin()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
