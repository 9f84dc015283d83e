"""The names of the media of a page."""

from __future__ import annotations

import pytest
from lxml import html

from neardup.text.media import media_names


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ('<img src="/photos/beach.jpg?width=300#x">', {"beach.jpg"}),
        ('<img src="beach.jpg;session=a7f">', {"beach.jpg"}),
        ('<source srcset="/a/sun.png 1x, /moon.png 2x"><img src="">', {"sun.png", "moon.png"}),
        ('<video src="/v/waves.ogv"></video><audio src="/gulls.ogg">', {"waves.ogv", "gulls.ogg"}),
        ('<img src="/IMG_0451.jpg"><img src="/IMG_0452.jpg">', {"IMG_.jpg"}),
        ('<img src="http://[a/b.png"><img><script src="/menu.js"></script>', set()),
    ],
)  # fmt: skip
def test_names(body: str, names: set[str]) -> None:
    assert media_names(html.fromstring(f"<div>{body}</div>")) == names
