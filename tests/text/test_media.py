"""What a page has beside its words: the names of its media and files, what is not shown, and symbols."""

from __future__ import annotations

import pytest
from lxml import html

from neardup.text.media import not_shown, of_media, symbols

OWN = "Zmxvd2Vy"
"""The id of a session in the URL of a page."""


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ('<img src="/photos/beach.jpg?width=300#x">', {"beach.jpg"}),
        ('<img src="beach.jpg;session=a7f">', {"beach.jpg"}),
        ('<source srcset="/a/sun.png 1x, /moon.png 2x"><img src="">', {"sun.png", "moon.png"}),
        ('<video src="/v/waves.ogv"></video><audio src="/gulls.ogg">', {"waves.ogv", "gulls.ogg"}),
        ('<img src="/IMG_0451.jpg"><img src="/IMG_0452.jpg">', {"IMG_.jpg"}),
        ('<img data-original="/a/fox.jpg"><video poster="/hen.jpg">', {"fox.jpg", "hen.jpg"}),
        ("<div style=\"background: url('/b/sky.jpg')\">", {"sky.jpg"}),
        ('<img src="http://[a/b.png"><img><script src="/menu.js"></script>', set()),
        ('<iframe src="https://v.example/embed/aXb9c?t=1"></iframe>', {"aXbc?t="}),
        ('<object data="/m/oak.swf"></object><embed src="/fir.mid">', {"oak.swf", "fir.mid"}),
        ('<img src="/image?url=%2Fp%2Foak.jpg&w=640">', {"image?url=/p/oak.jpg&w="}),
        (f'<img src="/count?of={OWN}">', {"count?of="}),
        (f'<img src="/photos/{OWN}.jpg">', {"ZmxvdVy.jpg"}),
        ('<a href="/files/report-2031.pdf?dl=1#top">', {"report-.pdf"}),
        ('<a href="/oak.html"><a href="/oak.php?file=a.pdf"><a href="/oak/"><input src="/no.png">', set()),
    ],
)  # fmt: skip
def test_names(body: str, names: set[str]) -> None:
    found = of_media(f"http://a.example/7?sid={OWN}", html.fromstring(f"<div>{body}</div>"))

    assert found.names == names


def test_an_image_that_the_page_holds_is_a_name() -> None:
    one, two, same = (
        of_media("http://a.example/", html.fromstring(f'<p><img src="data:image/png;base64,{bits}">')).names
        for bits in ("iVBORw0KGgo1", "iVBORw0KGgo2", "iVBORw0KGgo1")
    )

    assert one == same != two
    assert len(one) == 1


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        ('<img src="/photos/451.jpg?v=777"><a href="/files/812.zip">', {"451", "812"}),
        ('<img src="/image.php?id=4711">', {"4711"}),
        ("<script>show(123456); at(20310506)</script>", {"123456"}),
        (f'<img src="/{OWN}/12.jpg"><a href="/page/500">', set()),
        ('<p data-sku="4711">', set()),
    ],
)  # fmt: skip
def test_numbers_of_media_files_and_scripts(body: str, numbers: set[str]) -> None:
    found = of_media(f"http://a.example/?sid={OWN}", html.fromstring(f"<div>{body}</div>"))

    assert found.numbers == numbers


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        ('<input type="hidden" name="id" value="4711">', {"4711"}),
        ('<p class="post-4711" id="in-815">', {"4711", "815"}),
        ('<a href="https://m.example/?q=51.12345,13.54321">', {"12345", "54321"}),
        ('<a href="/page/500">', set()),
        ('<p data-day="20310506" data-token="a712f">', set()),
        ('<script>NREUM.info={"queueTime":123,"applicationTime":4567}</script><!-- 812 -->', set()),
        (f'<p data-sid="{OWN}">', set()),
    ],
)  # fmt: skip
def test_numbers_that_are_not_shown(body: str, numbers: set[str]) -> None:
    found = not_shown(f"http://a.example/?sid={OWN}", html.fromstring(f"<div>{body}</div>"))

    assert {number for number in found.numbers if len(number) < 20} == numbers


@pytest.mark.parametrize(
    "body",
    [
        "<script>plot([12, 7, 31, {}])</script>",
        "<p data-points='12;7;31;{}'>",
        '<svg><path d="M12 7L31 {}"/></svg>',
        '<p data-x="12" data-y="{}">',
    ],
)
def test_rows_of_small_numbers(body: str) -> None:
    one, two, same, dated = (
        not_shown("http://a.example/", html.fromstring(f"<div>{body.format(number)}</div>")).numbers
        for number in (4, 5, 4, 2031)
    )

    assert one == same != two
    assert one
    assert not {number for number in dated if len(number) > 20}, "each day of a calendar would have its own"


def test_symbols_stand_by_themselves() -> None:
    assert symbols("C++ and ★★☆ — or 😀") == {"★★☆", "—", "😀"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<script type="application/json">{"name": "Oak", "sku": "a7f"}</script>', "name oak sku"),
        ('<script>go({to: "there"})</script><p class="wide" id="first">shown</p>', "there"),
        ("<!-- <td>Oak</td> --><script src='/menu.js'></script>", "oak"),
        ('<wood-card name="Oak" id="top"></wood-card>', "oak top"),
        ('<input name="q" value="Oak"><img alt="A chair">', "oak chair"),
        ('<p data-by="“O’Neil” of Ng"><p data-by="王明"><p data-by="李">', "neil 王明 李"),
        ('<p data-by="हिन्दी"><p data-by="नी"><p data-by="l’été">', "हिन्दी नी été"),
        ('<p data-city="Graz" data-token="Zm9vYmFyYmF6cXV4MTIz">', "graz"),
        ('<a href="mailto:ann@b.example">', "mailto ann example"),
        ('<a href="/other/oak.html">', ""),
        ('<a href="http://c.example/fox">', "http example fox"),
        ('<a href="tel:+4312345678">', "tel tel:+4312345678"),
        ('<select><option>Red</option></select><noscript>Blue</noscript>', "red blue"),
        ("<template><p>Oak <b>table</b> top</p></template>shown", "oak table top"),
        ('<b data-back="/list/Zmxvd2Vy/x">', "list"),
    ],
)  # fmt: skip
def test_words_that_are_not_shown(body: str, said: str) -> None:
    page = html.fromstring(f"<div>{body}</div>")

    found = not_shown("http://a.example/Zmxvd2Vy/7?sid=abcdef", page)

    assert {words for words in found.names if " " not in words} == set(said.split())


def test_names_made_of_known_words_are_new() -> None:
    one, two, three = (
        not_shown("http://a.example/", html.fromstring(f'<p><input value="{name}">')).names
        for name in ("Ann Fox", "Joe Hen", "Ann Hen")
    )

    assert three - one - two == {"ann hen"}


@pytest.mark.parametrize("repeated", ["1", "1 ", "1,", "a1", "12a", "time=", "=1", "\u2605"])
def test_long_data_take_no_longer_by_character(repeated: str) -> None:
    """With time by the square of the length, this would take hours."""
    data = repeated * (2_000_000 // len(repeated))
    page = html.fromstring("<p data-x=''></p><script></script>")
    for element in page.iter("p", "script"):
        element.text = data
        element.set("data-x", data)

    assert not_shown("http://a.example/", page).names <= {"time", "time time"}
    assert of_media("http://a.example/", page).names == set()
    assert symbols(data + "a") == set()
