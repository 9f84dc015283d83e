"""Makes ``neardup/text/date_words.txt`` of the Unicode CLDR: ``python -m tests.support.date_words``."""

from __future__ import annotations

from importlib.metadata import version

from babel import Locale

from neardup.text.headline import DATE_WORDS
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


def main() -> None:
    head = "# Names of months and days of the week, from the Unicode CLDR (Unicode License V3)"
    lines = [f"{head}, by Babel {version('babel')}.", *date_words()]
    DATE_WORDS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
