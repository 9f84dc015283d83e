"""The visible text of a page, rule by rule, against BeautifulSoup, and on pages made to break it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import bs4
import parsel
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from scrapy.http import HtmlResponse

from neardup.text import visible_text
from neardup.text.visible_text import (
    INLINE,
    SKIPPED,
    parse,
    text_of_bytes,
    text_of_html,
    text_of_tree,
)
from tests.support.real_pages import page_id, real_pages

if TYPE_CHECKING:
    from pathlib import Path

# The reference: BeautifulSoup's own text


def reference_words(data: bytes, encoding: str) -> Counter[str]:
    """Words of the page as BeautifulSoup sees them, by other means than the product's: no walk, another URL
    expression.
    """
    soup = bs4.BeautifulSoup(data, "lxml", from_encoding=encoding)
    for image in soup.select('img, area, input[type="image" i]'):
        image.insert_before(f" {image.get('alt', '')} ")
    for element in soup.find_all(list(SKIPPED)):
        if not element.decomposed:
            # What takes room on the screen leaves a gap.
            element.insert_before("" if element.name in INLINE else " ")
            element.decompose()
    for element in soup.find_all(True):
        if element.name not in INLINE:
            element.insert_before(" ")
            element.append(" ")
            element.insert_after(" ")
    # A URL ends at a space, quote, angle bracket or at a letter or sign of East Asia. Both sides must agree
    # on that: where a URL ends is a decision, not something that BeautifulSoup could know.
    text = re.sub(r"[\u00ad\u200b-\u200f\u2060\ufeff\ufe0f]", "", soup.get_text())
    text = re.sub(
        r"(?:[A-Za-z0-9+-]*://|(?<!\w)www\.(?=\w))[^\s\"<>\u2010-\u206f\u3000-\u9fff\uff00-\uffef]*",
        " ",
        text,
        flags=re.IGNORECASE,
    )
    return Counter(regex.findall(r"\w+", text))


def test_same_words_as_beautifulsoup_on_real_pages() -> None:
    different = {}
    for path in real_pages():
        data = path.read_bytes()
        encoding = HtmlResponse("http://a.example/", body=data).encoding
        expected = reference_words(data, encoding)
        actual = Counter(regex.findall(r"\w+", text_of_bytes(data, encoding)))
        if actual != expected:
            different[page_id(path)] = dict(actual - expected), dict(expected - actual)

    assert different == {}


# One text in and out of Scrapy, and nothing written to the tree


def test_real_pages_have_the_same_text_in_and_out_of_scrapy_and_keep_their_tree() -> None:
    for path in real_pages():
        response = HtmlResponse("http://a.example/", body=path.read_bytes())
        root = response.selector.root
        before = etree.tostring(root)
        text = text_of_tree(root)

        assert etree.tostring(root) == before, page_id(path)
        assert text_of_html(response.text) == text, page_id(path)
        assert text_of_bytes(response.body) == text, page_id(path)
        assert text_of_bytes(response.body, response.encoding) == text, page_id(path)


MARKUP = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "é",
            "日",
            "www.",
            "http://",
            "x.example/",
            "&",
            "&amp;",
            "&#0;",
            "&#xD800;",
            "<",
            ">",
            "'",
            '"',
            "\x00",
            "\xad",
            "\u200b",
            "\n",
        ]
        + [
            f"<{slash}{name}>"
            for name in (*sorted(SKIPPED | INLINE), "p", "td", "table")
            for slash in ("", "/")
        ]
        + [
            "<br>",
            "<!--",
            "-->",
            "<!-- c -->",
            "<?php x ?>",
            "<![CDATA[",
            "]]>",
            "<p title='t'>",
            "<img alt='t u'>",
            "<input type=Image alt=t>",
            "<area alt>",
            "<frameset>",
            "</",
        ]
    )
    | st.text(max_size=8)
).map("".join)


@given(MARKUP)
@settings(max_examples=300, deadline=None)
def test_any_markup_is_read_only_tidy_and_the_same_as_from_parsel(html: str) -> None:
    text = text_of_html(html)
    root = parsel.Selector(text=html.encode("utf-8", "replace").decode(), type="html").root
    before = etree.tostring(root)

    assert text_of_tree(root) == text
    assert etree.tostring(root) == before
    assert text == " ".join(text.split())
    assert "://" not in text


@given(st.binary(max_size=200) | MARKUP.map(lambda html: html.encode("utf-16", "replace")))
@settings(max_examples=200, deadline=None)
def test_any_bytes_have_a_text(data: bytes) -> None:
    assert isinstance(text_of_bytes(data), str)


def test_a_part_of_a_page_has_neither_what_follows_nor_what_precedes_it() -> None:
    root = etree.HTML("before<div>in <b>si</b>de</div>after")

    texts = {element.tag: text_of_tree(element) for element in root.iter("div", "b")}

    assert texts == {"div": "in side", "b": "si"}
    assert text_of_tree(etree.HTML("<head><title>t</title></head>x")[0]) == ""


# What is content


@pytest.mark.parametrize("name", sorted(SKIPPED))
def test_skipped_subtrees_leave_their_tail(name: str) -> None:
    root = etree.fromstring(f"<body>one <{name}>no<p>no</p>no</{name}> two</body>")

    assert text_of_tree(root) == "one two"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<script>no</script>a<style>no</style>b<noscript>no<p>no</noscript>", "ab"),
        ("<svg><title>no</title><g><text>no</text></g></svg>a", "a"),
        ("<svg><svg>no</svg>no</svg>a", "a"),
        ("a<img src=x.png alt=text title=no>b", "a text b"),
        ("<img alt=a><img alt=''><img alt><img alt='  '><img><img alt='b\n c'>", "a b c"),
        ("a<IMG ALT='see www.a.example or a­b'>b", "a see or ab b"),
        ("<map><area href=x alt=a><area href=y></map>b", "a b"),
        ("<input type=IMAGE alt=a><input type=text alt=no value=no><input alt=no>b", "a b"),
        ("<picture><source alt=no><img alt=a></picture><p alt=no><video alt=no><img alt=no></video>b", "a b"),
        ("<svg><image alt=no></image></svg><noscript><img alt=no></noscript>b", "b"),
        (
            "<iframe><p>no</p></iframe>a<object><p>no</object>b<canvas>no</canvas>c<video>no</video>d",
            "a b c d",
        ),
        ("a<!-- no --><?no no?>b", "ab"),
        ("<title>no</title><h1>a</h1>", "a"),
        ("<p>a<title>no</title>b", "a b"),
        ("<frameset><frame src=x><noframes>a</noframes></frameset>", "a"),
        ("<body>a</body>b<p>c", "a b c"),
        ("<body>a</body></html>b<p>c</p></html><!-- no --><p>d", "a b c d"),
        ("<head><meta content=no></head><p>a", "a"),
        ("<math><mi>x</mi><annotation>no</annotation></math>", "x"),
        ("<textarea>a</textarea><select><option>b<option>c</select><button>d</button>", "a b c d"),
        ("<input value=no placeholder=no><p data-x=no>a", "a"),
        ("<a href='http://a.example/no' title=no>anchor words</a> stay", "anchor words stay"),
        ("<p hidden>a<p style='display: none'>b", "a b"),
    ],
)
def test_content(html: str, text: str) -> None:
    assert text_of_html(html) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<td>a</td><td>b</td>", "a b"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</table>d", "a b c d"),
        ("a<br>b<hr>c", "a b c"),
        ("a<p>b</p>c", "a b c"),
        ("<li>a<li>b", "a b"),
        ("<my-element>a</my-element>b", "a b"),
        ("<b>w</b>ord wo<wbr>rd w<a href=x><i>or</i></a>d w<span>o<!-- -->r</span>d", "word word word word"),
        ("wo<script>x</script>rd", "word"),
        ("<b>a<p>b</p></b>c", "a b c"),
        (
            "wo&shy;rd wo\u200brd wo\u200crd wo\u200drd wo\u2060rd wo\ufeffrd \u202bword\u202c",
            "word " * 6 + "word",
        ),
        (" a\t\n b&nbsp;\u3000\u2003c\r\n\n", "a b c"),
        ("<pre>a\n  b</pre>", "a b"),
        ("I &hearts; &lt;b&gt; &amp;amp; &eacute;", "I ♥ <b> &amp; é"),
    ],
)
def test_words_and_spaces(html: str, text: str) -> None:
    assert text_of_html(html) == text


@pytest.mark.parametrize("name", sorted(INLINE - SKIPPED))
def test_inline_markup_does_not_split_a_word(name: str) -> None:
    assert text_of_tree(etree.fromstring(f"<p>w<{name}>or</{name}>d</p>")) == "word"


# No URLs


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("see https://a.example/b?c=d&amp;e=f#g. Then", "see Then"),
        ("see http://a.example", "see"),
        ("HTTP://A.EXAMPLE/B git+ssh://git@a.example:22/b s3://bucket/key file:///etc/hosts a", "a"),
        ("www.a.example WWW.A.EXAMPLE/b Www.a.example a", "a"),
        ("(http://a.example/b) (www.a.example)", "( ("),
        ('say "http://a.example"now', 'say " "now'),
        ("&lt;http://a.example/&gt;b", "< >b"),
        ("http://web.archive.org/web/1/http://a.example/ b", "b"),
        ("https://de.example/wiki/K\u00e4se_(Essen) b", "b"),
        ("http://a.example/{id}/b|c b", "b"),
        ("<b>http://</b>a.exam<i>ple/x</i>y<wbr>z b", "b"),
        ("ht&shy;tp:/\u200b/a.exam\u00adple b w<b>ww</b>.a.example", "b"),
        ("http://a.example<br>b<p>www.a.example<td>c", "b c"),
        ("https://example.com/をご覧ください", "をご覧ください"),
        ("詳細はhttps://example.com/。次", "詳細は 。次"),
        ("（https://example.com/）と、www.example.comで", "（ ）と、 で"),
        ("ดูhttps://example.com/ดู เปิดwww.example.comดู", "ดู ดู เปิด ดู"),
        ("on the WWW. Then awww.b or www.", "on the WWW. Then awww.b or www."),
        ("a.example a@b.example and/or 1:2 // c", "a.example a@b.example and/or 1:2 // c"),
        ("://", ""),
    ],
)
def test_urls(html: str, text: str) -> None:
    assert text_of_html(html) == text


@given(
    st.lists(st.sampled_from(["a", "é", "日本", "ไทย", "한국", "-", "(", "。"]), max_size=5),
    st.sampled_from(["http://a.example/", "www.a.example", "ftp://a.example/b_(c)?d=e;f,g"]),
    st.data(),
)
def test_a_url_goes_however_it_is_cut_into_elements(words: list[str], url: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(url)), max_size=4)))
    parts = [url[i:j] for i, j in zip([0, *cuts], [*cuts, len(url)], strict=True)]
    mark = data.draw(st.sampled_from(["<wbr>", "<b></b>", "\u00ad", "\u200b", "<!-- -->"]))
    around = " ".join(words)

    assert text_of_html(f"<p>{around} {mark.join(parts)} {around}") == f"{around} {around}".strip()


# Bytes and soups


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("utf-8", "naïve café 日本語"),
        ("utf-8-sig", "naïve café"),
        ("utf-16", "naïve café"),
        ("iso-8859-1", "naïve café"),
        ("windows-1251", "слова страницы"),
        ("koi8-r", "слова страницы"),
        ("shift_jis", "日本語のページ"),
        ("euc-jp", "日本語のページ"),
        ("iso-2022-jp", "日本語のページ"),
        ("gb18030", "中文网页"),
        ("big5", "中文網頁"),
        ("euc-kr", "한국어 문서"),
    ],
)
def test_charset_given_or_declared(encoding: str, words: str) -> None:
    page = f"<p>{words}</p>"
    declared = f"<meta charset={encoding}>{page}"

    assert text_of_bytes(page.encode(encoding), encoding) == words
    assert text_of_bytes(declared.encode(encoding)) == words


def test_given_encoding_comes_before_the_declared_one() -> None:
    assert text_of_bytes("<meta charset=utf-8><p>слова".encode("koi8-r"), "koi8-r") == "слова"


@pytest.mark.parametrize("encoding", [None, "no-such-charset", "", "\x00"])
def test_unknown_encodings_are_no_error(encoding: str | None) -> None:
    assert text_of_bytes("<meta charset=also-unknown><p>naïve café".encode(), encoding) == "naïve café"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["punycode", "Punycode", "idna"])
def test_a_page_cannot_ask_for_a_codec_that_takes_quadratic_time(name: str) -> None:
    page = f"<meta charset={name}><p>xn--{'a' * 200_000}-{'b' * 200_000}".encode()

    assert text_of_bytes(page) == page.decode().partition("<p>")[2]
    assert text_of_bytes(b"<p>b-a", "punycode") == "b-a"


# Hostile pages


@pytest.mark.parametrize(
    "html",
    ["", " \n", "\x00", "<!-- c -->", "<!doctype html>", "<html>", "<", "</", "&", "<?xml version='1.0'?>"],
)
def test_no_content(html: str) -> None:
    assert text_of_html(html).strip("<&/") == ""
    assert text_of_bytes(html.encode()).strip("<&/") == ""


def test_nul_bytes_and_lone_surrogates() -> None:
    assert text_of_html("a\x00b \ud800c") == "ab ?c"
    assert text_of_bytes(b"<p>a\x00b\xff c").endswith(" c")


def test_tree_100_000_deep() -> None:
    # The HTML parser of libxml2 2.14 stops at 2,047; other makers of trees, and other versions, do not.
    depth = 100_000
    builder = etree.TreeBuilder()
    for level in range(depth):
        builder.start("b" if level % 2 else "div", {})
    builder.data("x")
    for level in reversed(range(depth)):
        builder.end("b" if level % 2 else "div")
        builder.data("z" if level else "")
    words = text_of_tree(builder.close()).split()

    assert words[0] == "xz"
    assert words[1:] == ["zz"] * (depth // 2 - 1)


@pytest.mark.parametrize("path", real_pages(), ids=page_id)
def test_stylesheet_and_loop_are_one_walk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = HtmlResponse(path.as_uri(), body=path.read_bytes()).selector.root
    by_stylesheet = text_of_tree(root)
    monkeypatch.setattr(visible_text, "_IS_DEEP", lambda _: True)

    assert text_of_tree(root) == by_stylesheet != ""


@pytest.mark.parametrize("depth", [1, 126, 127, 128, 129, 300])
def test_trees_about_as_deep_as_the_stylesheet_goes(depth: int) -> None:
    html = "<html><body>" + "<div>a<i>b</i><script>no</script>" * depth + " c" + "</div>d" * depth

    assert text_of_html(html).split() == ["ab"] * depth + ["c"] + ["d"] * depth


def test_markup_100_000_deep() -> None:
    root = parse("a" + "<div>" * 100_000 + "b" + "</div>" * 100_000)

    assert root is not None
    assert text_of_tree(root).startswith("a")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "count", "words"),
    [
        ("a", 50_000_000, 1),
        ("a.", 5_000_000, 1),
        ("http", 2_000_000, 1),
        ("://", 2_000_000, 0),
        ("http://", 1_000_000, 0),
        ("www.", 1_000_000, 0),
        ("awww.", 1_000_000, 1),
        ("日www.", 500_000, 500_000),
        ("日http://", 500_000, 500_000),
        ("\u00ad", 3_000_000, 0),
        ("a ", 2_000_000, 2_000_000),
        ("a<br>", 300_000, 300_000),
        ("<b>a", 2_000, 1),
        ("<svg>", 2_000, 0),
    ],
)
def test_large_pages(unit: str, count: int, words: int) -> None:
    root = parse(unit * count)
    assert root is not None
    assert len(text_of_tree(root).split()) == words


def test_many_roots_have_the_text_of_few() -> None:
    after = "".join(f"<p>a<b>b</b>{number}<img alt=c></p></html>" for number in range(100))

    assert text_of_html(f"<html>x</html>{after}").split() == ["x"] + [
        word for number in range(100) for word in (f"ab{number}", "c")
    ]


def test_without_alt_texts() -> None:
    html = "a<img alt=no>b<input type=image alt=no>c<map><area alt=no></map>"
    for page in (html, "<b>" * 200 + html):
        root = parse(page)
        assert root is not None
        assert text_of_tree(root, alt_texts=False) == "a b c"
        assert text_of_tree(root) == "a no b no c no"
