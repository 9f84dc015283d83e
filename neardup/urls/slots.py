"""The slots of a URL: the parts of it that may not matter.

Who said what first:

- Bar-Yossef, Keidar, Schonfeld, "Do not crawl in the DUST" (WWW 2007; TWEB 3, 2009): rules between the URLs
  of one page. They are learned from pairs, and need support. See :mod:`neardup.urls.substitutions`.
- Dasgupta, Kumar, Sasturkar, "De-duping URLs via rewrite rules" (KDD 2008): rules for whole URLs. They are
  learned from clusters of duplicates, from general to special.
- Koppula et al., "Learning URL patterns for webpage de-duplication" (WSDM 2010): tokens in the context of
  their neighbours.
- Lei et al., "A pattern tree-based approach to learning URL normalization rules" (WWW 2010): patterns of a
  whole site, which forgive single wrong pairs.
- MaybeDont: hypotheses about parameters, tested while crawling, with a lower bound of their share.
- duplicate-url-discarder: the kinds of rules that people write by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from neardup.urls.parts import MOST_VALUE, OPAQUE, Parts, is_opaque, plain_spelling, shape
from neardup.urls.rules import AND, Slot
from neardup.urls.substitutions import around, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from neardup.urls.rules import Rule

Context = tuple[Slot, str, str]
"""A rule without its host: slot, value, context."""


_KIND = re.compile(r"[A-Za-z_-]{1,16}")
"""Values of parameters that may name a kind of page."""

_FEW_VALUES = re.compile(rf"{_KIND.pattern}|[0-9]{{1,2}}")
"""Values of parameters of which there are few, so that each may be a context: a view, an order."""

BESIDE = "?&"
"""In a context, before the parameters beside which a rule about another parameter was learned."""

_MOST_BESIDE = 2
"""Parameters beside another one that are a context together: a few filters have thousands of combinations."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
"""Words of a file name, whether their first letters are capitals or they are parted by other signs."""

_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*")
"""A number in a segment, such as that of a version."""

_MOST_AGAIN = 3
"""Places of a number below a segment of which each is looked at alone."""

Component = tuple[Slot, str]
"""A rule for a whole host: slot and value."""


class Reduced(NamedTuple):
    """What is left of a URL without all that seems not to matter on its host. ``gone`` has the slots and
    values of what is gone; ``origin`` is "" if the host is among them. ``key`` is :func:`reduced_key`.
    """

    origin: str
    segments: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    gone: tuple[Component, ...]
    key: int


class Place(NamedTuple):
    """One slot of one URL.

    - ``slot`` and ``value`` are those of the most general rule about it.
    - ``make_contexts`` makes the contexts where trials are counted, from general to special. They are some
      texts, and most slots of most URLs have no partner that asks for them.
    - ``bucket``: the key of what is left of the URL; URLs with equal keys are partners. 0: none.
    - ``bare``: the key of the URL that is left when the part is removed. 0: it is replaced, not removed.
    - ``left``: the key of what is left of the URL, if the slot is looked at there. Pages with the same key
      do not differ in the slot, and are no partners. 0: the slot is looked at in the whole URL.
    - ``directory``: of a segment that another one may stand for, where it stands.
    """

    slot: Slot
    value: str
    make_contexts: Callable[[], tuple[Context, ...]]
    bucket: int
    bare: int
    left: int
    directory: Directory | None = None


class Directory(NamedTuple):
    """A segment, the path above it (shortened to a value), and the segments below it."""

    above: str
    segment: str
    below: tuple[str, ...]

    def contexts(self, value: str) -> tuple[Context, ...]:
        """Those of the slot that names this segment in ``value``."""
        at = f"{self.above}/{self.segment}"
        return _chain(Slot.SEGMENT, value, self.above, at, f"{at}/{self.below[0][:MOST_VALUE]}")

    def like(self) -> tuple[str, str]:
        """What pages that change together have in common: the directories below, and the last word of the
        name of the file.
        """
        *directories, name = self.below
        return f"{'/'.join(directories)[-MOST_VALUE:]}/", f"*{_last_word(name)}"


def beside(contexts: tuple[Context, ...]) -> Context | None:
    """The most special context that names other parameters; None: the slot is beside none."""
    return next((context for context in reversed(contexts) if BESIDE in context[2]), None)


def page_key(parts: Parts) -> int:
    """The key of a URL. Keys live as long as this process: nobody outside can make two URLs collide."""
    return hash((parts.origin, parts.segments, parts.parameters))


def reduced_key(origin: str, segments: tuple[str, ...], parameters: tuple[tuple[str, str], ...]) -> int:
    """The key of a reduced URL (:class:`Reduced`), whatever URL it comes from."""
    return hash((Slot.TOGETHER, origin, segments, parameters))


def together_name(component: Component) -> str:
    """How a slot is named among several that are applied together."""
    slot, value = component
    return slot if slot is Slot.HOST else f"{slot}:{value}"


def names_of(rule: Rule) -> str:
    """The slots that a rule is about, as :func:`together_name` names them, with spaces between."""
    return rule.value if rule.slot is Slot.TOGETHER else together_name((rule.slot, rule.value))


def places(parts: Parts, left: Reduced, substitutions: Iterable[str] = ()) -> Iterator[Place]:
    """The slots of a URL, of which ``left`` is left when all is gone that is known not to matter.

    ``substitutions`` are those that are tried on the host.

    What is left is looked at without what is gone: two URLs may differ in that as well. What is gone is
    looked at in the whole URL, so that it goes on being tried.
    """
    gone = " ".join(map(together_name, left.gone))[: 4 * MOST_VALUE]
    yield Place(
        Slot.TOGETHER,
        "",
        partial(_of_values, Slot.TOGETHER, gone, "", parts.directory),
        left.key,
        0,
        0,
    )
    if parts.parameters:
        yield from _of_query(parts, left)
    yield from _of_path(parts, left)
    whole = parts if (Slot.SPELLING, "") in left.gone else left
    plain, changed = plain_spelling(parts.segments)
    if whole is left and left.segments != parts.segments:
        plain = plain_spelling(left.segments)[0]
    key = hash((Slot.SPELLING, whole.origin, plain, whole.parameters))
    same = left.key if whole is left else 0
    yield Place(Slot.SPELLING, "", partial(_of_values, Slot.SPELLING, changed, ""), key, 0, same)
    # Partners of one path on all hosts: the learner takes those that may be mirrors.
    first = parts.segments[0] if len(parts.segments) > 1 else ""
    whole = left if left.origin else parts
    key = hash((Slot.HOST, whole.segments, whole.parameters))
    same = left.key if whole is left else 0
    contexts = partial(_chain, Slot.HOST, parts.origin, "", f"/{first[:MOST_VALUE]}")
    yield Place(Slot.HOST, parts.origin, contexts, key, 0, same)
    if substitutions:
        text = text_of(left.segments, left.parameters)
        for value in substitutions:
            if same_in_both := around(value, text):
                key = hash((Slot.SUBSTITUTION, value, left.origin, same_in_both))
                contexts = partial(_chain, Slot.SUBSTITUTION, value, "", parts.directory)
                yield Place(Slot.SUBSTITUTION, value, contexts, key, 0, left.key)


def _chain(slot: Slot, value: str, *contexts: str) -> tuple[Context, ...]:
    return tuple([(slot, value, context) for context in contexts])  # a generator takes twice as long


def _of_values(slot: Slot, value: str, *contexts: str) -> tuple[Context, ...]:
    """Contexts of a slot that is tried whatever its value is, and by its value."""
    return (slot, "", ""), *_chain(slot, value, *contexts)


def _of_query(parts: Parts, left: Reduced) -> Iterator[Place]:
    names = dict.fromkeys(name for name, _ in left.parameters)
    for name, pair in dict(parts.parameters).items():
        if len(name) > MOST_VALUE:
            continue
        whole = left if name in names else parts
        rest = tuple([other for other in whole.parameters if other[0] != name])
        origin, segments = whole.origin, whole.segments
        bare = reduced_key(origin, segments, rest) if whole is left else hash((origin, segments, rest))
        bucket = hash((Slot.PARAMETER, name, origin, segments, rest))
        same = left.key if whole is left else 0
        contexts = partial(_of_parameter, parts, name, pair, rest)
        yield Place(Slot.PARAMETER, name, contexts, bucket, bare, same)
    if len(names) < 2:
        return
    origin, segments = left.origin, left.segments
    for name in names:
        contexts = partial(_of_several, Slot.OTHERS, name, names.keys() - {name}, parts.directory)
        kept = tuple([other for other in left.parameters if other[0] == name])
        bucket = hash((Slot.OTHERS, name, origin, segments, kept))
        yield Place(Slot.OTHERS, name, contexts, bucket, reduced_key(origin, segments, kept), left.key)
    contexts = partial(_of_several, Slot.QUERY, "", names, parts.directory)
    bucket = hash((Slot.QUERY, origin, segments))
    yield Place(Slot.QUERY, "", contexts, bucket, reduced_key(origin, segments, ()), left.key)


def _of_parameter(
    parts: Parts, name: str, pair: str, rest: tuple[tuple[str, str], ...]
) -> tuple[Context, ...]:
    """The contexts of one parameter, ``pair``, beside the ``rest`` of them."""
    contexts = ["", parts.directory, parts.shape]
    if 0 < len(rest) <= _MOST_BESIDE:
        others = "&".join(sorted({_kind_of(*other) for other in rest}))
        contexts.append(f"{parts.shape}{BESIDE}{others}")
    value = pair.partition("=")[2]
    if _FEW_VALUES.fullmatch(value):
        contexts.append(f"{parts.shape}?{name}={value}")
    return _chain(Slot.PARAMETER, name, *contexts)


def _of_several(slot: Slot, value: str, names: Iterable[str], directory: str) -> tuple[Context, ...]:
    """The contexts of several parameters at once."""
    named = ",".join(sorted(names))[: 2 * MOST_VALUE]
    return _chain(slot, value, named, f"{named} {directory}")


def _kind_of(name: str, pair: str) -> str:
    """What kind of page a parameter asks for: ``do=media``, but ``id`` where there are many values."""
    return pair if _KIND.fullmatch(pair.partition("=")[2]) else name[:MOST_VALUE]


def _of_path(parts: Parts, left: Reduced) -> Iterator[Place]:
    origin, segments, parameters = left.origin, left.segments, left.parameters
    directory = parts.directory
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if last and not segment:
            break
        before, after = segments[:place], segments[place + 1 :]
        if segment != OPAQUE and is_opaque(segment):
            key = hash((Slot.SEGMENT, origin, before, after, parameters))
            contexts = partial(_chain, Slot.SEGMENT, OPAQUE, "", directory)
            yield Place(Slot.SEGMENT, OPAQUE, contexts, key, 0, left.key)
        elif not last and segment != OPAQUE:
            yield _of_directory(str(place), before, segment, after, left)
            for again, without in _without_its_number(segment, after):
                at = AND.join(map(str, [place, *(place + 1 + below for below in again)]))
                yield _of_directory(at, before, segment, without, left)
        if not last:
            bare = reduced_key(origin, before + after, parameters)
            contexts = partial(_chain, Slot.EXTRA, segment, "", directory)
            yield Place(Slot.EXTRA, segment, contexts, 0, bare, left.key)
    if segments == parts.segments:
        return
    kept = set(segments)
    for place, segment in enumerate(parts.segments):
        before, after = parts.segments[:place], parts.segments[place + 1 :]
        if segment in kept:
            continue
        if is_opaque(segment):
            key = hash((Slot.SEGMENT, parts.origin, before, after, parts.parameters))
            contexts = partial(_chain, Slot.SEGMENT, OPAQUE, "", directory)
            yield Place(Slot.SEGMENT, OPAQUE, contexts, key, 0, 0)
        elif after:
            bare = hash((parts.origin, before + after, parts.parameters))
            contexts = partial(_chain, Slot.EXTRA, segment, "", directory)
            yield Place(Slot.EXTRA, segment, contexts, 0, bare, 0)


def _of_directory(
    value: str, before: tuple[str, ...], segment: str, after: tuple[str, ...], left: Reduced
) -> Place:
    """The slot of a directory that another one may stand for."""
    key = hash((Slot.SEGMENT, left.origin, before, after, left.parameters))
    directory = Directory("/".join(["", *before])[:MOST_VALUE], segment, after)
    return Place(Slot.SEGMENT, value, partial(directory.contexts, value), key, 0, left.key, directory)


def _without_its_number(
    segment: str, after: tuple[str, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
    """The segments below one without the number of it, and where that stood: some paths name a version twice.

    Each of the few places is taken out alone, and all at once: a number may be there by chance.

    >>> list(_without_its_number("clang-13-doc", ("share", "clang-13", "v1.13.html")))
    [((1,), ('share', 'clang-*', 'v1.13.html'))]
    """
    number = _VERSION.search(segment)
    if number is None or not any(number.group() in other for other in after):
        return
    own = re.compile(rf"(?<![0-9])(?<![0-9]\.){re.escape(number.group())}(?!\.?[0-9])")
    without = tuple([own.sub("*", other) if number.group() in other else other for other in after])
    again = tuple([place for place, other in enumerate(after) if other != without[place]])
    if 1 < len(again) <= _MOST_AGAIN:
        for place in again:
            yield (place,), (*after[:place], without[place], *after[place + 1 :])
    if again:
        yield again, without


def _last_word(name: str) -> str:
    """The last word of the name of a file: ``Options`` of ``ListTopicsOptions.html``."""
    words = _WORD.findall(name.rpartition(".")[0] or name)
    return shape(words[-1])[:MOST_VALUE] if words else ""


def differences(one: Parts, other: Parts) -> list[Component] | None:
    """The slots by which two URLs differ, as far as removing them makes the URLs equal; None: that does
    not make them equal.
    """
    found: list[Component] = []
    if one.origin != other.origin:
        found += [(Slot.HOST, one.origin), (Slot.HOST, other.origin)]
    names = {name for name, _ in set(one.parameters) ^ set(other.parameters)}
    if any(len(name) > MOST_VALUE for name in names):
        return None
    found += [(Slot.PARAMETER, name) for name in sorted(names)]
    longer, shorter = sorted((one.segments, other.segments), key=len, reverse=True)
    if len(longer) == len(shorter):
        pairs = [pair for pair in zip(longer, shorter, strict=True) if pair[0] != pair[1]]
        if not all(is_opaque(segment) for pair in pairs for segment in pair):
            return None
        return found + [(Slot.SEGMENT, OPAQUE)] * bool(pairs)
    extra = Counter(longer) - Counter(shorter)
    if tuple(segment for segment in longer if segment not in extra) != shorter:
        return None
    return found + [(Slot.EXTRA, segment) for segment in extra]
