"""The targets ``text`` and ``words``: a page's bytes to its text, a text to its fingerprint and sketch."""

from __future__ import annotations

import functools
import tempfile
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neardup.fingerprint.reader import Reader
from neardup.text.content import BODY, MAIN, Content
from neardup.text.features import HASH, Features, hash_feature
from neardup.text.idf import Learner
from neardup.text.selectors import Choice, Selector
from neardup.text.visible_text import (
    _IS_DEEP,
    _STYLESHEETS,
    _pieces,
    cleaned,
    decode,
    parse,
    text_of_bytes,
    text_of_html,
    text_of_tree,
    tops,
)
from neardup.text.words import bigrams, dictionary_words, parts, words
from tests.support.places import PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree

    from neardup.fingerprint.reader import Reading

_URL = "http://a.example/page"
_SELECTORS = {"*": {"include": "main, article, p, td", "exclude": "nav, .x, p > b"}}

_CHOSEN = (
    (None, "p > b, .x"),
    ("main, p, td", "nav, #i"),
    ("[class~=a] *, div div", None),
    ("body > *, li > a[href]", "[title=''], b p, img"),
)
"""Included and excluded."""

_FEATURES = (
    "word-tf",
    "word-log-tf",
    "shingle-3",
    "word-tf+stop-english+stem-english",
    "shingle-2+icu",
    "word-log-tf+stem-porter+icu",
    "word-tf+stem-serbian",
    "shingle-10+stop-english+stem-arabic+icu",
    "word-tfidf:{table}",
)
_ENCODINGS = ("utf-8", "utf-16-le", "utf-32-le")
_SHORT = 4096
"""Characters of a text that is put into NFD as well: the standard library takes quadratic time for long runs
of marks.
"""

_ODD_PAGES = (
    b"",
    b"<!---->",
    b"<html>a</html><p>b</p>",
    b"<b>" * 300 + b"deep" + b"</b>" * 300,
    b"<svg:p>a</svg:p><a:b>c<math><mi>x</mi></math><![CDATA[d]]><?pi e?>f",
    b"<meta charset=utf-7>+AGE- +ZeVnLIqe-",
    b"<meta charset=punycode><p>abc-def",
    b'<?xml version="1.0" encoding="utf-16"?><p>a',
    "\ufeff<p>see www.a.example, http://b.example/ü and a\u00adb".encode("utf-16"),
    b"<p>&#0;&#xd800;&#1114112;&nope;&amp <p\x00q>\xff\xfe",
    b"<nav>a</nav><main><p>b <b>c</b>" + b" word other" * 20 + b"</main>",
    b"<div class='b a' title><div id=i>c <b>d<p class=x>e</p></b><img alt='f  g'></div><li><a href=h>j",
    b"<frameset><noframes>a<body>b</noframes></frameset><table><tr>c<td>d",
)
_ODD_TEXTS = (
    "",
    "the page, THE PAGE of Straße İstanbul \u0130\u0131 ﬁn",
    "Python入門書 をよむ ภาษาไทย ພາສາ ខ្មែរ မြန်မာ 한국어",
    "e\u0301 \u0344 a\u0316\u0301\u0334 <\u0338 \u212b ™\u0301 §a\u0345",
    "\u0f73\u0f75\u0f81" * 30 + "\u0301\u0316" * 40,
    "\ud800 a\udfff \u3099か\u3099 ー〆 \u02bc",
)


def text(data: bytes) -> None:
    """The first byte chooses how the rest, a page, is read; read in two ways, it must give the same."""
    if not data:
        return
    reader, page = _page_readers()[data[0] % 3], data[1:]
    html = decode(page)
    text = reader.content.text_of_html(_URL, page)
    assert text == reader.content.text_of_html(_URL, html), "bytes and their string differ"
    assert text == " ".join(text.split()), "white space is left"
    _assert_same(reader.read_html(_URL, page), reader.read_text(text))
    root = parse(html)
    if root is not None:
        _assert_walks_agree(root)
        simple, by_xpath = _choices()[data[0] // 4 % len(_CHOSEN)]
        chosen = simple.utf8(root, alt_texts=True)
        assert chosen == by_xpath.utf8(root, alt_texts=True), "selectors choose other parts"
    try:
        utf_8 = page.decode()
    except UnicodeDecodeError:
        return
    assert text_of_bytes(page, "utf-8") == text_of_html(utf_8), "UTF-8 and its string differ"


def _assert_walks_agree(root: etree._Element) -> None:
    for alt_texts, stylesheet in enumerate(_STYLESHEETS):
        walked = ["".join(_pieces(top, alt_texts=bool(alt_texts))) for top in tops(root)]
        for top, pieces in zip(tops(root), walked, strict=True):
            assert _IS_DEEP(top) or str(stylesheet(top)).split() == pieces.split(), (
                "stylesheet and loop differ"
            )
        native = text_of_tree(root, alt_texts=bool(alt_texts))
        assert native == cleaned(" ".join(walked)), "native walk and loop differ"


def find_words(data: bytes) -> None:
    """The first byte chooses the features, the second the encoding of the rest, a text."""
    if len(data) < 2:
        return
    text = _decoded(data[1], data[2:])
    reader = _text_readers()[data[0] % len(_FEATURES)]
    split = dictionary_words() if "+icu" in reader.features.name else bigrams
    found = words(text, split)
    assert all(found), "an empty word"
    assert found == words(text, split), "other words the second time"
    assert found == parts(text, split), "other words by expressions"
    if len(text) <= _SHORT:
        assert found == words(unicodedata.normalize("NFD", text), split), "other words in NFD"
    extracted = reader.features.extract(text)
    assert extracted.words.tolist() == [hash_feature(word) for word in found], "other hashes"
    assert extracted.distinct_words == len(set(found)), "another number of distinct words"
    assert np.unique(extracted.hashes).size == extracted.hashes.size, "a feature stands there twice"
    assert bool((extracted.weights >= 0.0).all()), "a weight below 0"
    assert bool(np.isfinite(extracted.weights).all()), "a weight that is none"
    _assert_same(reader.read_text(text), reader.read_text(text))


def text_seeds() -> Iterator[bytes]:
    for number, path in enumerate(sorted(PAGES.rglob("*.html*"))):
        yield bytes([number % 16]) + path.read_bytes()
    for page in _ODD_PAGES:
        for mode in range(16):
            yield bytes([mode]) + page


def word_seeds() -> Iterator[bytes]:
    for number, path in enumerate(sorted(PAGES.rglob("*.html*"))[::4]):
        text = text_of_bytes(path.read_bytes())
        yield bytes([number % len(_FEATURES), number % 3]) + text[:8192].encode(_ENCODINGS[number % 3])
    for number, text in enumerate(_ODD_TEXTS):
        for encoding, name in enumerate(_ENCODINGS):
            yield bytes([number, encoding]) + text.encode(name, "surrogatepass")


def _decoded(choice: int, data: bytes) -> str:
    encoding = _ENCODINGS[choice % len(_ENCODINGS)]
    try:
        return data.decode(encoding, "surrogatepass")
    except UnicodeDecodeError:
        return data.decode(encoding, "replace")


def _assert_same(one: Reading, other: Reading) -> None:
    for a, b in (
        (one.sketch, other.sketch),
        (one.shingles, other.shingles),
        (one.holders, other.holders),
    ):
        assert np.array_equal(a, b) if a is not None and b is not None else a is b, "another sketch"
    first, second = (
        (f.value, f.weights.tolist()) if f else None for f in (one.fingerprint, other.fingerprint)
    )
    assert first == second, "another fingerprint"


@functools.cache
def _page_readers() -> tuple[Reader, ...]:
    contents = (Content(BODY), Content(MAIN), Content(BODY, _SELECTORS))
    return tuple(Reader(content, Features()) for content in contents)


@functools.cache
def _choices() -> list[tuple[Choice, Choice]]:
    """Each of ``_CHOSEN`` for the native walk, and for XPath."""
    made = []
    for css in _CHOSEN:
        include, exclude = (None if text is None else Selector(text) for text in css)
        simple, by_xpath = Choice(include, exclude), Choice(include, exclude)
        by_xpath._automaton = None
        made.append((simple, by_xpath))
    return made


@functools.cache
def _text_readers() -> tuple[Reader, ...]:
    learner, features = Learner(), Features()
    for path in sorted(PAGES.rglob("*.html*"))[::8]:
        extracted = features.extract(text_of_bytes(path.read_bytes()))
        learner.add(extracted.words, extracted.hashes)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "fuzz.npz"
        learner.frequencies("fuzz", modifiers="", hashed_by=HASH, min_pages=2).save(table)
        return tuple(Reader(Content(BODY), Features(name.format(table=table))) for name in _FEATURES)
