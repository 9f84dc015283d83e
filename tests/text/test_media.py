"""What a page has beside its visible text: the names of its media, and words that are not shown."""

from __future__ import annotations

import pytest
from lxml import html

from neardup.text.media import media_names, words_not_shown


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
    ],
)  # fmt: skip
def test_names(body: str, names: set[str]) -> None:
    assert media_names(html.fromstring(f"<div>{body}</div>")) == names


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<script type="application/json">{"name": "Oak", "sku": "a7f"}</script>', "name oak sku"),
        ('<script>go({to: "there"})</script><p class="wide" id="first">shown</p>', "there"),
        ("<!-- <td>Oak</td> --><script src='/menu.js'></script>", "oak"),
        ('<wood-card name="Oak" id="top"></wood-card>', "oak top"),
        ('<input name="q" value="Oak"><img alt="A chair">', "oak chair"),
        ('<p data-city="Graz" data-token="Zm9vYmFyYmF6cXV4MTIz">', "graz"),
        ('<a href="mailto:ann@b.example">', "mailto ann example"),
        ('<a href="/other/oak.html">', ""),
        ('<a href="http://c.example/fox">', "http example fox"),
        ('<select><option>Red</option></select><noscript>Blue</noscript>', "red blue"),
        ("<template><p>Oak <b>table</b> top</p></template>shown", "oak table top"),
        ('<b data-back="/list/Zmxvd2Vy/x">', "list"),
    ],
)  # fmt: skip
def test_words_that_are_not_shown(body: str, said: str) -> None:
    page = html.fromstring(f"<div>{body}</div>")

    found = words_not_shown("http://a.example/Zmxvd2Vy/7?sid=abcdef", page)

    assert {words for words in found if " " not in words} == set(said.split())


def test_names_made_of_known_words_are_new() -> None:
    one, two, three = (
        words_not_shown("http://a.example/", html.fromstring(f'<p><input value="{name}">'))
        for name in ("Ann Fox", "Joe Hen", "Ann Hen")
    )

    assert three - one - two == {"ann hen"}
