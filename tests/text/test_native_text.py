"""The native core reads the same text and the same words as the Python modules that it serves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from neardup import native
from neardup.text import features, visible_text
from neardup.text.features import Features, hash_feature
from neardup.text.visible_text import ALT_TEXTS, INVISIBLE, _pieces, cleaned, parse, text_of_tree, tops
from neardup.text.words import SIGNS, nfc, words
from tests.support.real_pages import page_id, real_pages

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not native.available, reason=f"without the native core ({native.reason})")

TAGS = [
    "p", "b", "i", "div", "span", "script", "style", "img", "area", "input", "svg", "template", "noscript",
    "iframe", "option", "custom-element", "ruby", "br", "math", "annotation", "title", "head", "x:y",
]  # fmt: skip
PIECES = [
    "word",
    "a",
    " ",
    "\n",
    "\x1f",
    "\u00a0",
    "\u2003",
    "\u00ad",
    "\u200b",
    "é",
    "e\u0301",
    "入門",
    "𝔘",
    "&amp;",
    "Ж",
]
PIECES += ["http://a.example/x", "see www.a.example!", "://", "ww.", "<!-- c -->", "<?pi?>", "]]>", "\x85"]
ATTRIBUTES = ["", " alt='an alt'", " alt", " type=IMAGE alt='é\u00ad'", " type=text alt=x"]


def reference(root: etree._Element, *, alt_texts: bool = ALT_TEXTS) -> str:
    """The text by the loop in Python."""
    return cleaned(" ".join("".join(_pieces(part, alt_texts=alt_texts)) for part in tops(root)))


def test_lxml_is_the_one_that_the_native_core_was_built_for() -> None:
    assert visible_text._native_text is not None


@pytest.mark.parametrize("path", real_pages(), ids=page_id)
def test_text_of_real_pages(path: Path) -> None:
    root = parse(visible_text.decode(path.read_bytes()))
    assert root is not None

    for alt_texts in (True, False):
        assert text_of_tree(root, alt_texts=alt_texts) == reference(root, alt_texts=alt_texts)


@st.composite
def pages(draw: st.DrawFn, depth: int = 3) -> str:
    html = ""
    for _ in range(draw(st.integers(0, 5))):
        html += draw(st.sampled_from(PIECES))
        if depth and draw(st.booleans()):
            tag = draw(st.sampled_from(TAGS))
            attributes = draw(
                st.sampled_from(
                    ["", " alt='an alt'", " alt", " type=IMAGE alt='é\u00ad'", " type=text alt=x"]
                )
            )
            html += f"<{tag}{attributes}>{draw(pages(depth=depth - 1))}</{tag}>"
    return html


@given(pages(), st.booleans())
def test_text_of_made_pages(html: str, alt_texts: bool) -> None:
    root = parse(f"<body>{html}</body>{html}")
    assert root is not None

    for element in [root, *root.iter()]:
        if isinstance(element.tag, str):
            assert text_of_tree(element, alt_texts=alt_texts) == reference(element, alt_texts=alt_texts)


@given(pages())
def test_text_of_xml_with_namespaces_entities_and_cdata(html: str) -> None:
    parser = etree.XMLParser(recover=True, resolve_entities=False)
    declared = "<!DOCTYPE r [<!ENTITY e 'entity'>]>"
    xml = f"{declared}<r xmlns:x='urn:x'>&e;<![CDATA[c <d>]]><x:script>kept</x:script>{html}</r>"
    root = etree.fromstring(xml.encode("utf-8", "replace"), parser)

    assert text_of_tree(root) == reference(root)


def test_a_comment_or_nothing_has_no_text() -> None:
    root = etree.HTML("<p><!-- comment --><?pi?></p>")

    assert [text_of_tree(node) for node in root.iter()] == [""] * 5
    assert text_of_tree(etree.Element("p")) == ""


def test_deep_and_wide_trees_need_no_stack() -> None:
    builder = etree.TreeBuilder()
    for _ in range(100_000):
        builder.start("p", {})
    builder.data("deep")
    for _ in range(100_000):
        builder.end("p")
    root = etree.Element("div")
    root.append(builder.close())
    for _ in range(100_000):
        etree.SubElement(root, "b").text = "w"

    assert text_of_tree(root) == f"deep {'w' * 100_000}"


def test_invisible_characters_and_white_space_are_those_of_unicode() -> None:
    ranges = {code for first, last in INVISIBLE for code in range(first, last + 1)}
    ignorable = regex.compile(r"[\p{Default_Ignorable_Code_Point}--[\u115F\u1160\u3164\uFFA0]]", regex.V1)
    characters = [chr(code) for code in range(1, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    assert {ord(one) for one in characters if ignorable.match(one)} == ranges

    root = etree.Element("p")
    for character in characters:
        if character.isspace() or ord(character) in ranges or ord(character) % 997 == 0:
            try:
                root.text = f"a{character}b"
            except ValueError:  # no XML can have this character
                continue
            assert text_of_tree(root) == cleaned(root.text)


def by_words(text: str) -> list[int]:
    return [hash_feature(word) for word in words(text)]


@given(st.text(st.characters(exclude_categories=["Cs"])) | pages(0))
def test_words_of_any_text(text: str) -> None:
    made = Features()._native_hashes(text, None)

    assert made is None or made.tolist() == by_words(text)
    assert Features().extract(text).words.tolist() == by_words(text)


@given(st.text("aZ_9 -'.é\u0301İßſKﬁ入門ー๏ก\u0345\u00a0" + SIGNS))
def test_words_that_mix_scripts(text: str) -> None:
    # Whatever the share of ASCII: each word by itself has the hashes that the whole text has.
    assert features._native is not None
    found, _ = features._native.word_hashes(nfc(text), features.SEED, Features()._parts)

    assert np.frombuffer(found, dtype=np.uint64).tolist() == by_words(text)


@given(st.integers(0, 70), st.integers(0, 127))
def test_hash_of_words_of_any_length(length: int, letter: int) -> None:
    text = chr(letter) * length

    assert Features().extract(text).words.tolist() == by_words(text)


def test_a_lone_surrogate_is_left_to_python() -> None:
    assert Features()._native_hashes("a \ud800 b", None) is None
    assert Features().extract("a \ud800 b").words.tolist() == by_words("a \ud800 b")
