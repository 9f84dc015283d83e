"""Scope: how far from a page its canonical page may be, so that no site makes another site's pages count as
duplicates unnoticed.

A page that copies another site's page before that one is crawled becomes the canonical page of it. Within a
scope, only pages of the same host or registered domain are matched with each other.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

import mmh3

from neardup.address import host_of
from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from tldextract import TLDExtract

ANY = "any"
DOMAIN = "domain"
HOST = "host"
SCOPES = (ANY, DOMAIN, HOST)

_HOSTS_REMEMBERED = 10_000


class Scope:
    """Whether a page may be the canonical page of another: ``any`` page, one of the same registered
    ``domain``, or of the same ``host``.

    Ports and schemes do not count. All pages without a host (files) are one site; an http(s) URL whose host
    cannot be read is a site of its own. Raises ConfigurationError for an unknown name.
    """

    def __init__(self, name: str = ANY) -> None:
        if name not in SCOPES:
            raise ConfigurationError(f"scope must be one of {', '.join(SCOPES)}, not {name!r}")
        self.name = name
        self.is_bounded = name != ANY

    def takes(self, url: str, canonical_url: str) -> bool:
        """Whether the page at ``canonical_url`` may be the canonical page of that at ``url``."""
        return not self.is_bounded or self._site(url) == self._site(canonical_url)

    def digest(self, url: str, text_digest: int | None) -> int:
        """The digest of a page's text, mixed with its site if that bounds the scope; 0 if there is none, else
        never.

        So pages with the same text have the same digest if one may be the canonical page of the other.
        """
        if not text_digest:
            return 0
        if not self.is_bounded:
            return text_digest
        site = self._site(url).encode("utf-8", "surrogatepass")
        return text_digest ^ mmh3.mmh3_x64_128_utupledigest(site)[0] or 1

    def _site(self, url: str) -> str:
        host = host_of(url)
        if not host and url.startswith(("http:", "https:")):
            return url
        return registered_domain(host) if self.name == DOMAIN else host


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


@cache
def _suffixes() -> TLDExtract:
    from tldextract import TLDExtract  # noqa: PLC0415 -- 0.1 s that only those pay who ask for domains

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
