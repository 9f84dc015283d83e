"""Two ways in which a site writes one URL: ``story_7`` and ``story?id=7``.

Source: Bar-Yossef, Keidar, Schonfeld, "Do not crawl in the DUST" (WWW 2007; TWEB 3, 2009). Their likely rules
replace one string by another. They are found from pairs of URLs of one page, and need several pairs with
different strings around. Here, what is around may also stand in the middle. One token of a URL varies, and
all else below the common directory is written in one of two ways.
"""

from __future__ import annotations

import re
from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple

from neardup.urls.parts import MOST_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIES = "{}"
"""Stands for the token that varies."""

_BETWEEN = " = "

_TOKEN = re.compile(r"[0-9A-Za-z]+")
_NAME = re.compile(r"[0-9A-Za-z%-]+")
"""What may vary: a token, or tokens with hyphens between."""

_MOST_TOKENS = 4
"""Common tokens of two URLs that are each taken for the one that varies. Other pairs tell which it is."""


class Proposal(NamedTuple):
    """Two ways of writing, as a rule names them, and ``around``: the key of what is the same in both URLs."""

    value: str
    around: int


def text_of(segments: tuple[str, ...], parameters: tuple[tuple[str, str], ...]) -> str:
    """Path and parameters of a URL as it is written, in the order of the parts, with ``&`` between those of
    a query.

    >>> text_of(("a", "b"), ((";v", ";v=1"), ("x", "x=2"), ("y", "y")))
    '/a/b;v=1?x=2&y'
    """
    of_path = "".join(text for name, text in parameters if name.startswith(";"))
    query = "&".join(text for name, text in parameters if not name.startswith(";"))
    return f"/{'/'.join(segments)}{of_path}{'?' if query else ''}{query}"


def proposals(one: str, other: str) -> Iterator[Proposal]:
    """The substitutions that two texts of one page speak for.

    >>> [proposal.value for proposal in proposals("/a/story_7", "/a/story?id=7")]
    ['story?id={} = story_{}', '{}?id=7 = {}_7']
    """
    paths = [re.split("[;?]", text, maxsplit=1)[0] for text in (one, other)]
    start = commonprefix(paths).rfind("/") + 1  # noqa: RUF071  # cut off at a slash
    tails = one[start:], other[start:]
    if tails[0] == tails[1] or any(VARIES in tail or len(tail) > MOST_VALUE for tail in tails):
        return
    found = [{*_TOKEN.findall(tail), *_NAME.findall(tail)} for tail in tails]
    common = [token for token in found[0] & found[1] if all(tail.count(token) == 1 for tail in tails)]
    # Numbers first: they vary more often than words do.
    for token in sorted(common, key=lambda token: (not token.isdigit(), token))[:_MOST_TOKENS]:
        ways = sorted(tail.replace(token, VARIES) for tail in tails)
        proposal = Proposal(_BETWEEN.join(ways), hash((one[:start], token)))
        # Of "{}" and "{}-" both ways fit "1-": such a rule could not tell which one a text is written in.
        if ways[0] != ways[1] and all(
            around(proposal.value, text) == proposal.around for text in (one, other)
        ):
            yield proposal


def around(value: str, text: str) -> int:
    """The key of what a text has around a substitution; 0: it is written in neither way.

    Two texts have the same key if they differ in nothing but the way in which they are written.

    >>> value = "story?id={} = story_{}"
    >>> around(value, "/a/story_7") == around(value, "/a/story?id=7") != around(value, "/a/story_8")
    True
    >>> around(value, "/a/history_7")
    0
    """
    for way in value.split(_BETWEEN):
        before, _, after = way.partition(VARIES)
        if not text.endswith(after):
            continue
        rest = text[: len(text) - len(after)]
        start = rest.rfind(f"/{before}") + 1
        token = rest[start + len(before) :]
        if start and _NAME.fullmatch(token):
            return hash((rest[:start], token))
    return 0
