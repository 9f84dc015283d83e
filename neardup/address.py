"""What a URL says before anything is fetched: the address of a page, its key, its host, and the place it
connects to.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from tldextract import TLDExtract

STANDARD_PORTS = {"http": 80, "https": 443}
"""The schemes of the web with the ports that a URL need not name."""

_WEB = tuple(f"{scheme}:" for scheme in STANDARD_PORTS)

_HOSTS_REMEMBERED = 10_000


@dataclass(frozen=True)
class Address:
    """The address of a page, and what follows from the URL.

    Each part is made once, when somebody asks for that part. ``url`` is as :func:`page_url` gives it;
    :meth:`of` takes any URL.

    >>> page = Address.of("http://Shop.Example.co.uk:8080/a#top")
    >>> page.url, page.host, page.domain, len(page.key)
    ('http://Shop.Example.co.uk:8080/a', 'shop.example.co.uk', 'example.co.uk', 16)
    """

    url: str

    @classmethod
    def of(cls, url: str) -> Address:
        return cls(page_url(url))

    @cached_property
    def encoded(self) -> bytes:
        """The URL as the bytes that the key is made of and that memory keeps."""
        return encoded_url(self.url)

    @cached_property
    def key(self) -> bytes:
        """See :func:`key_of`."""
        return key_of(self.encoded)

    @cached_property
    def host(self) -> str:
        """See :func:`host_of`."""
        return host_of(self.url)

    @cached_property
    def domain(self) -> str:
        """See :func:`registered_domain`."""
        return registered_domain(self.host)


def without_host(url: str) -> str:
    """What stands in a URL behind the first slash after the host.

    >>> without_host("http://a.example/x/y?z=1"), without_host("http://a.example")
    ('x/y?z=1', '')
    """
    return url.partition("://")[2].partition("/")[2]


def page_url(url: str) -> str:
    r"""The URL that identifies a page: without its fragment, which no server ever sees, and safe to print.

    Line ends, terminal control and marks that turn the direction of writing cannot be printed. Such
    characters are percent-encoded, as Scrapy does in its requests: a URL from an item must not forge a line
    of the log.

    >>> page_url("http://a.example/x?y=1#part"), page_url("http://a.example/\x1b[2J\u202e")
    ('http://a.example/x?y=1', 'http://a.example/%1B[2J%E2%80%AE')
    """
    if "#" in url:
        url = url.partition("#")[0]
    if url.isprintable():
        return url
    return "".join(c if c.isprintable() else quote(c, errors="surrogatepass") for c in url)


def encoded_url(url: str) -> bytes:
    """A URL as bytes; a lone surrogate, which UTF-8 does not know, becomes three bytes."""
    return url.encode("utf-8", "surrogatepass")


def key_of(encoded: bytes) -> bytes:
    """16-byte BLAKE2b digest of an encoded URL: the unique key of a page, for URLs of any length.

    BLAKE2b is no fast hash: whoever could make two URLs collide could make one page pass for another.
    """
    return hashlib.blake2b(encoded, digest_size=16).digest()


def host_of(url: str) -> str:
    """Host of a URL in lower case and, if it is international, in the form that it has in requests; "" if
    there is none.

    >>> host_of("http://user@A.Example.:80/x"), host_of("http://Bücher.example?q=//y"), host_of("/x")
    ('a.example', 'xn--bcher-kva.example', '')
    """
    # What comes after the authority says nothing of the host, and few sites are met at a time.
    authority = _AUTHORITY.match(url)
    return _read_host(url) if authority is None else _host_of_authority(authority[0])


_AUTHORITY = re.compile(r"[^/?#]{0,20}//[^/?#]{0,300}(?=[/?#])")
"""A scheme and an authority of a usual length."""


@lru_cache(_HOSTS_REMEMBERED)
def _host_of_authority(url: str) -> str:
    return _read_host(url)


def _read_host(url: str) -> str:
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except ValueError:
        return ""


def ip_text(text: str) -> str:
    """The one text of an IP address; "" if it is none. What names a network card of this machine is left out.

    >>> ip_text("2001:DB8:0::1"), ip_text("::ffff:192.0.2.7"), ip_text("fe80::1%eth0"), ip_text("a.example")
    ('2001:db8::1', '192.0.2.7', 'fe80::1', '')
    """
    try:
        ip = ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    return str((isinstance(ip, IPv6Address) and ip.ipv4_mapped) or ip)


def is_web(url: str) -> bool:
    """Whether it is an http(s) URL.

    >>> is_web("HTTPS://a.example/"), is_web("file:///etc/passwd")
    (True, False)
    """
    # Asked of each link: as a rule the scheme is written in lower case.
    return url.startswith(_WEB) or url.partition(":")[0].lower() in STANDARD_PORTS


def place_of(url: str) -> str:
    """What an http(s) URL connects to: its host, with the port unless it is the standard one, so that http
    may lead to https.

    "" if there is no host or it cannot be read.

    >>> place_of("http://user@A.Example.:80/x"), place_of("https://a.example"), place_of("http://[::1]:8080/")
    ('a.example', 'a.example', '[::1]:8080')
    """
    authority = _AUTHORITY.match(url)
    return _read_place(url) if authority is None else _place_of_authority(authority[0])


@lru_cache(_HOSTS_REMEMBERED)
def _place_of_authority(url: str) -> str:
    return _read_place(url)


def _read_place(url: str) -> str:
    host = host_of(url)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if not host or port is None or port == STANDARD_PORTS.get(parts.scheme):
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@lru_cache(_HOSTS_REMEMBERED)
def registered_domain(host: str) -> str:
    """What somebody registered: one label more than the public suffix (publicsuffix.org, as tldextract brings
    it; nothing is fetched).

    The list's private part counts: two users of github.io are two sites. An IP address, a host below no
    public suffix and a public suffix itself stand for themselves.

    >>> [registered_domain(host) for host in ("www.shop.example.co.uk", "one.github.io", "10.0.0.1")]
    ['example.co.uk', 'one.github.io', '10.0.0.1']
    """
    parts = _suffixes().extract_str(host)
    return f"{parts.domain}.{parts.suffix}" if parts.domain and parts.suffix else host


def may_be_one_site(host: str, other: str) -> bool:
    """Whether two hosts are one, or have one registered domain."""
    return host == other or registered_domain(host) == registered_domain(other)


@cache
def _suffixes() -> TLDExtract:
    from tldextract import TLDExtract  # noqa: PLC0415 -- 0.1 s that only those pay who ask for domains

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
