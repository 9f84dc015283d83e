"""Keeps web pages from leading a crawl to files of this machine and into networks that only this machine can
reach.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IResolutionReceiver
from zope.interface import implementer  # type: ignore[import-untyped]

from neardup.address import STANDARD_PORTS, is_web, place_of
from neardup.urls.networks import is_private, literal_address

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response
    from twisted.internet.interfaces import IAddress, IHostResolution

try:
    from scrapy.exceptions import CannotResolveHostError as _Unresolved
except ImportError:  # before Scrapy 2.15
    from twisted.internet.error import DNSLookupError as _Unresolved  # type: ignore[assignment]

logger = logging.getLogger(__name__)

FREE = "neardup_guard"
"""Key of ``Request.meta``: the place, or scheme, that the request may go to unchecked. A request that is made
of another one, and leads to another place, says nothing by it, so a copied meta does no harm.
"""

_PUBLIC_SECONDS = 10.0
"""How long a name that was public is not looked up again; aiohttp, too, keeps an answer so long."""

_MOST_NAMES = 10_000


class PrivateNetworkMiddleware:
    """Refuse requests to files and to private, loopback, link-local, multicast and reserved addresses, unless
    they are start requests.

    A start request may lead anywhere, since whoever gives the request knows where. Scrapy sets
    ``is_start_request`` in the meta of what ``start()`` yields. A URL typed in ``scrapy shell`` may lead
    anywhere, too. Every other request may come from a web page or a redirect. Such a request leads to http(s)
    only, and to a private address only at the host and port of a start request. A start URL whose host is
    public stays public.

    The middleware refuses by :exc:`~scrapy.exceptions.IgnoreRequest`. The first refusal is logged as a
    warning; all refusals are counted in ``neardup/guard_refused``.

    ``NEARDUP_GUARD = True`` installs this middleware with :class:`~neardup.scrapy.origin.OriginMiddleware`.
    This middleware may also stand alone in ``DOWNLOADER_MIDDLEWARES`` (at 90, before robots.txt is asked
    for). Alone, it refuses links from files to files as well.

    Names are looked up as Scrapy does it. With a reactor, and ``DNSCACHE_ENABLED``, the connection takes the
    answer that was checked. Without a reactor aiohttp looks the name up again, so the address that a response
    came from is checked, too. Through a proxy, which looks names up by itself, only the first address is
    checked.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        # Only scrapy shell has an engine without a crawl; its requests come from the keyboard, and no
        # callback is called.
        self._is_shell = not crawler.crawling
        # Whether a start place may be private: None until it is known where it leads.
        self._starts: dict[str, bool | None] = {}
        self._public: dict[str, float] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PrivateNetworkMiddleware:
        middleware = cls(crawler)
        crawler.signals.connect(middleware.note, signal=signals.request_scheduled)
        return middleware

    def is_told(self) -> None:
        """Rely on somebody else to call :meth:`note` with start requests before they are scheduled, and with
        links if a later run may make them.

        A signal takes three times as long, and a page has many links.
        """
        self._crawler.signals.disconnect(self.note, signal=signals.request_scheduled)

    def note(self, request: Request) -> None:
        """Take note of a start request, and write into a link that it may go where start requests go.

        A start request that the duplicates filter drops, as after a pause (JOBDIR), counts as well. So that
        is not done only when it is downloaded.
        """
        place, meta = goal(request.url), request.meta
        # Redirects, retries and copies of meta have the note of the request they are made of.
        free = meta.get(FREE)
        if free is None and (self._is_shell or meta.get("is_start_request")):
            free = meta[FREE] = place
        if not is_web(request.url):
            return
        if free == place:
            self._starts.setdefault(place, None)
        elif place in self._starts:
            # For the queue on disk: after a pause, links may come before the start requests.
            meta[FREE] = place

    async def process_request(self, request: Request) -> None:
        self.note(request)
        place = goal(request.url)
        if not is_web(request.url):
            if request.meta.get(FREE) != place:
                self._refuse(f"{place} URLs are not followed from web pages")
            return
        if not place:
            self._refuse("a URL without a host is not followed")
        is_start = self._is_start(request, place)
        if is_start and self._starts[place]:
            return
        private = await self._private_address(request)
        if is_start and self._starts[place] is None:
            self._starts[place] = private is not None
        # Another start request may have told meanwhile that the place is private.
        if private is not None and not (is_start and self._starts[place]):
            self._refuse(f"{place} has the private address {private}, and is no start URL's host and port")

    def process_response(self, request: Request, response: Response) -> Response:
        address = response.ip_address
        if address is None or request.meta.get("proxy") or not is_web(request.url):
            return response
        place = goal(request.url)
        private = is_private(str(address))
        if self._is_start(request, place):
            if self._starts[place] is None:
                self._starts[place] = private
            private = private and not self._starts[place]
        if private:
            self._refuse(f"{place} was answered from the private address {address}")
        return response

    def _is_start(self, request: Request, place: str) -> bool:
        if request.meta.get(FREE) == place:
            self._starts.setdefault(place, None)
        return place in self._starts

    async def _private_address(self, request: Request) -> str | None:
        """A private address that the request's host has; None if all are public, or only a
        proxy knows them.
        """
        host = _host_as_written(request.url)
        literal = literal_address(host)
        if literal is not None:
            return literal if is_private(literal) else None
        if self._public.get(host, 0.0) > monotonic():
            return None
        addresses = await _addresses(host, _port(request.url))
        private = next((address for address in addresses if is_private(address)), None)
        if addresses and private is None:
            self._public.pop(host, None)
            self._public[host] = monotonic() + _PUBLIC_SECONDS
            if len(self._public) > _MOST_NAMES:
                del self._public[next(iter(self._public))]
        elif not addresses and not _is_proxied(request):
            # Let pass, it could have an address by the time it is connected to. The retry middleware retries
            # this.
            raise _Unresolved(f"{host} cannot be resolved")
        return private

    def _refuse(self, reason: str) -> NoReturn:
        stats = self._crawler.stats
        assert stats is not None
        if not stats.get_value("neardup/guard_refused"):
            logger.warning(
                "A request was refused: %s. If it is wanted, give it as a start URL. Further ones are only"
                " counted"
                " (neardup/guard_refused).",
                reason,
            )
        stats.inc_value("neardup/guard_refused")
        raise IgnoreRequest(f"refused by neardup's guard: {reason}")


def _host_as_written(url: str) -> str:
    """In the spelling of the URL, which is the key of Scrapy's cache of names."""
    netloc = urlsplit(url).netloc.rpartition("@")[2]
    host, colon, port = netloc.rpartition(":")
    return host if colon and not port.endswith("]") else netloc


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or STANDARD_PORTS[parts.scheme]


def _is_proxied(request: Request) -> bool:
    parts = urlsplit(request.url)
    return bool(request.meta.get("proxy")) or (
        parts.scheme in getproxies() and not proxy_bypass(parts.hostname or "")
    )


async def _addresses(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, found without blocking; none if it cannot be resolved."""
    if is_reactor_installed():
        from twisted.internet import reactor  # noqa: PLC0415  # installs a reactor on import

        found: Deferred[list[str]] = Deferred()
        reactor.nameResolver.resolveHostName(_Receiver(found), host, port)
        return await maybe_deferred_to_future(found)
    try:
        resolved = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # ValueError: no name (a label is empty or too long)
        return []
    return [str(one[4][0]) for one in resolved]


@implementer(IResolutionReceiver)
class _Receiver:
    """Collects what the reactor's resolver finds."""

    def __init__(self, found: Deferred[list[str]]) -> None:
        self._found = found
        self._addresses: list[str] = []

    def resolutionBegan(self, resolution: IHostResolution) -> None:  # noqa: N802
        """Nothing to do: a look-up is not cancelled."""

    def addressResolved(self, address: IAddress) -> None:  # noqa: N802
        self._addresses.append(address.host)

    def resolutionComplete(self) -> None:  # noqa: N802
        self._found.callback(self._addresses)


def goal(url: str) -> str:
    """The place of an http(s) URL; of any other its scheme."""
    return place_of(url) if is_web(url) else url.partition(":")[0].lower() + ":"
