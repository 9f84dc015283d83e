"""URLs in their parts, whatever they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.urls.parts import (
    MOST_CHARACTERS,
    MOST_PARAMETERS,
    MOST_SEGMENTS,
    is_opaque,
    parts_of,
    plain_spelling,
    shape,
)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mailto:a@b.example",
        "data:text/html,x",
        "http://",
        "http://[::1",
        "http://a.example:port/",
        "http://a.example/" + "x" * MOST_CHARACTERS,
        "http://a.example/" + "x/" * MOST_SEGMENTS,
        "http://a.example/?" + "&".join(f"p{number}=1" for number in range(MOST_PARAMETERS + 1)),
    ],
)
def test_what_has_no_rules_has_no_parts(url: str) -> None:
    assert parts_of(url) is None


def test_broken_percent_encoding_is_kept_as_it_is() -> None:
    parts = parts_of("http://a.example/%zz/%?%=%e9&b")

    assert parts is not None
    assert parts.segments == ("%zz", "%")
    assert parts.parameters == (("%", "%=%e9"), ("b", "b"))


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("p=lore.git;a=tree;hb=HEAD", ["p", "a", "hb"]),
        ("C=N;O=D", ["C", "O"]),
        ("a=1;b=2&c=3", ["a", "c"]),
        ("a=1&amp;b=2", ["a", "amp;b"]),
        ("a=x;y", ["a"]),
        ("a=1;", ["a"]),
        ("p=x;a=tree;", ["p", "a"]),
        (";", []),
        ("", []),
    ],
)
def test_parameters_of_a_query_stand_between_semicolons_too(query: str, names: list[str]) -> None:
    parts = parts_of(f"http://a.example/?{query}")

    assert parts is not None
    assert [name for name, _ in parts.parameters] == names


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_has_parts_or_none(path: str, query: str) -> None:
    for url in (path, f"http://a.example/{path}", f"http://a.example/{path}?{query}", f"http://{path}/"):
        parts = parts_of(url)
        assert parts is None or (parts.host and parts.segments)
        if parts is not None:
            assert parts.shape.startswith(parts.directory)


@pytest.mark.parametrize("segment", ["8f14e45fceea167a5a36dedd4bea2543", "s-4f2a90cc81d24e07", "x" * 65])
def test_ids_are_opaque(segment: str) -> None:
    assert is_opaque(segment)
    assert shape(segment) == "~"


@pytest.mark.parametrize(
    "segment", ["", "clang-16-doc", "2026-11-23", "libstdc++-12-doc", "AddressSanitizer.html", "v16", "html5"]
)
def test_words_versions_and_dates_are_not_opaque(segment: str) -> None:
    assert not is_opaque(segment)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/Docs/A.html", "/docs/a.html"),
        ("/docs/", "/docs"),
        ("/docs/index.html", "/docs/"),
        ("/docs/a.php", "/docs/a"),
        ("/index.html", "/"),
    ],
)
def test_spellings_of_one_path(one: str, other: str) -> None:
    def plain(path: str) -> tuple[str, ...]:
        return plain_spelling(tuple(path.removeprefix("/").split("/")))[0]

    assert plain(one) == plain(other)
