"""Which part of a page is its content: the whole visible body, its main part, or what CSS selectors say.

- ``body``: all that a reader sees (:mod:`neardup.text.visible_text`).
- ``main``: without navigation, headers, footers and other boilerplate, as the rules of resiliparse have it
  (Bevendorff, Stein, Hagen & Potthast 2018). Unlike ``body``, ``main`` leaves out what is hidden by attribute
  or style. The time of ``main`` grows with the depth of a page too: 7 s for 0.6 MB, 1,000 deep. Pages as deep
  as no real one are read as ``body``.

A host with selectors is read by these, in every mode. The tree is only read.

``python -m benchmarks.bench_content`` measured the mean ms of processor time a page, without parsing. The
pages were 300 each of kafka's and LLVM's manual; others were at work on the machine:

- ``body``: 0.07 and 0.06;
- ``main``: 2.12 and 1.61;
- selectors to exclude: 0.09 and 0.06; to include: 0.08 and 0.09.

How well the choices tell pages apart was measured on pairs of pages with a resemblance from 0.5 on. The pages
were 2,027 of kafka's and 2,212 of LLVM's manual. A pair is right if its pages have the same path in two
versions. Average precision, ranked by resemblance:

- ``body``: 0.954 and 0.324;
- ``main``: 0.972 and 0.127.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cssselect import SelectorError
from lxml import etree

from neardup.address import host_of
from neardup.errors import ConfigurationError
from neardup.text.selectors import Choice, Selector
from neardup.text.visible_text import (
    ALT_TEXTS,
    decode,
    is_deep,
    parse,
    tops,
    utf8_of_text,
    utf8_of_tree,
)
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BODY = "body"
MAIN = "main"
MODES = (BODY, MAIN)

EVERY_HOST = "*"
"""Selectors for the hosts that have none of their own."""

MIN_WORDS = 20
"""Words that a choice must have, or the whole body is read. Measured with ``main``, average precision as in
the module's docstring:

    ==============  =====  =====  =====  =====  =====  =====
    least words       1     10     20     30     50    100
    ==============  =====  =====  =====  =====  =====  =====
    kafka           0.973  0.972  0.972  0.944  0.936  0.933
    LLVM            0.108  0.134  0.127  0.153  0.171  0.245
    ==============  =====  =====  =====  =====  =====  =====

20 are the most before kafka's short classes are read with their template. The body has 0.954 and 0.324.
LLVM's manual has many pages of which the rules leave eight words, the same on all: it should not be read by
them.
"""

MOST_FOR_MAIN = 1_500_000
"""Characters of a page's source that ``main`` looks for boilerplate in; the body of a longer one is read. A
page of 3.5 million with 26 attributes an element took 1.3 s and 494 MB.
"""

_BEGINNING = 500
"""Bytes of a text in which its words are counted first."""

_KINDS = ("include", "exclude")


@dataclass(frozen=True, slots=True)
class Content:
    """One choice of what is content, for all pages of a crawl.

    ``selectors`` has CSS selectors for each host, and the subdomains of the host. Under ``"include"`` only
    what matches is read; under ``"exclude"`` what matches is not read. ``"*"`` stands for every other host.
    The longest host that fits decides alone; an empty mapping means that this host has no selectors. With
    ``alt_texts``, the alt texts of images count, too. Page content of fewer than ``MIN_WORDS`` words is
    replaced by the whole body.

    Raises ConfigurationError for an unknown mode, a host or a selector that is none, or if ``main`` needs
    what is not installed.
    """

    mode: str = BODY
    selectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    alt_texts: bool = ALT_TEXTS
    _rules: dict[str, Choice] = field(init=False, repr=False, compare=False)
    _extract: Callable[[str], str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigurationError(f"content must be one of {', '.join(MODES)}, not {self.mode!r}")
        rules: dict[str, Choice] = {}
        for host, chosen in self.selectors.items():
            key = _checked_host(host)
            if key in rules:
                raise ConfigurationError(f"content selectors: there are two entries for the host {key!r}")
            rules[key] = _compiled(host, chosen)
        used = {key: rule for key, rule in rules.items() if _decides(key, rules)}
        object.__setattr__(self, "_rules", used)
        object.__setattr__(
            self, "_extract", _extractor(alt_texts=self.alt_texts) if self.mode == MAIN else None
        )

    @property
    def name(self) -> str:
        """The name that is part of the scheme: texts that are read in different ways must never
        be compared.
        """
        read = self.mode + "+alt" * self.alt_texts
        if not self._rules:
            return read
        all_hosts = {_checked_host(host): dict(chosen) for host, chosen in self.selectors.items()}
        by_host = {host: all_hosts[host] for host in self._rules}
        digest = hashlib.blake2b(json.dumps(by_host, sort_keys=True).encode(), digest_size=4).hexdigest()
        return f"{read}+selectors-{digest}"

    def text(self, url: str, root: etree._Element) -> str:
        """Purified text of the page's content, from the lxml tree of its document."""
        return self.utf8(url, root).decode("utf-8", "surrogatepass")

    def utf8(self, url: str, root: etree._Element) -> bytes:
        """:meth:`text` in UTF-8."""
        rule = self._rule(url)
        if rule is not None:
            chosen = rule.utf8(root, alt_texts=self.alt_texts)
        elif self._extract is not None and not any(map(is_deep, tops(root))):
            source = "".join(
                etree.tostring(top, encoding="unicode", method="html", with_tail=False) for top in tops(root)
            )
            if len(source) > MOST_FOR_MAIN:
                return utf8_of_tree(root, alt_texts=self.alt_texts)
            chosen = utf8_of_text(self._extract(source))
        else:
            return utf8_of_tree(root, alt_texts=self.alt_texts)
        return chosen if _is_enough(chosen) else utf8_of_tree(root, alt_texts=self.alt_texts)

    def text_of_html(self, url: str, html: str | bytes) -> str:
        """:meth:`text` of a page in a string, or in bytes of unknown encoding."""
        root = parse(html if isinstance(html, str) else decode(html))
        return "" if root is None else self.text(url, root)

    def _rule(self, url: str) -> Choice | None:
        if not self._rules:
            return None
        return _unless_empty(_longest(host_of(url), self._rules))


def _is_enough(text: bytes) -> bool:
    # The beginning of most texts has enough of them; it may end within a character.
    beginning = text[:_BEGINNING].decode("utf-8", "ignore")
    if len(words(beginning)) >= MIN_WORDS:
        return True
    return len(words(text.decode("utf-8", "surrogatepass"))) >= MIN_WORDS


def _longest(host: str, rules: Mapping[str, Choice]) -> Choice | None:
    """The rule of a host, or of the longest above it that has one."""
    while host:
        if host in rules:
            return rules[host]
        host = host.partition(".")[2]
    return rules.get(EVERY_HOST)


def _decides(host: str, rules: Mapping[str, Choice]) -> bool:
    """Whether an entry changes anything: one without selectors does if it stands against one
    with selectors.
    """
    if _unless_empty(rules[host]) is not None:
        return True
    return host != EVERY_HOST and _unless_empty(_longest(host.partition(".")[2], rules)) is not None


def _unless_empty(rule: Choice | None) -> Choice | None:
    return None if rule is None or rule.is_everything else rule


def _checked_host(host: str) -> str:
    if host == EVERY_HOST:
        return host
    found = host_of(f"//{host}") if isinstance(host, str) else ""
    bare = host[1:-1].replace(":", "") if ":" in found else host  # an IPv6 address stands in brackets
    if not found or any(sign in bare for sign in "/@:*? "):
        raise ConfigurationError(f"content selectors: {host!r} is no host such as www.example.com, nor '*'")
    return found


def _compiled(host: str, chosen: Mapping[str, str]) -> Choice:
    try:
        unknown = set(chosen) - set(_KINDS)
    except TypeError:
        unknown = {repr(chosen)}
    if unknown or isinstance(chosen, str):
        raise ConfigurationError(
            f"content selectors of {host!r} must be a mapping with 'include' or 'exclude', not {chosen!r}"
        )
    return Choice(*(_compile(host, kind, chosen[kind]) if kind in chosen else None for kind in _KINDS))


def _compile(host: str, kind: str, css: Any) -> Selector:
    if not isinstance(css, str):
        raise ConfigurationError(f"content selectors of {host!r}: {kind} must be a CSS selector, not {css!r}")
    try:
        return Selector(css)
    except SelectorError as exc:
        raise ConfigurationError(
            f"content selectors of {host!r}: {kind} {css!r} is no CSS selector: {exc}"
        ) from exc


def _extractor(*, alt_texts: bool) -> Callable[[str], str]:
    """Main content of a page in a string."""
    try:
        from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415 -- only when chosen
    except ImportError as exc:
        raise ConfigurationError("content 'main' needs resiliparse: pip install 'neardup[main]'") from exc

    def extract(html: str) -> str:
        return extract_plain_text(
            html, main_content=True, preserve_formatting=False, alt_texts=alt_texts, list_bullets=False
        )

    return extract
