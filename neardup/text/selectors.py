"""What CSS selectors choose of a page: parts to include, parts to exclude.

Most selectors of pages are made of names, classes, ids and attributes, one within another. Such *simple* ones
are matched by the native walk while it reads the text. All others are matched by XPath, as lxml translates
them, before the walk; so are simple ones where there is no native core.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from cssselect import parser as css_parser
from lxml import etree
from lxml.cssselect import CSSSelector

from neardup import native
from neardup.text import visible_text
from neardup.text.visible_text import tops, utf8_of_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MOST_STEPS = 64
"""Of what a page includes and excludes: the native walk has a bit for each."""

EXISTS, EQUALS, INCLUDES = "exists", "=", "~="


class Condition(NamedTuple):
    """What an attribute must be: there, equal to the value, or have it as one of its words."""

    attribute: str
    operator: str
    value: str


class Step(NamedTuple):
    """An element that a simple selector names; the last one is what the selector matches.

    ``name`` is None for any. ``within`` says where the element of the step before is: " " somewhere above,
    ">" just above, "" if there is none.
    """

    name: str | None
    conditions: tuple[Condition, ...]
    within: str
    is_last: bool


class Selector:
    """A list of CSS selectors. Raises ``cssselect.SelectorError`` if it is none."""

    def __init__(self, css: str) -> None:
        self._select: Callable[[etree._Element], Any] = CSSSelector(css, translator="html")
        self.steps = steps_of(css)
        """None if one of the selectors is not simple."""

    def matches(self, parts: list[etree._Element]) -> list[etree._Element]:
        """What the selectors match in some parts of a page, in document order."""
        return [element for top in parts for element in self._select(top)]


class Choice:
    """What is read of a page: only what ``include`` matches, without what ``exclude`` matches; each once, in
    document order. None: all is included, nothing is excluded.
    """

    def __init__(self, include: Selector | None, exclude: Selector | None) -> None:
        self._include = include
        self._exclude = exclude
        self._automaton = _automaton(include, exclude)

    @property
    def is_everything(self) -> bool:
        return self._include is None and self._exclude is None

    def utf8(self, root: etree._Element, *, alt_texts: bool) -> bytes:
        """The text of what is chosen of the page with this root, in UTF-8."""
        parts = list(tops(root))
        if self._automaton is not None:
            return visible_text.utf8_of_chosen(parts, self._automaton, alt_texts=alt_texts)
        excluded = frozenset[etree._Element]()
        if self._exclude is not None:
            excluded = frozenset(self._exclude.matches(parts))
        if self._include is not None:
            parts = _outermost(self._include.matches(parts), excluded)
        return utf8_of_parts(parts, excluded, alt_texts=alt_texts)


def steps_of(css: str) -> list[Step] | None:
    """The steps of simple selectors, one selector after the other; None if one is not simple."""
    steps: list[Step] = []
    try:
        for selector in css_parser.parse(css):
            if selector.pseudo_element is not None:
                return None
            steps += _steps(selector.parsed_tree, is_last=True)
    except _NotSimpleError:
        return None
    return steps


class _NotSimpleError(Exception):
    pass


def _steps(tree: Any, *, is_last: bool) -> Iterator[Step]:
    before, within = None, ""
    if isinstance(tree, css_parser.CombinedSelector):
        if tree.combinator not in {" ", ">"}:
            raise _NotSimpleError
        before, within, tree = tree.selector, tree.combinator, tree.subselector
    conditions: list[Condition] = []
    while not isinstance(tree, css_parser.Element):
        conditions.append(_condition(tree))
        tree = tree.selector
    if before is not None:
        yield from _steps(before, is_last=False)
    if tree.namespace is not None:
        raise _NotSimpleError
    yield Step(_checked(tree.element) if tree.element else None, tuple(conditions), within, is_last)


def _condition(tree: Any) -> Condition:
    if isinstance(tree, css_parser.Hash):
        return Condition("id", EQUALS, tree.id)
    if isinstance(tree, css_parser.Class):
        return Condition("class", INCLUDES, _word(tree.class_name))
    if not isinstance(tree, css_parser.Attrib) or tree.namespace is not None or getattr(tree, "flag", None):
        raise _NotSimpleError
    name = _checked(tree.attrib)
    if tree.operator == EXISTS:
        return Condition(name, EXISTS, "")
    token: Any = tree.value
    value = str(token.value)
    if "\0" in value:
        raise _NotSimpleError
    if tree.operator == INCLUDES:
        return Condition(name, INCLUDES, _word(value))
    if tree.operator != EQUALS:
        raise _NotSimpleError
    return Condition(name, EQUALS, value)


def _checked(name: str) -> str:
    """The name of an element or attribute as it is compared with those of HTML."""
    if not _NAME.fullmatch(name):
        raise _NotSimpleError
    return name.lower()


def _word(value: str) -> str:
    if value.split() != [value]:
        raise _NotSimpleError
    return value


def _automaton(include: Selector | None, exclude: Selector | None) -> object | None:
    """What the native walk matches selectors by; None where it cannot."""
    # Built for another lxml than there is, it could not even be loaded.
    module = native.load("neardup.text._selectors") if visible_text.is_native else None
    if module is None:
        return None
    included = [] if include is None else include.steps
    excluded = [] if exclude is None else exclude.steps
    if included is None or excluded is None or len(included) + len(excluded) > _MOST_STEPS:
        return None
    made: object = module.Automaton(included, excluded, include is not None)
    return made


def _outermost(included: list[etree._Element], excluded: frozenset[etree._Element]) -> list[etree._Element]:
    """Those that are not within another of them, nor within one that is excluded."""
    chosen = frozenset(included) | excluded
    # Whether an element, or one above it, is chosen. Without it 100,000 paragraphs 2,000 deep would take
    # minutes.
    covers: dict[etree._Element, bool] = {}
    outermost = []
    for element in included:
        path = []
        above = element.getparent()
        while above is not None and above not in covers and above not in chosen:
            path.append(above)
            above = above.getparent()
        is_covered = above is not None and covers.get(above, True)
        covers.update(dict.fromkeys(path, is_covered))
        if not is_covered:
            outermost.append(element)
    return outermost
