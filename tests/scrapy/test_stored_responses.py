"""Stored pages have the text and the tree that Scrapy gives the same page in a crawl."""

from __future__ import annotations

import pytest
from lxml import etree

from neardup.scrapy.stored_responses import html_response, stored_page
from neardup.text.visible_text import tops
from tests.support.real_pages import real_pages

HEADERS = (b"Content-Type: text/html", b"Content-Type: text/html; charset=iso-8859-15")
ODD = (
    b"",
    b" \n",
    b"\x00",
    b"<!-- nothing -->",
    b"<!DOCTYPE html>",
    b"plain words",
    b"<?xml version='1.0' encoding='utf-8'?><html><p>caf\xc3\xa9",
    b"\xff\xfe<\x00p\x00>\x00a\x00",
    b"\xef\xbb\xbf<p>a",
    b"\xc2\xa0<p>space before the page",
    b"<p>\xff\xfe y",
    b"<p>a\x00b",
    b"<html><body><p>a</body></html><p>behind the end",
    b"<base href=http://b.example/><a href=x>b</a>",
    b"<meta charset=shift_jis><p>\x82\xa0\x82\xa2",
)


def trees(root: etree._Element) -> list[bytes]:
    return [etree.tostring(top) for top in tops(root)]


@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("body", ODD)
def test_odd_page(headers: bytes, body: bytes) -> None:
    assert_same(headers, body)


@pytest.mark.parametrize("headers", HEADERS)
def test_real_pages(headers: bytes) -> None:
    bodies = [path.read_bytes() for path in real_pages()]

    for body in bodies:
        assert_same(headers, body)


def test_what_is_no_html_is_no_page() -> None:
    assert stored_page("http://a.example/x", 200, b"Content-Type: image/png", b"\x89PNG") is None


def assert_same(headers: bytes, body: bytes) -> None:
    page = stored_page("http://a.example/x", 200, headers, body)
    response = html_response("http://a.example/x", 200, headers, body)

    assert page is not None
    assert response is not None
    assert (page.url, page.body, page.text) == (response.url, response.body, response.text)
    assert trees(page.selector.root) == trees(response.selector.root)
