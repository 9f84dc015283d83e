"""However the host of a URL is spelt, every room takes it for the same host."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, Request
from scrapy.utils.test import get_crawler

from crawler.spiders.site import SiteSpider
from neardup.address import Address, host_of
from neardup.detection.endless import EndlessWatch
from neardup.detection.scope import DOMAIN, HOST, Scope
from neardup.detection.suspect_clusters import FEWEST_ADDRESSES, ClusterWatch
from neardup.detection.verdict import Kind, Verdict
from neardup.scrapy.links import DEFERRED, Links
from neardup.scrapy.options import Action
from neardup.store.store import Store
from neardup.text.content import BODY, Content
from tests.support.page_links import page_links
from tests.support.stores import pages_of, upgraded, write
from tests.support.verdicts import page

if TYPE_CHECKING:
    from pathlib import Path

SPELLINGS = [
    ("http://shop.example/a", "shop.example"),
    ("http://SHOP.Example/a", "shop.example"),
    ("http://shop.example:80/a", "shop.example"),
    ("http://shop.example:8080/a", "shop.example"),
    ("http://user:secret@shop.example/a", "shop.example"),
    ("http://shop.example./a", "shop.example"),
    ("http://bücher.example/a", "xn--bcher-kva.example"),
    ("http://BÜCHER.example.:8080/a", "xn--bcher-kva.example"),
    ("http://xn--bcher-kva.example/a", "xn--bcher-kva.example"),
    ("http://[2001:DB8::1]/a", "2001:db8::1"),
    ("http://[2001:db8::1]:8080/a", "2001:db8::1"),
]


@pytest.mark.parametrize(("url", "host"), SPELLINGS)
def test_all_rooms_agree_on_the_host_of_a_url(url: str, host: str, tmp_path: Path) -> None:
    written = f"[{host}]" if ":" in host else host
    plain = f"http://{written}/b"
    address = Address(url)
    assert address.host == Address(plain).host == host

    words = " ".join(f"word{number}" for number in range(200))
    rules = Content(BODY, {written: {"include": "#c"}})
    assert rules.text_of_html(url, f"<nav>menu</nav><p id=c>{words}</p>") == words

    for scope in (Scope(HOST), Scope(DOMAIN)):
        assert scope.takes(address, plain)
        assert scope.takes(Address(plain), url)
        assert not scope.takes(address, "http://other.test/a")

    with Store.open(upgraded(f"sqlite:///{tmp_path}/n.db"), scheme="s") as store:
        write(store, page(1, url))
        assert [row["host"] for row in pages_of(store)] == [host]

    spider = SiteSpider(url=url)
    assert spider.hosts == {host}
    html = f'<a href="{plain}">same</a><a href="http://other.test/">other</a>'
    response = HtmlResponse(url, body=html.encode(), encoding="utf-8", request=Request(url))
    assert [link.url for link in spider._links_to_site(response)] == [plain]

    links = Links(get_crawler(SiteSpider), Action.DEFER, EndlessWatch(3))
    duplicate = Verdict(
        address=address,
        kind=Kind.DUPLICATE,
        follow=False,
        repeated=True,
        reason="",
        page_id=2,
        canonical_id=1,
    )
    request = Request(plain)
    assert page_links(links, response, duplicate, str).lets_pass(request)
    assert request.priority <= -DEFERRED  # not taken for a link to another host


def test_an_address_is_of_one_site_with_and_without_the_standard_port() -> None:
    watch = ClusterWatch()
    spelt = ["http://A.example:80", "http://a.example.", "https://user@a.example:443", "http://a.example"]
    urls = [f"{spelt[number % 4]}/{number}" for number in range(FEWEST_ADDRESSES)]

    flags = [watch.judged(url, (1,)) for url in urls]

    assert flags[-1] == (FEWEST_ADDRESSES, FEWEST_ADDRESSES)


_PIECES = [
    "http",
    ":",
    "/",
    "//",
    "?",
    "#",
    "a",
    "A.b",
    "@",
    "[",
    "::1",
    "]",
    "\t",
    "\n",
    " ",
    "ü",
    "％",
    "80",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_the_host_is_that_of_the_standard_library(url: str) -> None:
    """However little of the URL is read."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
        wanted = host.encode("idna").decode("ascii") if not host.isascii() else host
    except ValueError:
        wanted = ""

    assert host_of(url) == wanted
