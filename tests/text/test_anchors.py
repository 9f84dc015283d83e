"""Links of pages: what anchors lead to, as urllib.parse joins them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest
from lxml import etree

from neardup.address import is_web, page_url
from neardup.text import anchors
from neardup.text.anchors import links
from neardup.text.visible_text import parse
from tests.support.places import PAGES
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from types import ModuleType

TWINS = (anchors, python_twin(anchors))

BASES = (
    "http://a.example/", "http://a.example", "http://a.example/x", "http://a.example/x/y.html",
    "http://a.example:80/x/y?z=/q/", "http://a.example/x/../y/z", "http://a.example/./y",
    "https://a.example/a;b/c", "http://a.example/a/b;c", "http://a.example/x//y", "http://a.example/x/y.z/?",
    "file:///a/b", "http://A.example/x/é/y", "http://a.example?x", "http://u@a.example/x/",
)  # fmt: skip
PIECES = (
    *"ab./?;:&=%~-_ \\é+(),!$'*@",
    "..",
    "../",
    "../",
    "./",
    "x/",
    "a",
    "http://",
    "//",
    "http://b.example",
    "https://b.example:8/c?",
    "HTTP:",
)


def joined(base: str, href: str) -> str | None:
    """What a link leads to, by the standard library alone; None: nowhere."""
    try:
        url = urljoin(base, href)
    except ValueError:
        return None
    is_page = is_web(url) or (url.startswith("file:") and base.startswith("file:"))
    return page_url(url) if href and is_page and page_url(url) != page_url(base) else None


def test_links_are_joined_as_by_urljoin() -> None:
    chance = random.Random(4)
    found = 0
    for _ in range(6_000):
        base = chance.choice(BASES)
        href = "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 6))).strip()
        root = etree.HTML("<p>")
        etree.SubElement(root, "a", href=f" {href}#part")
        expected = joined(base, href)
        assert list(links(base, root)) == ([expected] if expected else []), (base, href)
        found += expected is not None
    assert found > 2_000


def test_base_of_the_page_counts() -> None:
    for page in ("<base href='/b/'><a href=c>1</a>", "<BASE HREF='http://a.example/b/c'><a href=c>1</a>"):
        assert links("http://a.example/x/y", etree.HTML(page)) == {"http://a.example/b/c": False}


def test_links_stand_in_the_order_of_the_page() -> None:
    page = "<a href=b>1</a><map><area href=a></map><a href=c rel=nofollow>2</a><a href=b rel=nofollow>3</a>"

    found = links("http://a.example/", etree.HTML(page))

    assert list(found.items()) == [
        ("http://a.example/b", False), ("http://a.example/a", False), ("http://a.example/c", True)
    ]  # fmt: skip


@pytest.mark.parametrize("module", TWINS, ids=("native", "python"))
def test_what_anchors_say(module: ModuleType) -> None:
    root = etree.HTML(
        "<head><base target=x><base href=/b/><base href=/c/><meta name=robots>"
        "<meta name=ROBOTS content=NoFollow>"
        "<body><a>no</a><a href='#x'>no</a><a href=''>e</a><a href=x rel='nofollow'>1</a>"
        "<area href=y rel=NOFOLLOW>"
        "<a href=x>2</a><abbr href=z>z</abbr><a href='ä&amp;b'>3</a><!-- <a href=no> -->"
        "<a rel=nofollow href='v#1'>4</a><a href='v#2' rel=nofollow>5</a><a rel href='y#3'>6</a>"
        "<a href='w#'>7</a>"
    )

    links = {"": False, "x": False, "y": False, "ä&b": False, "v": True, "w": False}
    assert module.anchors(root) == ("/b/", True, links)


def test_twins_join_alike() -> None:
    chance = random.Random(9)
    plain = 0
    for _ in range(3_000):
        path = "".join(chance.choice(("x/", "y.z/", "")) for _ in range(3))
        folder = chance.choice((f"http://a.example:80/{path}", f"file:///{path}", ""))
        top = folder.find("/", folder.find("//") + 2) + 1
        hrefs = {
            "".join(chance.choices(PIECES, k=chance.randint(0, 6))): chance.random() < 0.5 for _ in "123456"
        }
        others: list[list[str]] = [[], []]
        found = [
            module.led_to(hrefs, folder, top, False, lambda href, asked=asked: asked.append(href) or "")
            for module, asked in zip(TWINS, others, strict=True)
        ]
        assert found[0] == found[1], (folder, hrefs)
        assert others[0] == others[1]
        plain += len(found[0])
    assert plain > 1_000


@pytest.mark.parametrize("module", TWINS, ids=("native", "python"))
def test_a_link_says_nofollow_if_all_of_its_anchors_do(module: ModuleType) -> None:
    hrefs = {"x": True, "./x": False, "y": True, "a/../y": True, " z ": False, "": True}

    def joined(href: str) -> str:
        return urljoin("http://a.example/", href)

    found = module.led_to(hrefs, "http://a.example/", 17, False, joined)
    of_page = module.led_to(hrefs, "http://a.example/", 17, True, joined)

    assert list(found.items()) == [(f"http://a.example/{name}", name == "y") for name in "xyz"]
    assert of_page == dict.fromkeys(found, True)


def test_twins_agree_on_real_pages() -> None:
    for path in sorted(PAGES.rglob("*.html")):
        root = parse(path.read_text(encoding="utf-8", errors="replace"))
        assert root is not None
        native, python = (module.anchors(root) for module in TWINS)
        assert native == python
        assert native[2]


def test_a_page_that_says_nofollow_says_so_of_all_its_links() -> None:
    page = "<meta name=robots content='noindex, nofollow'><a href=b>1</a>"

    assert links("http://a.example/", etree.HTML(page)) == {"http://a.example/b": True}
