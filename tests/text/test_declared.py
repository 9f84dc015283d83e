"""What pages say of their own addresses."""

from __future__ import annotations

import pytest
from lxml import etree

from neardup.text.declared import MOST_LINKS, Declared, declared

URL = "http://a.example/dir/x?sid=1"


def said(head: str, body: str = "") -> Declared:
    return declared(URL, etree.HTML(f"<html><head>{head}</head><body>{body}</body></html>"))


@pytest.mark.parametrize(
    ("head", "canonical"),
    [
        ("<link rel=canonical href=y#top>", "http://a.example/dir/y"),
        ("<link rel='shortlink CANONICAL' href='//b.example/y'>", "http://b.example/y"),
        ("<base href=/other/><link rel=canonical href=' y '>", "http://a.example/other/y"),
        ("<link rel=canonical href='?sid=1'>", None),  # the page itself
        ("<link rel=canonical href=y><link rel=canonical href=y>", "http://a.example/dir/y"),
        ("<link rel=canonical href=y><link rel=canonical href=z>", None),
        ("<link rel=canonical>", None),
        ("<link rel=canonical href='http://[::1/'>", None),
        ("<link rel=canonical href='javascript:alert(1)'>", None),
        (f"<link rel=canonical href='/{'y' * 3_000}'>", None),
        ("<link rel=stylesheet href=y>" * MOST_LINKS + "<link rel=canonical href=y>", None),
        ("", None),
    ],
)
def test_canonical(head: str, canonical: str | None) -> None:
    assert said(head).canonical == canonical


def test_in_the_body_it_counts_for_nothing() -> None:
    assert said("", "<p>text</p><link rel=canonical href=y>") == Declared()
    assert declared(URL, etree.Element("p")) == Declared()


def test_versions_for_other_languages() -> None:
    links = "<link rel=alternate hreflang={} href={}>".format
    feed = "<link rel=alternate type='application/rss+xml' href=/feed>"
    head = links("de", "/de/x") + links("x-default", "/x") + links("en", "'?sid=1'") + feed

    assert said(head).alternates == {"http://a.example/de/x", "http://a.example/x"}
