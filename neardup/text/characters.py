"""What a character beyond ASCII is to the words of a text: kinds of characters, and scripts without spaces.

The native core asks for a block of characters when it meets the first of them, and remembers the answer. So
its words are those of the version of Unicode that Python and ``regex`` have.
"""

from __future__ import annotations

import unicodedata
from array import array

import regex

BLOCK = 256
"""Characters that the native core asks for at once."""

SCRIPT = 7
"""Number of a script without spaces, 1 to 5; 0 for all other characters."""
WORD = 8
"""Part of a word."""
MARK = 16
"""Combining; goes on with a run of a script without spaces."""
SUSPECT = 32
"""May join with the character before it, or be changed by NFC. A text without such characters is in NFC."""
FOLDED = 64
"""Becomes one or several other characters when its case is folded, whatever stands beside it."""
INTRICATE = 128
"""Becomes something else that only Python can tell."""
SPACE = 256
"""White space, as ``str.split`` has it."""
INVISIBLE = 512
"""Shows nothing; see :data:`INVISIBLE_CHARACTERS`."""

UNSPACED_RANGES = r"[\u0E00-\u1FFF\u2E80-\U0010FFFF]"
"""All characters of scripts without spaces lie in these. A range is cheap to try first: French text is
searched six times as fast with it.
"""

_NOT_SHARED = r"--[\p{Script=Inherited}\u02BC]"
"""Not the tilde or the apostrophe that Thai shares with the rest: they stay in the word they stand in."""

# Script extensions, not scripts: ー, 〆 and the vertical repeat marks belong to no single script.
_UNSPACED_SCRIPTS = (
    r"\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}",
    r"\p{scx=Thai}",
    r"\p{scx=Khmer}",
    r"\p{scx=Lao}",
    r"\p{scx=Myanmar}",
)


def _word_characters(scripts: str) -> str:
    return rf"[{UNSPACED_RANGES}&&\w&&[{scripts}]{_NOT_SHARED}]"


UNSPACED = _word_characters("".join(_UNSPACED_SCRIPTS))
"""Set (``regex`` syntax, version 1) of the word characters of all scripts that are written without spaces."""

UNSPACED_SCRIPTS = tuple(map(_word_characters, _UNSPACED_SCRIPTS))
"""Such a set for each script; they have no character in common."""

INVISIBLE_CHARACTERS = r"[\p{Default_Ignorable_Code_Point}--[\u115F\u1160\u3164\uFFA0]]"
"""Set of all characters that show nothing by themselves. The Hangul fillers are left out, because a filler
takes the room of a letter.
"""

_LONGEST_FOLDED = 7
"""Bytes; ``Folded`` of ``_characters.pxd`` has room for as many."""

_PLAIN_WORD = regex.compile(rf"[\w--{UNSPACED}]+", regex.V1)
_KINDS = tuple(
    (kind, regex.compile(expression, regex.V1))
    for kind, expression in (
        (WORD, r"\w"),
        (MARK, r"\p{M}"),
        (SPACE, r"\s"),
        (INVISIBLE, INVISIBLE_CHARACTERS),
        *enumerate(UNSPACED_SCRIPTS, 1),
    )
)


def block(number: int) -> tuple[bytes, list[bytes]]:
    """Of the ``BLOCK`` characters from ``number`` × ``BLOCK`` on the kinds, as bytes of uint16, and the UTF-8
    of what ``FOLDED`` ones become.
    """
    characters = [chr(code) for code in range(number * BLOCK, (number + 1) * BLOCK)]
    kinds = array("H", [_case_and_form(character) for character in characters])
    for kind, expression in _KINDS:
        for match in expression.finditer("".join(characters)):
            kinds[match.start()] |= kind
    folded = [
        folded_case(character).encode() if kind & FOLDED else b""
        for character, kind in zip(characters, kinds, strict=True)
    ]
    return kinds.tobytes(), folded


def folded_case(character: str) -> str:
    """What a character becomes among the words of a text."""
    return unicodedata.normalize("NFC", character.casefold())


def _case_and_form(character: str) -> int:
    """Which of SUSPECT, FOLDED and INTRICATE a character is."""
    kind = SUSPECT if _is_suspect(character) else 0
    folded = folded_case(character)
    if folded != character:
        plain = _PLAIN_WORD.fullmatch(character) is not None and _PLAIN_WORD.fullmatch(folded) is not None
        alone = not any(map(_is_suspect, character + folded))
        kind |= FOLDED if plain and alone and len(folded.encode()) <= _LONGEST_FOLDED else INTRICATE
    return kind


def _is_suspect(character: str) -> bool:
    # The quick check of NFC says "maybe" of combining characters, of the parts of Hangul's syllables, and of
    # vowels of some scripts beyond the first 65,536 characters that are letters to Unicode.
    category, code = unicodedata.category(character)[0], ord(character)
    return (
        category == "M"
        or 0x1100 <= code < 0x1200
        or (code > 0xFFFF and category == "L")
        or not unicodedata.is_normalized("NFC", character)
    )
