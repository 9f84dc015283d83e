"""Getting a single page, as the crawl would see it, without being led into a private network on the way."""

from __future__ import annotations

import re
import socket
import ssl
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    getproxies,
    proxy_bypass,
)

from scrapy.http import Headers, HtmlResponse
from scrapy.responsetypes import responsetypes
from w3lib.url import file_uri_to_path, safe_url_string

from neardup.address import STANDARD_PORTS, place_of
from neardup.errors import NeardupError
from neardup.urls.networks import is_private

if TYPE_CHECKING:
    from collections.abc import Sequence
    from http.client import HTTPResponse
    from urllib.parse import SplitResult

_TIMEOUT_SECONDS = 30
"""Longest wait for a connection and for each part of an answer."""

_MOST_SECONDS = 180
"""Longest time for all of a page: a server may send a byte now and then."""

_MOST_BYTES = 100_000_000
_AT_ONCE = 1 << 16
_MOST_REDIRECTS = 10
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_USER_AGENT = "neardup (near-duplicate detection; check)"

_EXPECTED = "the URL or the file of an HTML page is expected"

_SENDABLE = re.compile(r"[!-~]+")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):", re.IGNORECASE)


def fetch(page: str, *, private: bool = False, trusted: bool = True, as_stored: bool = False) -> HtmlResponse:
    """The HTML page at an http(s) or file URL or at a path; NeardupError says why there is none.

    A URL is quoted as Scrapy quotes it. With ``as_stored``, the URL is asked for as it stands, if HTTP can
    say it. An archive may have ``'`` where Scrapy writes ``%27``, and a server may know only one of them.

    A ``trusted`` first URL may lead anywhere: whoever gives it knows where. One that is not trusted is like
    a redirect. A redirect never leads to anything but http(s). Unless ``private``, a redirect leads to a
    private address only at the host and port of a first URL that is trusted.
    """
    if not page.strip():
        raise NeardupError(f"{page!r} is empty; {_EXPECTED}")
    scheme = _scheme(page)
    if scheme in STANDARD_PORTS:
        is_ready = as_stored and _SENDABLE.fullmatch(page)
        response = _get(page if is_ready else _quoted(page), private=private, trusted=trusted)
    elif trusted or private:
        response = _read(page, scheme)
    else:
        raise NeardupError(f"{page} cannot be fetched: only http(s) URLs are; --private allows files")
    if not isinstance(response, HtmlResponse):
        raise NeardupError(f"{page} is no HTML page; {_EXPECTED}")
    return response


class _Way:
    """The way of one fetch through its redirects: which addresses each place has, found once and checked.

    Connections are made to the checked addresses and to no others. So a name that resolves to another address
    a moment later (DNS rebinding) leads nowhere else. Through a proxy, which resolves names by itself, the
    addresses are only checked.
    """

    def __init__(self, *, private: bool, trusted: bool) -> None:
        self.private = private
        self.trusted = trusted
        self._addresses: dict[str, list[str]] = {}

    def open(self, url: str) -> HTTPResponse:
        """The answer to a request for a URL, whatever its status, with its body still to be read."""
        parts = urlsplit(url)
        if parts.scheme not in STANDARD_PORTS:
            raise NeardupError(f"a redirect leads to {url}: only http(s) URLs are followed")
        if parts.username is not None or parts.password is not None or not place_of(url):
            # Not shown: what stands there may be a password.
            raise NeardupError("a URL without a host, or with a user in it, is not fetched")
        proxied = parts.scheme in getproxies() and not proxy_bypass(parts.netloc)
        addresses = self._checked(parts, url, proxied=proxied)
        opener = OpenerDirector()  # none of the handlers for file, ftp and data URLs, nor that for redirects
        if proxied:
            handlers: tuple[Any, ...] = (ProxyHandler(), HTTPHandler(), HTTPSHandler())
        else:
            handlers = (_Http(addresses), _Https(addresses))
        for handler in handlers:
            opener.add_handler(handler)
        request = Request(url, headers={"User-Agent": _USER_AGENT})  # noqa: S310  # http(s)
        answer: HTTPResponse = opener.open(request, timeout=_TIMEOUT_SECONDS)
        return answer

    def _checked(self, parts: SplitResult, url: str, *, proxied: bool) -> list[str]:
        assert parts.hostname is not None
        place = place_of(url)
        known = self._addresses.get(place)
        if known or (proxied and known is not None):
            return known
        to_check = (bool(self._addresses) or not self.trusted) and not self.private
        found: list[str] = []
        if to_check or not proxied:
            port = parts.port or STANDARD_PORTS[parts.scheme]
            resolved = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(str(one[4][0]) for one in resolved))
        for address in found if to_check else ():
            if is_private(address):
                led = "a redirect leads" if self._addresses else "the URL leads"
                raise NeardupError(f"{led} to {url} at the private address {address}; --private follows it")
        self._addresses[place] = found
        return found


class _Http(HTTPHandler):
    def __init__(self, addresses: Sequence[str]) -> None:
        super().__init__()
        self.addresses = addresses

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_Connection, addresses=self.addresses), req)


class _Https(HTTPSHandler):
    def __init__(self, addresses: Sequence[str]) -> None:
        super().__init__()
        self.addresses = addresses

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_SecureConnection, addresses=self.addresses), req)


class _Connection(HTTPConnection):
    """A connection to addresses that are known already."""

    def __init__(self, host: str, *, addresses: Sequence[str], timeout: float) -> None:
        super().__init__(host, timeout=timeout)
        self.addresses = addresses

    def connect(self) -> None:
        self.sock = _connected(self.addresses, self.port)


class _SecureConnection(HTTPSConnection):
    """The same with TLS; the certificate must be that of the host's name."""

    def __init__(self, host: str, *, addresses: Sequence[str], timeout: float) -> None:
        super().__init__(host, timeout=timeout)
        self.addresses = addresses

    def connect(self) -> None:
        plain = _connected(self.addresses, self.port)
        self.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=self.host)


def _connected(addresses: Sequence[str], port: int) -> socket.socket:
    """A socket connected to the first of the addresses that answers."""
    failure = OSError("its host has no address")
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=_TIMEOUT_SECONDS)
        except OSError as exc:
            failure = exc
    raise failure


def _quoted(url: str) -> str:
    try:
        return safe_url_string(url)
    except ValueError as exc:
        raise NeardupError(f"{_without_user(url)} cannot be fetched: {exc}") from exc


def _get(url: str, *, private: bool, trusted: bool) -> object:
    deadline = monotonic() + _MOST_SECONDS
    way = _Way(private=private, trusted=trusted)
    try:
        at = url
        for _ in range(_MOST_REDIRECTS + 1):
            with way.open(at) as answer:
                location = answer.headers["Location"]
                if answer.status in _REDIRECTS and location:
                    at = _target(at, location)
                    continue
                if not 200 <= answer.status < 300:
                    raise NeardupError(f"HTTP status {answer.status}")
                headers, body = Headers(answer.headers.items()), _body(answer, deadline)
                break
        else:
            raise NeardupError(f"there are more than {_MOST_REDIRECTS} redirects")
    except (OSError, ValueError, HTTPException, NeardupError) as exc:
        raise NeardupError(f"{_without_user(url)} cannot be fetched: {exc}") from exc
    response_type = responsetypes.from_args(headers=headers, url=at, body=body)
    return response_type(at, headers=headers, body=body)


def _target(at: str, location: str) -> str:
    """Where a redirect leads; NeardupError names it if that is no URL."""
    try:
        # Header values are bytes, which http.client reads as Latin-1.
        return urljoin(at, safe_url_string(location.encode("iso-8859-1")))
    except ValueError as exc:
        raise NeardupError(f"a redirect leads to {_without_user(location)}, which is no URL: {exc}") from exc


def _body(answer: HTTPResponse, deadline: float) -> bytes:
    body = bytearray()
    while part := answer.read1(_AT_ONCE):
        body += part
        if len(body) > _MOST_BYTES:
            raise NeardupError(f"it is larger than {_MOST_BYTES:,} bytes")
        if monotonic() > deadline:
            raise NeardupError(f"it takes longer than {_MOST_SECONDS} seconds")
    return bytes(body)


def _without_user(url: str) -> str:
    """The URL for messages: what stands before an @ in its host may be a password."""
    return re.sub(r"(?<=//)[^/?#]*@", "***@", url, count=1)


def _scheme(page: str) -> str:
    found = _SCHEME.match(page)
    return found[1].lower() if found else ""


def _read(page: str, scheme: str) -> object:
    path = Path(file_uri_to_path(page) if scheme == "file" else page).expanduser()
    try:
        with path.open("rb") as file:
            body = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as exc:
        if scheme in {"", "file"}:
            raise NeardupError(
                f"{page} is neither an http(s) URL nor a file that can be read: {exc}"
            ) from exc
        raise NeardupError(f"{page} cannot be fetched: only http(s) and file URLs are, not {scheme}") from exc
    if len(body) > _MOST_BYTES:
        raise NeardupError(f"{page} is larger than {_MOST_BYTES:,} bytes")
    response_type = responsetypes.from_args(filename=str(path), body=body)
    return response_type(path.resolve().as_uri(), body=body)
