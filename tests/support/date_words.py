"""Makes ``date_words.txt`` and ``short_months.txt`` of ``neardup/text`` of the Unicode CLDR: ``python -m
tests.support.date_words``.
"""

from __future__ import annotations

from importlib.metadata import version

from babel import Locale

from neardup.text.headline import DATE_WORDS, SHORT_MONTHS
from neardup.text.words import words

LANGUAGES = (
    "ar bg bn ca cs da de el en es et fa fi fr gl gu he hi hr hu id it ja ka kk kn ko lt lv mk ml mr ms nb nl"
    " pl pt ro ru sk sl sq sr sr_Latn sv sw ta te tr uk ur uz vi zh zh_Hant"
)
"""Those of most web pages."""

_SHORTEST = 3
"""Letters of a word, unless the name is one word: what Thai or Khmer names are cut into says nothing."""


def date_words() -> list[str]:
    """Names of months and days, in full, as words are told apart; sorted."""
    found: set[str] = set()
    for language in LANGUAGES.split():
        locale = Locale.parse(language)
        for names in (locale.months, locale.days):
            for context in ("format", "stand-alone"):
                for name in names[context]["wide"].values():
                    # "de gener", "maanantaina": the longest word is the name.
                    word = max(words(str(name)), key=len)
                    if len(word) >= _SHORTEST or len(words(str(name))) == 1:
                        found.add(word)
    return sorted(word for word in found if not word.isdigit())


def short_months() -> list[str]:
    """Short names of months, as words are told apart, without those of :func:`date_words`; sorted."""
    found = {
        max(words(str(name)), key=len)
        for language in LANGUAGES.split()
        for context in ("format", "stand-alone")
        for name in Locale.parse(language).months[context]["abbreviated"].values()
    }
    return sorted(word for word in found.difference(date_words()) if len(word) >= _SHORTEST)


def main() -> None:
    for file, what, found in (
        (DATE_WORDS, "Names of months and days of the week", date_words()),
        (SHORT_MONTHS, "Short names of months", short_months()),
    ):
        head = f"# {what}, from the Unicode CLDR (Unicode License V3), by Babel {version('babel')}."
        file.write_text("\n".join([head, *found]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
