"""The slots of a URL: the parts of it that may not matter.

Who said what first:

- Pages under many URLs, and rules between URLs learned from pairs of equal pages, with support and small
  validation samples: Bar-Yossef, Keidar, Schonfeld, "Do not crawl in the DUST" (WWW 2007; TWEB 3, 2009).
- Rules for a whole URL, general and specific, learned from clusters of duplicates: Dasgupta, Kumar,
  Sasturkar, "De-duping URLs via rewrite rules" (KDD 2008).
- Tokens in the context of their neighbours, and rules that generalise over values: Koppula et al., "Learning
  URL patterns for webpage de-duplication" (WSDM 2010).
- A tree of patterns from the whole site, which forgives single wrong pairs: Lei et al., "A pattern tree-based
  approach to learning URL normalization rules" (WWW 2010).
- Hypotheses about query parameters, tested during a crawl, with a lower bound of their share: MaybeDont.
- The kinds of rules that people write by hand (query removal, all but some, part of a path): duplicate-url-
  discarder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from neardup.urls.parts import MOST_VALUE, OPAQUE, Parts, is_opaque, plain_spelling
from neardup.urls.rules import Slot

if TYPE_CHECKING:
    from collections.abc import Iterator

Context = tuple[Slot, str, str]
"""A rule without its host: slot, value, context."""


class Place(NamedTuple):
    """One slot of one URL.

    - ``contexts``: where trials are counted, from general to specific.
    - ``bucket``: the key of what is left of the URL; URLs with equal keys are partners. 0: none.
    - ``bare``: the key of the URL that is left when the part is removed. 0: it is replaced, not removed.
    """

    contexts: tuple[Context, ...]
    bucket: int
    bare: int


def page_key(parts: Parts) -> int:
    """The key of a URL. Keys live as long as this process: nobody outside can make two URLs collide."""
    return hash(parts.key)


def places(parts: Parts) -> Iterator[Place]:
    """The slots of a URL that need nothing learned."""
    yield from _of_query(parts)
    yield from _of_path(parts)
    yield _of_spelling(parts)
    # Partners of one path on all hosts: the learner takes those that may be mirrors.
    first = parts.segments[0] if len(parts.segments) > 1 else ""
    value = parts.origin
    yield Place(
        _chain(Slot.HOST, value, "", f"/{first[:MOST_VALUE]}"),
        hash((Slot.HOST, parts.segments, parts.parameters)),
        0,
    )


def _chain(slot: Slot, value: str, *contexts: str) -> tuple[Context, ...]:
    return tuple((slot, value, context) for context in contexts)


def _of_query(parts: Parts) -> Iterator[Place]:
    parameters = parts.parameters
    names = dict.fromkeys(name for name, _ in parameters)
    whole, contexts = (parts.origin, parts.segments), ("", parts.directory, parts.shape)
    for name in names:
        if len(name) > MOST_VALUE:
            continue
        rest = tuple(pair for pair in parameters if pair[0] != name)
        key = (*whole, rest)
        yield Place(_chain(Slot.PARAMETER, name, *contexts), hash((Slot.PARAMETER, name, *key)), hash(key))
        if len(names) > 1:
            kept = tuple(pair for pair in parameters if pair[0] == name)
            key = (*whole, kept)
            yield Place(_chain(Slot.OTHERS, name, *contexts), hash((Slot.OTHERS, name, *key)), hash(key))
    if len(names) > 1:
        key = (*whole, ())
        yield Place(_chain(Slot.QUERY, "", *contexts), hash((Slot.QUERY, *key)), hash(key))


def _of_path(parts: Parts) -> Iterator[Place]:
    segments = parts.segments
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if last and not segment:
            break
        before, after = segments[:place], segments[place + 1 :]
        opaque = is_opaque(segment)
        value = OPAQUE if opaque else segment
        if not last or opaque:
            prefix = "/".join(["", *before])[:MOST_VALUE]
            following = after[0][:MOST_VALUE] if after else ""
            contexts = (
                _chain(Slot.SEGMENT, OPAQUE, "", parts.directory)
                if opaque
                else _chain(
                    Slot.SEGMENT, str(place), prefix, f"{prefix}/{value}", f"{prefix}/{value}/{following}"
                )
            )
            key = hash((Slot.SEGMENT, parts.origin, before, after, parts.parameters))
            yield Place(contexts, key, 0)
        if not last:
            bare = hash((parts.origin, before + after, parts.parameters))
            yield Place(_chain(Slot.EXTRA, value, "", parts.directory), 0, bare)


def _of_spelling(parts: Parts) -> Place:
    plain, changed = plain_spelling(parts.segments)
    key = hash((Slot.SPELLING, parts.origin, plain, parts.parameters))
    return Place(((Slot.SPELLING, "", ""), (Slot.SPELLING, changed, "")), key, 0)
