"""Scope: how far from a page its canonical page may be, so that no site makes another site's pages count as
duplicates unnoticed.

A site may copy another site's page and be crawled before the other site. The copy then becomes the canonical
page. Within a scope, only pages of the same host or registered domain are matched with each other.
"""

from __future__ import annotations

import mmh3

from neardup.address import Address
from neardup.errors import ConfigurationError

ANY = "any"
DOMAIN = "domain"
HOST = "host"
SCOPES = (ANY, DOMAIN, HOST)


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

    def takes(self, page: Address, canonical_url: str) -> bool:
        """Whether the page at ``canonical_url`` may be the canonical page of ``page``."""
        return not self.is_bounded or self.site(page) == self.site(Address(canonical_url))

    def digest(self, page: Address, text_digest: int | None) -> int:
        """The digest of a page's text, mixed with its site if that bounds the scope; 0 if there is none, else
        never.

        So pages with the same text have the same digest if one may be the canonical page of the other.
        """
        if not text_digest:
            return 0
        if not self.is_bounded:
            return text_digest
        site = self.site(page).encode("utf-8", "surrogatepass")
        return text_digest ^ mmh3.mmh3_x64_128_utupledigest(site)[0] or 1

    def site(self, page: Address) -> str:
        """What a page shares with all pages that may be its canonical page, if that is bounded."""
        if not page.host and page.url.startswith(("http:", "https:")):
            return page.url
        return page.domain if self.name == DOMAIN else page.host
