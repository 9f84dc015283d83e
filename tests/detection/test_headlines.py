"""Whether two headlines say that their pages are one, on a site that is known and on one that is not."""

from __future__ import annotations

import numpy as np
import pytest

from neardup.detection.document_frequencies import RARE_PAGES, DocumentFrequencies
from neardup.detection.headlines import Likeness, are_named_apart, are_renumbered, compare_many
from neardup.text.headline import none, of_texts

HOST, OTHER = "a.example", "b.example"
SITE = "Clang 15 documentation"
"""What follows the name of each page in its title."""

NOTHING = np.empty(0, dtype=np.uint64)


def known(host: str = HOST, site: str = SITE, pages: int = 50) -> DocumentFrequencies:
    """A site whose pages have the name of the site in their titles, one heading, and "Search" for a title of
    some.
    """
    frequencies = DocumentFrequencies()
    for number in range(pages):
        title = "Search" if number % 5 == 0 else f"topic{number} {site}"
        frequencies.count(host, NOTHING, of_texts(title, "Contents"))
    return frequencies


def likeness(
    own: tuple[str, str],
    other: tuple[str, str],
    frequencies: DocumentFrequencies,
    hosts: tuple[str, str] = (HOST, HOST),
) -> Likeness:
    one, two = of_texts(*own), of_texts(*other)
    (found,) = compare_many(one, hosts[0], two[np.newaxis], hosts[1:], frequencies)
    (mirrored,) = compare_many(two, hosts[1], one[np.newaxis], hosts[:1], frequencies)
    assert found is mirrored
    return found


SAME, DIFFERENT, UNKNOWN = Likeness.SAME, Likeness.DIFFERENT, Likeness.UNKNOWN
REWORDED = Likeness.REWORDED


@pytest.mark.parametrize(
    ("own", "other", "wanted"),
    [
        (("Alpha", ""), ("Alpha", ""), SAME),
        (("Alpha", ""), ("Beta", ""), DIFFERENT),
        (("Alpha Beta", ""), ("beta ALPHA", ""), SAME),
        (("Alpha", ""), ("Alpha Beta", ""), DIFFERENT),
        # A number may be that of a version, or of a product.
        (("Alpha 1", ""), ("Alpha 2", ""), UNKNOWN),
        (("Alpha 1", ""), ("Alpha", ""), UNKNOWN),
        (("Alpha 1", ""), ("Beta 1", ""), DIFFERENT),
        (("Alpha 1", ""), ("Beta 2", ""), DIFFERENT),
        (("1", ""), ("2", ""), UNKNOWN),
        (("5 May 2026", ""), ("17 June 2027", ""), UNKNOWN),
        (("Dienstag, 5. Mai", ""), ("Mittwoch, 17. Juni", ""), UNKNOWN),
        (("May", ""), ("Alpha", ""), DIFFERENT),
        # Symbols that belong to names tell names apart; punctuation does not.
        (("Learn C", ""), ("Learn C++", ""), DIFFERENT),
        (("Learn C#", ""), ("Learn C++", ""), DIFFERENT),
        (("operator==", ""), ("operator->", ""), DIFFERENT),
        (("C++ – Alpha", ""), ("Alpha | C++", ""), SAME),
        (("Alpha-beta!", ""), ("Alpha: beta", ""), SAME),
        (("1", ""), ("1", ""), SAME),
        # Without a title the headings are compared.
        (("", "Alpha"), ("", "Alpha"), SAME),
        (("", "Alpha"), ("", "Beta"), DIFFERENT),
        (("Alpha", "Alpha"), ("", "Beta"), DIFFERENT),
        (("Alpha", ""), ("", "Alpha"), UNKNOWN),
        (("", ""), ("", ""), UNKNOWN),
        (("", ""), ("Alpha", "Beta"), UNKNOWN),
        (("\ud800", ""), ("\ud800", ""), UNKNOWN),
        # Titles that say what the pages are about say so, but other headings leave a doubt.
        (("Alpha", "One"), ("Alpha", "Two"), REWORDED),
        (("Alpha", "One"), ("Alpha", ""), SAME),
        (("Alpha", "One"), ("Alpha", "One, printed"), REWORDED),
    ],
)
def test_on_a_site_that_is_not_known(own: tuple[str, str], other: tuple[str, str], wanted: Likeness) -> None:
    assert likeness(own, other, DocumentFrequencies()) is wanted


@pytest.mark.parametrize(
    ("own", "other", "wanted"),
    [
        ((f"Alpha {SITE}", ""), (f"Alpha {SITE}", ""), SAME),
        ((f"Alpha {SITE}", ""), (f"Beta {SITE}", ""), DIFFERENT),
        # The name of the site says nothing: with or without it, it is the same page.
        ((f"Alpha {SITE}", ""), ("Alpha", ""), REWORDED),
        ((f"Alpha {SITE}", ""), ("Alpha Clang 16 documentation", ""), UNKNOWN),
        # A title that many canonical pages have says nothing; the headings may.
        (("Search", ""), ("Search", ""), UNKNOWN),
        (("Search", "Alpha"), ("Search", "Alpha"), SAME),
        (("Search", "Alpha"), ("Search", "Beta"), DIFFERENT),
        (("Search", "Contents"), ("Search", "Contents"), UNKNOWN),
        (("Search", "Alpha 1"), ("Search", "Alpha 2"), UNKNOWN),
        (("", "Contents"), ("", "Contents"), UNKNOWN),
        (("Search Alpha", ""), ("Search", ""), DIFFERENT),
    ],
)
def test_on_a_site_that_is_known(own: tuple[str, str], other: tuple[str, str], wanted: Likeness) -> None:
    assert likeness(own, other, known()) is wanted


def test_a_word_is_rare_up_to_the_limit() -> None:
    frequencies = DocumentFrequencies()
    for _ in range(RARE_PAGES):
        frequencies.count(HOST, NOTHING, of_texts("Manual"))
    assert likeness(("Alpha Manual", ""), ("Alpha", ""), frequencies) is DIFFERENT

    frequencies.count(HOST, NOTHING, of_texts("Manual"))
    assert likeness(("Alpha Manual", ""), ("Alpha", ""), frequencies) is REWORDED


def test_each_headline_is_read_by_what_is_rare_on_its_own_host() -> None:
    frequencies = known()

    hosts = (HOST, OTHER)
    assert likeness((f"Alpha {SITE}", ""), ("Alpha", ""), frequencies, hosts) is REWORDED
    # On a host that nobody knows the name of the site is no template.
    assert likeness(("Alpha", ""), (f"Alpha {SITE}", ""), frequencies, hosts) is DIFFERENT


def test_many_are_compared_as_each_by_itself() -> None:
    frequencies = known()
    own = of_texts(f"Alpha {SITE}", "Contents")
    others = [(f"Alpha {SITE}", ""), ("Alpha", "x"), ("Beta", ""), ("Search", "Contents"), ("", "")] * 3
    hosts = [HOST, OTHER, HOST] * 5
    headlines = np.stack([of_texts(*other) for other in others])

    found = compare_many(own, HOST, headlines, hosts, frequencies)

    assert found == [
        compare_many(own, HOST, one[np.newaxis], [host], frequencies)[0]
        for one, host in zip(headlines, hosts, strict=True)
    ]
    assert set(found) == {SAME, REWORDED, DIFFERENT, UNKNOWN}
    assert compare_many(none(), HOST, headlines[:0], [], frequencies) == []


@pytest.mark.parametrize(
    ("own", "other", "wanted"),
    [
        ("Shirt Alpha red", "Shirt Alpha red", SAME),
        ("Shirt Alpha red", "Shirt Alpha black", REWORDED),
        ("Shirt Alpha red", "Shirt Alpha red sale", REWORDED),
        ("Shirt Alpha", "Shirt Alpha red", REWORDED),
        ("Shirt Alpha red 12", "Shirt Alpha red 13", REWORDED),
        ("Shirt Alpha red", "Shirt Beta red", DIFFERENT),
    ],
)
def test_words_that_are_common_on_a_site_leave_a_doubt(own: str, other: str, wanted: Likeness) -> None:
    frequencies = DocumentFrequencies()
    for number in range(100):
        title = f"Shirt design{number} {('red', 'black', 'sale')[number % 3]} {12 + number % 2}"
        frequencies.count(HOST, NOTHING, of_texts(title))

    assert likeness((own, ""), (other, ""), frequencies) is wanted


@pytest.mark.parametrize(
    ("own", "other", "wanted"),
    [
        # (URL, title, heading) of two pages
        (("3_35_3.html", "Release 3.35.3", ""), ("3_35_4.html", "Release 3.35.4", ""), True),
        (("notes/1.9.html", "Notes of 1.9", ""), ("notes/1.9.2.html", "Notes of 1.9.2", ""), True),
        (("news-event.html", "News-event", ""), ("news-interface", "News-interface", ""), True),
        (("chair-7?sid=1", "", "Chair 7"), ("chair-8?sid=2", "", "Chair 8"), True),
        (("Caf%C3%A9_1", "Café 1", ""), ("Caf%C3%A9_2", "Café 2", ""), True),
        (("%C3%89toile", "étoile", ""), ("rose", "rose", ""), True),
        # Versions in folders, hosts and parameters have the names of files in common.
        (("13/a.html", "A 13", ""), ("14/a.html", "A 14", ""), False),
        (("13/", "Manual 13", ""), ("14/", "Manual 14", ""), False),
        (("a?version=13", "A 13", ""), ("a?version=14", "A 14", ""), False),
        # Other names with one headline, and names of which the headlines say nothing.
        (("chair.html", "Chair", ""), ("print.html", "Chair", ""), False),
        (("12345.html", "Chair 1", ""), ("12346.html", "Chair 2", ""), False),
        # A headline that one of them has not got tells nothing.
        (("7.html", "7", ""), ("8.html", "", "8"), False),
        (("7.html", "", ""), ("8.html", "", ""), False),
        # Names that are no names.
        (("", "7", ""), ("", "8", ""), False),
        (("%FF%00", "7", ""), ("\ud800", "8", ""), False),
    ],
)
def test_names_of_files_tell_headlines_apart(
    own: tuple[str, str, str], other: tuple[str, str, str], wanted: bool
) -> None:
    one, two = ((of_texts(*texts), f"http://{HOST}/{path}") for path, *texts in (own, other))
    assert are_named_apart(*one, *two) is wanted
    assert are_named_apart(*two, *one) is wanted


def test_no_more_of_a_name_is_read_than_of_a_headline() -> None:
    one, two = ((of_texts(title), f"http://{HOST}/{'a-' * 500_000}{title}") for title in ("7", "8"))
    assert not are_named_apart(*one, *two)


@pytest.mark.parametrize(
    ("own", "other", "wanted"),
    [
        # (URL, title, heading) of two pages
        (("13/f.html", "9.24. Arrays", "9.24. Arrays"), ("15/f.html", "9.25. Arrays", "9.25. Arrays"), True),
        (("13/f.html", "Chapter 9. Arrays", ""), ("15/f.html", "Chapter 10. Arrays", "10. Arrays"), True),
        (("old/Arrays", "Arrays", "9. Arrays"), ("new/Arrays", "Arrays", "10. Arrays"), True),
        # Nothing differs, or something else does: a word, a month, a year, the number of an article.
        (("13/f.html", "9.24. Arrays", ""), ("15/f.html", "9.24. Arrays", ""), False),
        (("13/f.html", "9.24. Arrays", ""), ("15/f.html", "9.25. Array", ""), False),
        (("a/f.html", "Arrays of 5 May", ""), ("b/f.html", "Arrays of 6 June", ""), False),
        (("a/f.html", "Arrays of 2024", ""), ("b/f.html", "Arrays of 2025", ""), False),
        (("a/f.html", "Article 12345", ""), ("b/f.html", "Article 12346", ""), False),
        # There is no word that both have in common.
        (("a/f.html", "9.24.", ""), ("b/f.html", "9.25.", ""), False),
        (("a/f.html", "9.24. Arrays", ""), ("b/f.html", "", "9.25. Arrays"), False),
        (("a/f.html", "", ""), ("b/f.html", "", ""), False),
        # The number tells the page from others: it is in its URL.
        (("camera-7/f.html", "Camera 7", ""), ("camera-8/f.html", "Camera 8", ""), False),
        (("camera-7/f.html", "Camera 7", ""), ("camera/f.html", "Camera 8", ""), False),
        (("camera_%37/f.html", "Camera 7", ""), ("camera/f.html", "Camera 8", ""), False),
        # Other names, names that are none, and names that a query tells apart.
        (("13/f.html", "9.24. Arrays", ""), ("15/g.html", "9.25. Arrays", ""), False),
        (("13/index.html", "9.24. Arrays", ""), ("15/index.html", "9.25. Arrays", ""), False),
        (("13/Default.aspx", "9.24. Arrays", ""), ("15/Default.aspx", "9.25. Arrays", ""), False),
        (("13/", "9.24. Arrays", ""), ("15/", "9.25. Arrays", ""), False),
        (("show.php?a", "9.24. Arrays", ""), ("show.php?b", "9.25. Arrays", ""), False),
        (("13/f.html", "9.24. Arrays", ""), ("15/f.html?b", "9.25. Arrays", ""), False),
    ],
)
def test_chapters_that_got_other_numbers(
    own: tuple[str, str, str], other: tuple[str, str, str], wanted: bool
) -> None:
    one, two = ((of_texts(*texts), f"http://{HOST}/{path}") for path, *texts in (own, other))
    assert are_renumbered(*one, *two) is wanted
    assert are_renumbered(*two, *one) is wanted
    assert not (wanted and are_named_apart(*one, *two))


def test_a_url_that_is_none_has_no_name() -> None:
    one, two = ((of_texts(f"9.{number}. Arrays"), "http://[a/9.24.html") for number in (24, 25))
    assert not are_named_apart(*one, *two)
    assert not are_renumbered(*one, *two)
