"""What a URL says before anything is fetched: the address of a page, its key, its host, and the place it
connects to.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote, urlsplit

STANDARD_PORTS = {"http": 80, "https": 443}
"""The schemes of the web with the ports that a URL need not name."""


def page_url(url: str) -> str:
    r"""The URL that identifies a page: without its fragment, which no server ever sees, and safe to print.

    What cannot be printed (line ends, terminal control, marks that turn the direction of writing) is
    percent-encoded, as Scrapy does in its requests: a URL from an item must not forge a line of the log.

    >>> page_url("http://a.example/x?y=1#part"), page_url("http://a.example/\x1b[2J\u202e")
    ('http://a.example/x?y=1', 'http://a.example/%1B[2J%E2%80%AE')
    """
    url = url.partition("#")[0]
    if url.isprintable():
        return url
    return "".join(c if c.isprintable() else quote(c, errors="surrogatepass") for c in url)


def url_key(url: str) -> bytes:
    """16-byte BLAKE2b digest of a page's URL: the unique key of a page, for URLs of any length.

    Not a fast hash: whoever could make two URLs collide could make one page pass for another.
    """
    return key_of(encoded_url(url))


def encoded_url(url: str) -> bytes:
    """A URL as the bytes that its key is made of and that are kept of it."""
    return url.encode("utf-8", "surrogatepass")


def key_of(encoded: bytes) -> bytes:
    """:func:`url_key` of a URL that is encoded already."""
    return hashlib.blake2b(encoded, digest_size=16).digest()


def host_of(url: str) -> str:
    """Host of a URL in lower case and, if it is international, in the form that it has in requests; "" if
    there is none.
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except ValueError:
        return ""


def is_web(url: str) -> bool:
    """Whether it is an http(s) URL.

    >>> is_web("HTTPS://a.example/"), is_web("file:///etc/passwd")
    (True, False)
    """
    return url.partition(":")[0].lower() in STANDARD_PORTS


def place_of(url: str) -> str:
    """What an http(s) URL connects to: its host, with the port unless it is the standard one, so that http
    may lead to https.

    "" if there is no host or it cannot be read.

    >>> place_of("http://user@A.Example.:80/x"), place_of("https://a.example"), place_of("http://[::1]:8080/")
    ('a.example', 'a.example', '[::1]:8080')
    """
    host = host_of(url)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if not host or port is None or port == STANDARD_PORTS.get(parts.scheme):
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
