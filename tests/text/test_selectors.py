"""What selectors choose: by the native walk and by XPath, the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from neardup.text import selectors, visible_text
from neardup.text.selectors import Choice, Condition, Selector, Step, steps_of
from neardup.text.visible_text import parse
from tests.support.real_pages import page_id, real_pages

if TYPE_CHECKING:
    from pathlib import Path

native = pytest.mark.skipif(not visible_text.is_native, reason="without the native core")


def chosen(root: etree._Element, include: str | None, exclude: str | None, *, alt_texts: bool = True) -> str:
    """The text by the native walk, which must be that by XPath."""
    choice = Choice(*(None if css is None else Selector(css) for css in (include, exclude)))
    assert choice._automaton is not None
    text = choice.utf8(root, alt_texts=alt_texts).decode()
    choice._automaton = None
    assert choice.utf8(root, alt_texts=alt_texts).decode() == text
    return text


@pytest.mark.parametrize(
    ("css", "steps"),
    [
        ("DIV", [Step("div", (), "", True)]),
        ("*, .a", [Step(None, (), "", True), Step(None, (Condition("class", "~=", "a"),), "", True)]),
        ("nav > #b  p", [
            Step("nav", (), "", False), Step(None, (Condition("id", "=", "b"),), ">", False),
            Step("p", (), " ", True),
        ]),
        ("a[HREF][rel~=x][title='']", [
            Step(
                "a",
                (Condition("title", "=", ""), Condition("rel", "~=", "x"), Condition("href", "exists", "")),
                "", True,
            )
        ]),
    ],
)  # fmt: skip
def test_steps_of_simple_selectors(css: str, steps: list[Step]) -> None:
    assert steps_of(css) == steps


@pytest.mark.parametrize(
    "css",
    [
        "a:first-child", "p, a:not(.x)", "a + b", "a ~ b", "[a^=b]", "[a|=b]", "*|a", "ns|a", "[*|a]",
        "[a~='']", "[a~='b c']", "d\\.e", ":contains('x')", "p:has(a)",
    ],
)  # fmt: skip
def test_other_selectors_are_left_to_xpath(css: str) -> None:
    assert steps_of(css) is None


def test_left_to_xpath_they_choose_the_same_way() -> None:
    root = etree.HTML("<p>a</p><p class=x>b</p><div>c <p>d</p></div>")

    choice = Choice(Selector("p:not(.x), div"), Selector("div > p:first-child"))

    assert choice._automaton is None
    assert choice.utf8(root, alt_texts=True) == b"a c"


def test_more_steps_than_bits_are_left_to_xpath() -> None:
    root = etree.HTML("<p>a</p><b>b</b>")
    for number in (selectors._MOST_STEPS, selectors._MOST_STEPS + 1):
        choice = Choice(Selector(", ".join(f"x{n}" for n in range(number - 1))), Selector("b"))
        assert (choice._automaton is None) == (number > 64 or not visible_text.is_native)
        assert choice.utf8(root, alt_texts=True) == b""
    assert (
        Choice(Selector("p, b"), Selector(", ".join(f"x{n}" for n in range(80)))).utf8(root, alt_texts=True)
        == b"a b"
    )


CSS = [
    "p", "div", "*", ".a", ".b", "#i", "p.a", "div > p", "div p", ".a .b", ".a > .b", "body > div > *", "b",
    "div .a p", "[alt]", "img", "[class='a b']", "script", "head", "html", "div > div p.b", "area", "P.b#i",
]  # fmt: skip
LISTS = st.none() | st.lists(st.sampled_from(CSS), min_size=1, max_size=4).map(", ".join)


@st.composite
def elements(draw: st.DrawFn, depth: int = 4) -> str:
    html = ""
    for _ in range(draw(st.integers(0, 3))):
        html += draw(st.sampled_from(["w", " x ", "<!-- c -->", "é\u00ad"]))
        if depth:
            tag = draw(st.sampled_from(["p", "div", "b", "script", "noscript", "img", "area", "title"]))
            attributes = draw(st.sampled_from(
                ["", " class=a", " class='b  a\t'", " class='a b'", " class", " id=i", " alt=t id=i class=ab"]
            ))  # fmt: skip
            html += f"<{tag}{attributes}>{draw(elements(depth - 1))}</{tag}>"
    return html


@pytest.mark.slow
@native
@given(elements(), elements(), LISTS, LISTS, st.booleans())
def test_native_and_xpath_agree(
    html: str, after: str, include: str | None, exclude: str | None, alt_texts: bool
) -> None:
    root = parse(f"<body>{html}</body></html>{after}")
    assert root is not None

    chosen(root, include, exclude, alt_texts=alt_texts)


@pytest.mark.slow
@native
@given(elements(), LISTS, LISTS)
def test_native_and_xpath_agree_on_xml(html: str, include: str | None, exclude: str | None) -> None:
    declared = "<!DOCTYPE r [<!ENTITY e 'b'><!ATTLIST q class CDATA 'a'>]>"
    special = "<x:p class='a'>n</x:p><q>q</q><p class='a &e;'>c</p><p x:class='a'/>"
    xml = f"{declared}<r xmlns:x='urn:x'>{special}{html}"
    for resolve in (True, False):
        parser = etree.XMLParser(recover=True, resolve_entities=resolve)
        root = etree.fromstring(xml.encode("utf-8", "replace"), parser)
        for element in root.iter("*"):
            chosen(element, include, exclude)


@native
@pytest.mark.parametrize("path", real_pages()[::5], ids=page_id)
def test_native_and_xpath_agree_on_real_pages(path: Path) -> None:
    root = parse(visible_text.decode(path.read_bytes()))
    assert root is not None
    for include, exclude in (
        ("div.content, main, .block", None),
        (None, "div.header, div.footer, nav, .related, #menu, a[href]"),
        ("body > div", "ul li, pre"),
        ("p", "p a"),
        ("*", "*"),
    ):
        chosen(root, include, exclude)


@native
def test_deep_trees_need_no_stack() -> None:
    root = etree.Element("div")
    element = root
    for _ in range(20_000):
        element = etree.SubElement(element, "div")
    element.text = "deep"
    choice = Choice(Selector("div div > div"), Selector("p div"))

    assert choice.utf8(root, alt_texts=True) == b"deep"


@native
def test_what_is_no_automaton_is_refused() -> None:
    for automaton in (None, 1, Selector("p")):
        with pytest.raises(TypeError):
            visible_text.utf8_of_chosen([etree.Element("p")], automaton, alt_texts=True)
