"""The slots of a URL: the parts of it that may not matter."""

from __future__ import annotations

import hashlib
from typing import NamedTuple
from urllib.parse import urlsplit

from neardup.address import host_of
from neardup.urls.rules import Rule, Slot


class Place(NamedTuple):
    """One slot of a URL: the rule that would say it does not matter, and the key of what is left."""

    rule: Rule
    key: int


def slots_of(url: str) -> list[Place]:
    """The slots of a URL."""
    parts = urlsplit(url)
    host = host_of(url)
    pairs = parts.query.split("&")
    found = []
    for name in dict.fromkeys(pair.partition("=")[0] for pair in pairs if pair):
        rest = "&".join(pair for pair in pairs if pair.partition("=")[0] != name)
        rule = Rule(host, Slot.PARAMETER, name)
        found.append(Place(rule, _key(rule, parts.path, rest)))
    return found


def _key(rule: Rule, *parts: str) -> int:
    digest = hashlib.blake2b("\0".join((*rule, *parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest)
