"""Words and bigrams of every script, and the two paths to them."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Literal

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import ConfigurationError
from neardup.text import words as module
from neardup.text.characters import UNSPACED
from neardup.text.features import hash_feature
from neardup.text.visible_text import text_of_bytes
from neardup.text.words import SIGNS, dictionary_words, parts, words
from tests.support.real_pages import page_id, real_pages
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from collections.abc import Callable

    Words = Callable[[str], list[str]]

GOLDEN = {
    "en": (
        "The page, THE page_2: it's 3.5",
        {"the": 2, "page": 1, "page_2": 1, "it": 1, "s": 1, "3": 1, "5": 1},
    ),
    "de": ("Straße STRASSE Käse", {"strasse": 2, "käse": 1}),
    "el": ("Σίσυφος ΣΊΣΥΦΟΣ", {"σίσυφοσ": 2}),
    "ru": ("Слово, слово ещё", {"слово": 2, "ещё": 1}),
    "zh": ("中文网页。网页", {"中文": 1, "文网": 1, "网页": 2}),
    "zh, one character": ("我 我、中文", {"我": 2, "中文": 1}),
    "ja": ("コーヒーを飲む", {"コー": 1, "ーヒ": 1, "ヒー": 1, "ーを": 1, "を飲": 1, "飲む": 1}),
    "ja, iteration marks": ("人々 いすゞ 〆切", {"人々": 1, "いす": 1, "すゞ": 1, "〆切": 1}),
    "ja, half width": ("ｺｰﾋ", {"ｺｰ": 1, "ｰﾋ": 1}),
    "ja, mixed": ("Python入門 v2版a", {"python": 1, "入門": 1, "v2": 1, "版": 1, "a": 1}),
    "th": ("ภาษาไทย", {"ภา": 1, "าษ": 1, "ษา": 1, "าไ": 1, "ไท": 1, "ทย": 1}),
    "th, marks": ("น้ำ", {"น้": 1, "้ำ": 1}),
    "km": ("ខ្មែរ", {"ខ្": 1, "្ម": 1, "មែ": 1, "ែរ": 1}),
    "lo": ("ພາສາລາວ", {"ພາ": 1, "າສ": 1, "ສາ": 1, "າລ": 1, "ລາ": 1, "າວ": 1}),
    "my": ("မြန်မာ", {"မြ": 1, "ြန": 1, "န်": 1, "်မ": 1, "မာ": 1}),
    "ko": ("한국어 문서는 한국어", {"한국어": 2, "문서는": 1}),
    "ar": ("العَرَبِيَّة لغة", {"العَرَبِيَّة": 1, "لغة": 1}),
    "hi": ("हिन्दी में हिन्दी", {"हिन्दी": 2, "में": 1}),
    "two scripts without spaces": ("日本ไทย", {"日本": 1, "ไท": 1, "ทย": 1}),
    "no words": ("… — !? ☃", {}),
    "empty": ("", {}),
}

TEXTS = st.text(
    st.sampled_from(
        "aB1_ .-\n\x1c\x85\xa0éÉßİıΣςǅﬁ日本ーを々ゞ"
        "ไท้ำខ្មລາမြ한국العَहि\u0301\u0303\u0316\u0f73\u3099\u1100\u1161\ud800"
    )
    | st.characters()
)


BOTH = [words, python_twin(module).words]
"""The native function and its twin; twice the latter where no native core is built."""


def word_counts(text: str) -> Counter[str]:
    return Counter(words(text))


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    text, counts = GOLDEN[name]

    assert word_counts(text) == counts


@pytest.mark.parametrize("name", GOLDEN)
def test_composed_and_decomposed_text_and_either_case_have_the_same_features(name: str) -> None:
    text = GOLDEN[name][0]
    counts = word_counts(text)

    assert word_counts(unicodedata.normalize("NFD", text)) == counts
    assert word_counts(text.upper()) == counts
    assert word_counts(text.lower()) == counts


@given(TEXTS)
def test_normal_forms(text: str) -> None:
    counts = word_counts(text)

    assert word_counts(unicodedata.normalize("NFD", text)) == counts
    assert word_counts(unicodedata.normalize("NFC", text)) == counts
    assert word_counts(text.casefold()) == counts
    assert all(unicodedata.is_normalized("NFC", word) for word in counts)


@given(TEXTS)
def test_every_word_character_is_in_some_feature_and_each_can_be_hashed(text: str) -> None:
    counts = word_counts(text)
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())

    assert set("".join(counts)) == set(regex.findall(r"\w", folded))
    assert all(0 <= hash_feature(word) < 1 << 64 for word in counts)
    assert word_counts(text + "\n" + text) == {word: 2 * count for word, count in counts.items()}


@pytest.mark.parametrize("words", BOTH, ids=["native", "python"])
@given(text=st.lists(st.text(st.characters(max_codepoint=127)) | TEXTS).map("".join))
def test_word_by_word_gives_the_features_of_the_whole_text(words: Words, text: str) -> None:
    assert words(text) == parts(text)


def test_signs_are_no_part_of_any_word() -> None:
    assert regex.findall(r"\w", SIGNS) == []


@pytest.mark.parametrize("words", BOTH, ids=["native", "python"])
def test_real_pages_word_by_word(words: Words) -> None:
    for path in real_pages():
        text = text_of_bytes(path.read_bytes())

        assert words(text) == parts(text), page_id(path)


@pytest.mark.parametrize("words", BOTH, ids=["native", "python"])
@pytest.mark.parametrize(
    "text", ["a=\u0338b " * 9, "x " * 20 + "a\u2260b", "x " * 20 + "\udc80y", "x y z \u00a0w\u3000v"]
)
def test_borders_of_ascii_words(words: Words, text: str) -> None:
    assert words(text) == parts(text)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_long_runs_of_marks_are_put_in_order_as_unicode_does(form: Literal["NFC", "NFD"]) -> None:
    # Long enough to be sorted beforehand, short enough for the standard library to do it as well.
    text = "a" + "\u0301\u0316\u0f73\u0327\u0344" * 40 + "é" + "\u0300\u0316" * 40
    expected = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())

    assert word_counts(unicodedata.normalize(form, text)) == word_counts(text) == {expected: 1}


def test_unspaced_characters_are_those_of_the_script_extensions() -> None:
    scripts = (
        r"[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Khmer}\p{scx=Lao}\p{scx=Myanmar}]"
    )
    shared = r"\p{Script=Inherited}\u02BC"
    everything = "".join(map(chr, range(0x110000)))

    assert regex.findall(UNSPACED, everything, regex.V1) == regex.findall(
        rf"(?![{shared}])(?=\w){scripts}", everything
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "distinct"),
    [
        ("a" * 50_000_000, 1),
        ("a " * 5_000_000, 1),
        ("é" * 10_000_000, 1),
        ("日" * 5_000_000, 1),
        ("日a" * 1_000_000, 2),
        ("日 " * 1_000_000, 1),
        ("日\u0300" * 1_000_000, 2),
        ("\u0316\u0300" * 200_000, 1),
        ("a" + "\u0f73" * 200_000, 1),
        ("ไ" * 1_000_000 + "日" * 1_000_000, 2),
    ],
    ids=["ascii", "words", "latin", "han", "mixed", "singles", "marks", "unsorted", "decomposing", "border"],
)
def test_large_texts(text: str, distinct: int) -> None:
    assert len(word_counts(text)) == distinct


def test_counts_are_exact_on_a_large_text() -> None:
    some = ["alpha", "Beta", "gamma", "日本", "über"]

    assert words(" ".join(some * 100_000)) == [word.lower() for word in some] * 100_000


class TestDictionaryWords:
    """Asked of ICU 78; the words are in every dictionary."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("コーヒーを飲む", ["コーヒー", "を", "飲む"]),
            ("中文网页。网页", ["中文", "网页", "网页"]),
            ("𠮷野家に行く", ["𠮷", "野家", "に", "行く"]),
            ("ภาษาไทย", ["ภาษา", "ไทย"]),
            ("មនុស្ស", ["មនុស្ស"]),
            ("ພາສາລາວ", ["ພາສາ", "ລາວ"]),
            ("ကျွန်တော်မြန်မာစာ", ["ကျွန်တော်", "မြန်မာ", "စာ"]),
            ("Python入門 The 2版", ["python", "入門", "the", "2", "版"]),
            ("日本ไทย", ["日本", "ไทย"]),
        ],
    )
    def test_runs_become_words(self, text: str, expected: list[str]) -> None:
        assert words(text, dictionary_words()) == expected

    @pytest.mark.parametrize("name", ["en", "de", "el", "ru", "ko", "ar", "hi", "no words", "empty"])
    def test_scripts_with_spaces_stay_as_they_are(self, name: str) -> None:
        text = GOLDEN[name][0]

        assert words(text, dictionary_words()) == words(text)

    @given(TEXTS)
    def test_no_character_is_lost(self, text: str) -> None:
        split = dictionary_words()

        assert "".join(words(text, split)) == "".join(words(text, lambda run: [run]))
        assert words(text, split) == parts(text, split)

    @pytest.mark.parametrize("character", "日ไアက")
    def test_large_run(self, character: str) -> None:
        assert "".join(words(character * 200_000, dictionary_words())) == character * 200_000

    def test_missing_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "icu4py.breakers", None)

        with pytest.raises(ConfigurationError, match=r"pip install 'neardup\[icu\]'"):
            dictionary_words()
