"""The native core reads the same text and the same words as the Python modules that it serves."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from typing import TYPE_CHECKING

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from neardup import native
from neardup.text import characters, features, visible_text
from neardup.text.features import hash_feature
from neardup.text.visible_text import (
    ALT_TEXTS,
    _pieces,
    cleaned,
    parse,
    text_of_tree,
    tops,
    utf8_of_parts,
    utf8_of_text,
)
from neardup.text.words import SIGNS, Parts, Splitter, bigrams, words
from neardup.text.words import parts as word_parts
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
    assert visible_text.is_native


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


def everything() -> list[str]:
    """All characters, without lone surrogates."""
    return [chr(code) for code in range(1, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


@pytest.mark.slow
def test_invisible_characters_and_white_space_are_those_of_unicode() -> None:
    ignorable = regex.compile(r"[\p{Default_Ignorable_Code_Point}--[\u115F\u1160\u3164\uFFA0]]", regex.V1)
    root = etree.Element("p")
    for character in everything():
        if character.isspace() or ignorable.match(character) or ord(character) % 997 == 0:
            try:
                root.text = f"a{character}b"
            except ValueError:  # no XML can have this character
                continue
            assert text_of_tree(root) == cleaned(root.text)


LETTERS = "aZ_9.é\u0301入ก "


@given(st.lists(st.sampled_from(["http", "://", "www.", "WwW.", "w", "W.", '/?&"<>', *LETTERS]), max_size=12))
def test_urls_in_texts(pieces: list[str]) -> None:
    root = etree.Element("p")
    root.text = "".join(pieces)

    assert text_of_tree(root) == cleaned(root.text)


@given(
    st.lists(st.sampled_from(["://", "www.", "http", "a", " ", "\x00"]) | st.text(max_size=4)).map("".join)
)
def test_texts_that_were_taken_by_other_means(text: str) -> None:
    assert utf8_of_text(text) == cleaned(text).encode("utf-8", "surrogatepass")


def test_texts_with_lone_surrogates() -> None:
    for text in ("a\ud800b", "\udfff", "www.\ud800x y", "x\ud800www.a.example", "a://\ud800 \udc00"):
        assert utf8_of_text(text) == cleaned(text).encode("utf-8", "surrogatepass")


@given(st.data())
def test_text_without_elements_that_are_left_out(data: st.DataObject) -> None:
    root = parse(f"<body>{data.draw(pages())}</body>{data.draw(pages())}")
    assert root is not None
    elements = [element for top in tops(root) for element in top.iter() if isinstance(element.tag, str)]
    left_out = frozenset(data.draw(st.lists(st.sampled_from(elements))))
    parts = data.draw(st.lists(st.sampled_from(elements), max_size=3)) or list(tops(root))
    expected = cleaned(" ".join("".join(_pieces(part, left_out)) for part in parts))

    assert utf8_of_parts(parts, left_out).decode() == expected


def test_what_is_no_element_is_refused() -> None:
    assert visible_text._native is not None
    read = visible_text._native.utf8_of_parts
    root = etree.Element("p")
    nothing: frozenset[etree._Element] = frozenset()
    for parts, left_out in (([None], nothing), (["p"], nothing), ([root], {None}), (None, nothing)):
        with pytest.raises((TypeError, ValueError)):
            read(parts, left_out, True)


def by_parts(text: str) -> list[int]:
    return [hash_feature(word) for word in word_parts(text)]


def hashes_of(text: str, split: Splitter = bigrams) -> list[int]:
    data = text.encode("utf-8", "surrogatepass")
    return [hashed.item() for hashed in features.word_hashes(data, Parts(split))]


@given(st.text(st.characters()) | pages(0))
def test_words_of_any_text(text: str) -> None:
    assert words(text) == word_parts(text)
    assert hashes_of(text) == by_parts(text)


@given(st.text("aZ_9 -'.é\u0301İßſKﬁ入門ー๏ก\u0345\u00a0가\u1161\u3099か\ud800" + SIGNS))
def test_words_that_mix_scripts(text: str) -> None:
    assert words(text) == word_parts(text)
    assert hashes_of(text) == by_parts(text)


@given(st.text("aZé\u0301İ入門ー๏ก\u0345가\u3099か "))
def test_words_by_another_splitter_for_scripts_without_spaces(text: str) -> None:
    assert words(text, iter) == word_parts(text, iter)
    assert hashes_of(text, iter) == [hash_feature(word) for word in word_parts(text, iter)]


BESIDE_OTHERS = [
    "{0}", "a{0}b c", "A{0}", "x{0}{0} {0}{0}{0}", "入{0}門", "ก{0}ไ", "é{0}\u0301", "か{0}\u3099{0}入",
]  # fmt: skip


def assert_same_words(characters: list[str], pattern: str) -> None:
    text = " ".join(map(pattern.format, characters))
    if words(text) != word_parts(text):
        wrong = [one for one in characters if words(pattern.format(one)) != word_parts(pattern.format(one))]
        raise AssertionError(f"{pattern}: {wrong}")


@pytest.mark.slow
@pytest.mark.parametrize("pattern", BESIDE_OTHERS)
def test_words_of_characters_that_are_not_just_letters(pattern: str) -> None:
    plain = {0, characters.WORD, characters.WORD | 1}
    chosen = []
    for number in range((sys.maxunicode + 1) // characters.BLOCK):
        kinds, _ = characters.block(number)
        for place, kind in enumerate(memoryview(kinds).cast("H")):
            if kind not in plain and number * characters.BLOCK + place > 127:
                chosen.append(chr(number * characters.BLOCK + place))

    assert_same_words(chosen, pattern)


@pytest.mark.slow
def test_words_of_all_characters() -> None:
    assert_same_words(everything(), "か{0}\u3099{0}入")


@pytest.mark.slow
def test_a_text_without_suspects_is_in_nfc() -> None:
    # What stands second in a composition may join with what comes before, and Hangul is composed by rule.
    second = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for character in everything():
        parted = unicodedata.decomposition(character).split()
        if unicodedata.combining(character) or not unicodedata.is_normalized("NFC", character):
            second.add(character)
        elif len(parted) == 2 and not parted[0].startswith("<"):
            second.add(chr(int(parted[1], 16)))

    assert len(second) > 900
    assert [one for one in second if not kind_of(one) & characters.SUSPECT and ord(one) > 127] == []


def kind_of(character: str) -> int:
    kinds, _ = characters.block(ord(character) // characters.BLOCK)
    return memoryview(kinds).cast("H")[ord(character) % characters.BLOCK]


@given(st.integers(0, 140), st.sampled_from("aZ_é"), st.sampled_from(["", " ", "b ", "入"]))
def test_hash_of_words_of_any_length(length: int, letter: str, before: str) -> None:
    text = before + letter * length

    assert hashes_of(f"{text} {text}.{text}") == by_parts(f"{text} {text}.{text}")


BROKEN = [b"\xc3", b"a\xe5\x85", b"\xf4\x90\x80\x80", b"\x80", b"\xc0\xaf"]


@given(st.binary(max_size=40) | st.sampled_from(BROKEN))
def test_bytes_that_are_no_text_are_refused(data: bytes) -> None:
    try:
        expected = by_parts(data.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        expected = None
    try:
        found = features.word_hashes(data, Parts()).tolist()
    except UnicodeDecodeError:
        assert expected is None
    else:
        # An overlong form of a character may pass, but only where no word is left to Python.
        assert expected is None or found == expected


@pytest.mark.parametrize("text", ["a", None, 1, bytearray(b"a")])
def test_what_is_no_bytes_is_refused(text: object) -> None:
    with pytest.raises(TypeError):
        features.word_hashes(text, Parts())  # type: ignore[arg-type]


def test_the_number_of_words_is_told_before_many_runs_are_left_to_python() -> None:
    asked: list[bytes] = []

    class Counted(Parts):
        def __missing__(self, run: bytes) -> bytes:
            asked.append(run)
            return super().__missing__(run)

    def check(number: int) -> None:
        if number > 10:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        features.word_hashes(" ".join(f"İ{n}" for n in range(1000)).encode(), Counted(), check)
    assert len(asked) == 10


READ = """
import hashlib, sys
from pathlib import Path
from neardup.fingerprint import sketch
from neardup.fingerprint.reader import Reader
from neardup.text.content import Content
from neardup.text.features import Features
pages = [path.read_bytes() for path in map(Path, sys.stdin.read().splitlines())]
for features in ("word-tf", "word-log-tf", "shingle-3", "shingle-10"):
    for size in (64, 1024, 2048):
        reader = Reader(Content(), Features(features), size)
        digest = hashlib.sha256()
        for page in [*pages, b"one word", b"", b"a b c d e f g"]:
            made = reader.read_html("http://a.example/", page)
            print_ = made.fingerprint
            digest.update(repr((made.text_digest, made.distinct_words, print_ and print_.value)).encode())
            digest.update(b"" if print_ is None else print_.weights.tobytes())
            digest.update(b"" if made.sketch is None else sketch.to_bytes(made.sketch))
            digest.update(made.shingles.tobytes() + made.holders.tobytes())
        print(digest.hexdigest())
"""


@pytest.mark.slow
def test_whatever_the_instructions_a_page_is_read_as_the_twins_read_it() -> None:
    paths = "\n".join(str(path) for path in real_pages()[::7])

    def digests(**environment: str) -> list[str]:
        return subprocess.run(
            [sys.executable, "-c", READ],
            env=os.environ | environment, input=paths, capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip

    expected = digests(NEARDUP_NATIVE="0")
    assert len(set(expected)) == 12
    for instructions in ("baseline", "avx2", "avx512"):
        assert digests(NEARDUP_INSTRUCTIONS=instructions) == expected, instructions
