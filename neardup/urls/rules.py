"""What is learned of URLs: rules, their states, and predictions."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from neardup.urls.tally import wilson_lower

AND = "+"
"""Between the places of segments that change at once."""


class Slot(StrEnum):
    """The parts of a URL that may not matter."""

    PARAMETER = "parameter"
    """One parameter of the query; ``value`` is its name. A parameter of the path is named ``;name``."""
    OTHERS = "others"
    """All parameters but one; ``value`` is the name of the one that stays."""
    QUERY = "query"
    """All parameters."""
    SEGMENT = "segment"
    """A directory of the path that another one may stand for; ``value`` is its place, from 0. If the number
    of the directory stands in the path again, ``value`` has those places, too (:data:`AND`).
    """
    EXTRA = "extra"
    """A segment of the path that may as well be missing; ``value`` is the segment."""
    HOST = "host"
    """Host and scheme: mirrors, ``www``, http and https."""
    SPELLING = "spelling"
    """Case, extension, index file, trailing slash."""
    SUBSTITUTION = "substitution"
    """One way of writing a URL instead of another; ``value`` has both, ``{}`` for what they have in common
    (:mod:`neardup.urls.substitutions`).
    """
    TOGETHER = "together"
    """All that rules for the whole host say does not matter, at once; ``value`` names the kinds of slots."""
    TRAP = "trap"
    """The shape of a URL whose pages are all in few clusters: a soft 404, a login wall, a calendar."""

    __hash__ = str.__hash__  # that of an Enum is in Python, and keys are made of slots all the time


class State(StrEnum):
    """The states of a rule."""

    LEARNING = "learning"
    """Too few trials, clusters or directories, or too few hits, to predict anything."""
    ACTIVE = "active"
    REVOKED = "revoked"
    """Active before, and wrong of late, or revoked by hand: learned afresh."""
    PINNED = "pinned"
    """By hand: always right."""
    BANNED = "banned"
    """By hand: never asked."""


class Rule(NamedTuple):
    """What a rule says: on this host, this part of a URL does not matter.

    ``context`` says for which URLs of the host, from "" (all of them) to one directory or file. Of a
    parameter, it may be a file with one value of the parameter, or with other parameters
    (:data:`neardup.urls.slots.BESIDE`). A rule is hashable, and all its parts are short text.
    """

    host: str
    slot: Slot
    value: str
    context: str = ""

    def __str__(self) -> str:
        said = f"{self.slot} {self.value}".rstrip()
        return f"{self.host}: {said} {self.context}".rstrip()


class LearnedRule(NamedTuple):
    """A rule with its evidence: plain data, as SQL keeps it.

    - ``trials``, ``hits``: with forgetting, so they are no whole numbers, and 200 at most.
    - ``clusters``, ``directories``: how many different ones the hits came from, as far as they are counted.
    - ``example``, ``partner``: URLs of a page and of the known page that it is a copy of; "" if there is
      none.
    """

    rule: Rule
    trials: float
    hits: float
    clusters: int
    directories: int
    state: State
    example: str = ""
    partner: str = ""

    @property
    def lower(self) -> float:
        """The lower end of the 95 % interval of the share of hits."""
        return wilson_lower(self.hits, self.trials)


class Prediction(NamedTuple):
    """What is known against a URL before it is fetched.

    - ``probability``: that its page is a copy of a page of this crawl.
    - ``lower``: the lower end of the 95 % interval of that, from the trials of the rule alone.
    - ``rule``: why.
    - ``partner``: URL of the known page that it would be a copy of; None if no one page is known.
    - ``is_known``: False if the partner is only asked for, and not judged yet.
    """

    probability: float
    lower: float
    rule: Rule
    partner: str | None
    is_known: bool = True
