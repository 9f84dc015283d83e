"""Choices of features by their names: golden fingerprints, what counts and what does not."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import ConfigurationError
from neardup.fingerprint import simhash
from neardup.text import feature_kernels, features
from neardup.text.features import HASH, STOP_ENGLISH, Extracted, Features, hash_feature
from neardup.text.idf import Learner
from neardup.text.visible_text import text_of_html
from neardup.text.words import Parts, bigrams, dictionary_release, words
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    import numpy.typing as npt

ENGLISH = (
    "The quick brown foxes were jumping over the lazy dogs. It's said that a crawler which has seen the foxes"
    " jumping need not follow the links of another page about jumping foxes: the crawler's budget is for"
    " other pages."
)
JAPANESE = (
    "このモジュールは、ページを飲み込むクローラのためのものです。"
    "コーヒーを飲む人々のページは、Python入門のページと違います。"
)

# Committed once; a change of any of these is another scheme and needs another name.
GOLDEN = {
    "word-tf": (0x3A8F7841EF530D58, 0x8F01551DCE1AD65F),
    "word-log-tf": (0x3A8F7B496E130558, 0x9F815D1DCE1BD65F),
    "word-tfidf:{table}": (0x1B8F0B496E13255B, 0x9F815D3DCE1BF65F),
    "shingle-1": (0xF2C57731F8A0C097, 0x5C63E920B1ED9C8A),
    "shingle-2": (0x03F809F5B045205D, 0x1698EDF615929972),
    "shingle-3": (0xA19E11DC3A81F3CA, 0x365A03AFD9D61705),
    "shingle-10": (0x2D86B47E810AA66A, 0x58EBE983651ABDD2),
    "word-tf+stop-english": (0x3B8E095B6E76A558, 0x8F01551DCE1AD65F),
    "word-tf+stem-english": (0x3A8DFE21FD930F0B, 0x8F01551DCE1AD65F),
    "word-tf+stem-porter": (0x3A8DF421CD83071C, 0x8F01551DCE1AD65F),
    "word-tf+icu": (0x3A8F7841EF530D58, 0xDF115D05E7DEC426),
    "word-tfidf:{stems}+stop-english+stem-porter": (0x32883421FF13F70B, 0x9F815D3DCE1BF65F),
    "shingle-3+stop-english+stem-english+icu": (0x9AEF14CE526092E7, 0xE4AA009E3D981548),
}
NAMES = [name for name in GOLDEN if "{" not in name]

SCRIPTS = {
    "Arabic": "العَرَبِيَّة لغة جميلة",
    "Armenian": "Հայերեն լեզու",
    "Chinese": "中文网页",
    "Devanagari": "हिन्दी में",
    "Ethiopic": "አማርኛ ቋንቋ",
    "Georgian": "ქართული ენა",
    "Greek": "Ελληνική γλώσσα",
    "Hebrew": "עִבְרִית שפה",
    "Japanese": "日本語のページ",
    "Khmer": "ភាសាខ្មែរ",
    "Korean": "한국어 문서",
    "Lao": "ພາສາລາວ",
    "Myanmar": "မြန်မာဘာသာ",
    "Tamil": "தமிழ் மொழி",
    "Thai": "ภาษาไทย",
    "Vietnamese": "Tiếng Việt",
}


def learn(file: Path, *texts: str, modifiers: str = "", name: str = "few", min_pages: int = 1) -> str:
    """The name of features by a table of these texts."""
    learner = Learner()
    of_words = Features(f"word-tf{modifiers}")
    for text in texts:
        extracted = of_words.extract(text)
        learner.add(extracted.words, extracted.hashes)
    learner.frequencies(name, modifiers=modifiers, hashed_by=HASH, min_pages=min_pages).save(file)
    return f"word-tfidf:{file}{modifiers}"


def weighted(extracted: Extracted) -> dict[int, float]:
    assert len(set(extracted.hashes.tolist())) == extracted.hashes.size == extracted.weights.size
    return dict(zip(extracted.hashes.tolist(), extracted.weights.tolist(), strict=True))


def by_word(**weights: float) -> dict[int, float]:
    return {hash_feature(word): weight for word, weight in weights.items()}


def value(choice: Features, text: str) -> int:
    extracted = choice.extract(text)
    made = simhash.fingerprint(extracted.hashes, extracted.weights)
    assert made is not None
    return made.value


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_fingerprints(name: str, tmp_path: Path) -> None:
    others = ("the page of a crawler", "the fox", "ページのコーヒー")
    learn(tmp_path / "table.npz", *others)
    learn(tmp_path / "stems.npz", *others, modifiers="+stem-porter")
    choice = Features(name.format(table=tmp_path / "table.npz", stems=tmp_path / "stems.npz"))

    made = value(choice, ENGLISH), value(choice, JAPANESE)

    assert [f"{one:#018x}" for one in made] == [f"{one:#018x}" for one in GOLDEN[name]]


class TestNames:
    @pytest.mark.parametrize("name", NAMES)
    def test_the_canonical_name_stays(self, name: str) -> None:
        made = Features(name).name

        assert made == name.replace("+icu", f"+icu-{dictionary_release()}")
        assert Features(made).name == made

    @pytest.mark.parametrize(
        ("given_", "canonical"),
        [
            ("word-tf+stem-porter+stop-english", "word-tf+stop-english+stem-porter"),
            ("shingle-2+icu+stop-english", "shingle-2+stop-english+icu-{icu}"),
            (
                "word-log-tf+icu+stem-dutch_porter+stop-english",
                "word-log-tf+stop-english+stem-dutch_porter+icu-{icu}",
            ),
        ],
    )
    def test_modifiers_have_one_order(self, given_: str, canonical: str) -> None:
        assert Features(given_).name == canonical.format(icu=dictionary_release())

    def test_another_release_of_icu_is_another_scheme(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(features, "dictionary_release", lambda: "99.1")

        assert Features("word-tf+icu").name == Features("word-tf+icu-99.1").name == "word-tf+icu-99.1"
        with pytest.raises(ConfigurationError, match=r"release of ICU is 99\.1 here; ask for \+icu"):
            Features("word-tf+icu-78.3")

    def test_of_a_table_its_name_and_contents_count_and_not_its_path(self, tmp_path: Path) -> None:
        (tmp_path / "a+b").mkdir()
        names = [
            Features(learn(tmp_path / "a.npz", "a b c")).name,
            Features(learn(tmp_path / "a+b" / "c.npz", "a b c")).name,
            Features(learn(tmp_path / "d.npz", "a b d")).name,
            Features(learn(tmp_path / "e.npz", "a b c", name="other")).name,
        ]

        assert names[0] == names[1]
        assert len({*names}) == 3
        assert names[0].startswith("word-tfidf:few@")
        assert names[3] == names[0].replace("few", "other")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("", "no features ''"),
            ("tf", "no features 'tf', but word-tf, word-log-tf, word-tfidf:FILE and shingle-1 to shingle-10"),
            ("Word-tf", "no features"),
            ("word-tf ", "no features"),
            ("word-tf:file", "no features"),
            ("word-tfidf", "no features"),
            ("word-tfidf:", "no features"),
            ("shingle", "no features"),
            ("shingle-0", "no features"),
            ("shingle-02", "no features"),
            ("shingle-11", "no features"),
            ("shingle-٣", "no features"),
            ("word-tf+", "no features"),
            ("word-tf+foo", "no features"),
            ("word-tf+icu-", "no features"),
            ("word-tf+icu-78-3", "no features"),
            ("+icu", "no features"),
            ("word-tf+stop", "no features"),
            ("word-tf+stop-french", "only list of stop words is stop-english"),
            ("word-tf+stem-", "stem-LANGUAGE can be arabic, "),
            ("word-tf+stem-en", "stem-LANGUAGE can be .*, english, .*, porter, "),
            ("word-tf+icu+icu", r"\+icu stands there twice"),
            ("word-tf+stem-english+stem-german", r"\+stem stands there twice"),
            ("word-tfidf:nowhere.npz", "nowhere.npz: no table of frequencies can be read there"),
            ("word-tfidf:nowhere.npz+stem-x", "stem-LANGUAGE can be"),
        ],
    )
    def test_others_are_refused(self, name: str, message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            Features(name)

    def test_missing_extras_are_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "Stemmer", None)
        monkeypatch.setitem(sys.modules, "icu4py", None)
        monkeypatch.setitem(sys.modules, "icu4py.breakers", None)

        assert Features("word-tf+stop-english").name == "word-tf+stop-english"
        with pytest.raises(ConfigurationError, match=r"pip install 'neardup\[stem\]'"):
            Features("word-tf+stem-english")
        with pytest.raises(ConfigurationError, match=r"pip install 'neardup\[icu\]'"):
            Features("word-tf+icu")

    def test_verified_distances_are_wider(self) -> None:
        for name in NAMES:
            choice = Features(name)

            assert 0 < choice.max_distance < choice.verified_max_distance <= 16


class TestWeights:
    def test_word_tf(self) -> None:
        assert weighted(Features("word-tf").extract("the page, the PAGE: a the")) == by_word(
            the=3, page=2, a=1
        )

    def test_word_log_tf(self) -> None:
        assert weighted(Features("word-log-tf").extract("the page, the PAGE: a the")) == pytest.approx(
            by_word(the=1 + math.log(3), page=1 + math.log(2), a=1)
        )

    def test_word_tfidf(self, tmp_path: Path) -> None:
        name = learn(tmp_path / "t.npz", "the page", "the link", "the the fox")

        assert weighted(Features(name).extract("the the page new")) == pytest.approx(
            by_word(
                the=2 * math.log(1 + (3 - 3 + 0.5) / (3 + 0.5)),
                page=math.log(1 + (3 - 1 + 0.5) / (1 + 0.5)),
                new=math.log(1 + (3 + 0.5) / 0.5),
            )
        )

    def test_shingles_are_a_set(self) -> None:
        extracted = Features("shingle-2").extract("a b a b c")

        assert extracted.weights.tolist() == [1, 1, 1]
        assert set(extracted.hashes.tolist()) == set(
            feature_kernels.shingles(Features().extract("a b a b c").words, 2).tolist()
        )

    @pytest.mark.parametrize("name", NAMES)
    def test_none_is_below_zero_and_each_feature_is_there_once(self, name: str) -> None:
        for text in (ENGLISH, JAPANESE, *SCRIPTS.values()):
            assert all(weight > 0 for weight in weighted(Features(name).extract(text)).values())


class TestModifiers:
    def test_stop_words(self) -> None:
        choice = Features("word-tf+stop-english")

        assert weighted(choice.extract("The page isn't what you'll THINK of pages")) == by_word(
            page=1, isn=1, think=1, pages=1
        )

    def test_the_list_is_of_words_as_pages_have_them(self) -> None:
        assert 100 < len(STOP_ENGLISH) < 180
        assert set(words(" ".join(STOP_ENGLISH))) == STOP_ENGLISH
        assert not STOP_ENGLISH & {"page", "web", "new", "first", "one"}

    @pytest.mark.parametrize("name", ["word-tf", "word-log-tf", "shingle-1", "shingle-3"])
    def test_a_page_of_stop_words_has_words_but_no_features(self, name: str) -> None:
        extracted = Features(f"{name}+stop-english").extract("To be or not to be")

        assert extracted.words.size == 6
        assert extracted.distinct_words == 4
        assert extracted.hashes.size == extracted.weights.size == 0
        assert simhash.fingerprint(extracted.hashes, extracted.weights) is None

    def test_stems(self) -> None:
        assert weighted(
            Features("word-tf+stem-porter").extract("Pages page paging, generously 2nd")
        ) == by_word(page=3, gener=1, **{"2nd": 1})
        assert weighted(Features("word-tf+stem-english").extract("generously")) == by_word(generous=1)
        assert weighted(Features("word-tf+stem-german").extract("Häuser Haus Straße Straßen")) == by_word(
            haus=2, strass=2
        )

    def test_stems_and_stop_words_are_those_of_plain_words(self) -> None:
        # "doing" is a stop word; "does" would be "doe" as a stem, and "hi" the stem of "his".
        choice = Features("word-tf+stop-english+stem-porter")

        assert weighted(choice.extract("doing does his running")) == by_word(run=1)

    def test_stems_of_shingles(self) -> None:
        choice = Features("shingle-2+stop-english+stem-porter")

        assert weighted(choice.extract("the foxes were jumping")) == weighted(
            Features("shingle-2").extract("fox jump")
        )

    def test_very_long_words_have_no_stem(self) -> None:
        # The Serbian stemmer takes 30 s for this one.
        word = "ност" * 200_000

        assert weighted(Features("word-tf+stem-serbian").extract(word)) == {hash_feature(word): 1.0}

    def test_dictionary_words(self) -> None:
        extracted = Features("word-tf+icu").extract("コーヒーを飲む page")

        assert weighted(extracted) == by_word(コーヒー=1, を=1, 飲む=1, page=1)
        assert extracted.distinct_words == extracted.words.size == 4

    @pytest.mark.parametrize("modifiers", ["", "+stop-english", "+stem-english", "+stop-english+stem-porter"])
    def test_words_stay_plain(self, modifiers: str) -> None:
        extracted = Features(f"word-tf{modifiers}").extract(ENGLISH)

        assert extracted.words.tolist() == [hash_feature(word) for word in words(ENGLISH)]
        assert extracted.distinct_words == len(set(words(ENGLISH)))

    def test_words_are_those_of_the_dictionary_if_it_is_asked(self) -> None:
        plain, by_dictionary = (
            Features(f"shingle-2{modifier}").extract(JAPANESE) for modifier in ("", "+icu")
        )

        assert plain.words.tolist() != by_dictionary.words.tolist()
        assert plain.words.tolist() == [hash_feature(word) for word in words(JAPANESE, bigrams)]


KERNELS = [feature_kernels, python_twin(feature_kernels)]
MASK = (1 << 64) - 1


NUMBERS = np.arange(1 << 19, dtype=np.uint64)


def unmixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """What the finaliser of MurmurHash3 makes these values of."""
    half = np.uint64(33)
    for factor in (0xC4CEB9FE1A85EC53, 0xFF51AFD7ED558CCD):
        values = (values ^ values >> half) * np.uint64(pow(factor, -1, 1 << 64))
    return values ^ values >> half


class TestCounting:
    @pytest.mark.parametrize("kernels", KERNELS, ids=["native", "python"])
    @given(st.lists(st.integers(0, 5) | st.integers(0, MASK), max_size=40), st.integers(0, MASK))
    def test_order_of_first_appearance_whatever_the_salt(
        self, kernels: ModuleType, hashes: list[int], salt: int
    ) -> None:
        distinct, counts = kernels.count(np.array(hashes, dtype=np.uint64), np.uint64(salt))

        assert list(zip(distinct.tolist(), counts.tolist(), strict=True)) == list(Counter(hashes).items())

    @pytest.mark.parametrize("kernels", KERNELS, ids=["native", "python"])
    @pytest.mark.parametrize(
        "hashes",
        [*(NUMBERS << np.uint64(shift) for shift in (0, 16, 32, 45)), unmixed(NUMBERS << np.uint64(32))],
        ids=["0", "16", "32", "45", "for the salt 0"],
    )
    def test_chosen_hashes_are_counted_in_a_moment(
        self, kernels: ModuleType, hashes: npt.NDArray[np.uint64]
    ) -> None:
        # Slots that were the low bits of the hash would take an hour.
        distinct, _ = kernels.count(hashes, features._SALT)

        assert (distinct == hashes).all()

    def test_the_salt_is_of_the_process(self) -> None:
        code = "from neardup.text import features; print(features._SALT)"
        salts = {
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
            for _ in range(2)
        }

        assert len(salts) == 2


class TestTables:
    def test_stems_need_a_table_of_stems(self, tmp_path: Path) -> None:
        plain = learn(tmp_path / "plain.npz", ENGLISH)
        stems = learn(tmp_path / "stems.npz", ENGLISH, modifiers="+stem-porter")
        without = learn(tmp_path / "without.npz", ENGLISH, modifiers="+stop-english+stem-porter")

        assert Features(f"{plain}+stop-english").name.endswith("+stop-english")
        assert Features(f"{stems}+stop-english").name.endswith("+stop-english+stem-porter")
        assert Features(without).name.endswith("+stop-english+stem-porter")
        for name, message in (
            (f"{plain}+stem-porter", "learned with plain words; .* learn one with --modifiers 'stem-porter'"),
            (f"{plain}+icu", "learned with plain words"),
            (stems.partition("+")[0], r"learned with \+stem-porter; take word-tfidf:FILE\+stem-porter"),
            (f"{stems.partition('+')[0]}+stem-english", r"learned with \+stem-porter"),
            (without.replace("+stop-english", ""), r"learned with \+stop-english\+stem-porter"),
        ):
            with pytest.raises(ConfigurationError, match=message):
                Features(name)

    def test_another_hash_is_refused(self, tmp_path: Path) -> None:
        learner = Learner()
        learner.add(np.arange(3, dtype=np.uint64), np.arange(3, dtype=np.uint64))
        learner.frequencies("t", modifiers="", hashed_by="md5", min_pages=1).save(tmp_path / "t.npz")

        with pytest.raises(ConfigurationError, match="hashed by md5, not mmh3-x64-128-seed0"):
            Features(f"word-tfidf:{tmp_path / 't.npz'}")


class TestProperties:
    @pytest.mark.parametrize("name", NAMES)
    def test_letter_case_spaces_and_normal_form_do_not_matter(self, name: str) -> None:
        choice = Features(name)
        for text in (ENGLISH, "Élan naïve Straße Σίσυφος é ὕβρις", JAPANESE, SCRIPTS["Vietnamese"]):
            expected = weighted(choice.extract(text))
            for form in ("NFC", "NFD"):
                assert weighted(choice.extract(unicodedata.normalize(form, text))) == expected
            for other in (text.upper(), text.lower(), text.replace(" ", "\n\t \u00a0"), f" {text}\n"):
                assert weighted(choice.extract(other)) == expected

    @pytest.mark.parametrize("name", NAMES)
    def test_entities_are_what_they_stand_for(self, name: str) -> None:
        choice = Features(name)
        plain = text_of_html("<p>K&äse für 5 € 日本</p>")

        escaped = text_of_html("<p>K&amp;&auml;se&nbsp;f&#252;r 5&#x20;&euro; &#26085;&#x672c;</p>")

        assert weighted(choice.extract(escaped)) == weighted(choice.extract(plain)) != {}

    @pytest.mark.parametrize(
        "name", ["word-tf", "word-log-tf", "word-tf+stop-english+stem-english", "shingle-1"]
    )
    @given(order=st.permutations(words(ENGLISH)))
    def test_the_order_of_words_does_not_matter(self, name: str, order: list[str]) -> None:
        choice = Features(name)

        assert weighted(choice.extract(" ".join(order))) == weighted(choice.extract(ENGLISH))
        assert value(choice, " ".join(order)) == value(choice, ENGLISH)

    @pytest.mark.parametrize("name", ["shingle-2", "shingle-3", "shingle-10"])
    def test_the_order_of_words_matters_to_shingles(self, name: str) -> None:
        order = words(ENGLISH)
        random.Random(1).shuffle(order)
        choice = Features(name)

        assert value(choice, " ".join(order)) != value(choice, ENGLISH)
        assert value(choice, "a b c") != value(choice, "c b a")

    def test_repetition(self) -> None:
        many = "the " * 50 + "page"

        assert weighted(Features("word-tf").extract(many)) == by_word(the=50, page=1)
        assert weighted(Features("word-log-tf").extract(many)) == pytest.approx(
            by_word(the=1 + math.log(50), page=1)
        )
        assert weighted(Features("shingle-3").extract(many)) == weighted(
            Features("shingle-3").extract("the the the page")
        )

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("script", SCRIPTS)
    def test_every_script_has_features(self, name: str, script: str) -> None:
        choice = Features(name)
        extracted = choice.extract(SCRIPTS[script])

        assert extracted.hashes.size > 0
        assert extracted.distinct_words > 0
        assert value(choice, SCRIPTS[script]) != value(choice, "another text")

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("text", ["", " \n", "… — !?", "👩🏽 🎉☃", "\ud800", "\u200f\u202e"])
    def test_no_words_no_features(self, name: str, text: str) -> None:
        extracted = Features(name).extract(text)

        assert (
            extracted.words.size
            == extracted.hashes.size
            == extracted.weights.size
            == extracted.distinct_words
            == 0
        )
        assert extracted.words.dtype == extracted.hashes.dtype == np.uint64
        assert extracted.weights.dtype == np.float64

    @pytest.mark.parametrize("name", NAMES)
    def test_emoji_and_direction_marks_stand_between_words(self, name: str) -> None:
        choice = Features(name)

        assert weighted(choice.extract("crawl🎉pages 🎉🎉")) == weighted(choice.extract("crawl pages"))
        assert weighted(choice.extract("\u202bשלום\u202c עולם\u200f")) == weighted(
            choice.extract("שלום עולם")
        )

    @given(st.lists(st.sampled_from([*words(ENGLISH), *words(JAPANESE), "İ", "ﬁ", "\u0301"])).map(" ".join))
    def test_counts_are_those_of_the_words(self, text: str) -> None:
        extracted = Features().extract(text)
        found = words(text)

        assert weighted(extracted) == {hash_feature(word): found.count(word) for word in found}
        assert extracted.words.tolist() == [hash_feature(word) for word in found]
        assert extracted.distinct_words == len(set(found))


class TestCache:
    @pytest.mark.parametrize("name", NAMES)
    def test_an_overflow_changes_nothing(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = [weighted(Features(name).extract(text)) for text in (ENGLISH, JAPANESE)]
        monkeypatch.setattr(features, "MOST_REMEMBERED", 3)
        monkeypatch.setattr("neardup.text.words.MOST_REMEMBERED", 3)
        choice = Features(name)

        for _ in range(2):
            assert [weighted(choice.extract(text)) for text in (ENGLISH, JAPANESE)] == expected
        assert len(choice._parts) <= 3
        assert len(choice._stems or ()) <= 3

    def test_each_word_is_stemmed_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[str] = []

        def noted(word: str) -> int:
            asked.append(word)
            return hash_feature(word)

        monkeypatch.setattr(features, "hash_feature", noted)
        choice = Features("word-tf+stem-porter")
        choice.extract("pâges pâge pâges")
        choice.extract("pâge pâges pâge")

        assert asked == ["pâge", "pâge"]  # the stem of each of the two words

    def test_long_words_are_not_kept(self) -> None:
        choice = Features("word-tf+stem-porter")
        choice.extract("a" * 65 + " " + "b" * 64)

        assert list(choice._stems or ()) == ["b" * 64]

    def test_long_runs_are_not_kept(self) -> None:
        parts = Parts()
        short = "İ" * 64
        for run in (short, short + "x"):
            assert parts[run.encode()].decode() == words(run)[0]

        assert list(parts) == [short.encode()]
