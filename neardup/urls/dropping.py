"""When what is known of a URL is enough not to request it at all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import mmh3

from neardup.urls.rules import Rule, Slot
from neardup.urls.slots import names_of

if TYPE_CHECKING:
    from neardup.urls.leads import Leads
    from neardup.urls.rules import Prediction

DROPPED_FROM = 0.98
"""Least probability of a request that is dropped."""

DROPPED_FROM_LOWER = 0.95
"""Least lower bound of that probability."""

NEVER_DROPPED = frozenset({Slot.SEGMENT, Slot.SUBSTITUTION, Slot.TRAP})
"""Slots whose rules drop nothing. Versions and languages are nearly copies, and may be ways of writing, too.
A trap may have a way out.
"""

_VERSION = re.compile(
    rf"{Slot.EXTRA}:(?:[a-z]{{0,8}}[-_.]?[0-9][0-9._-]*|[a-z]{{2}}(?:[-_][a-z]{{2,4}})?)", re.IGNORECASE
)
"""A segment that may be missing, and names a version or a language: its pages are nearly copies, too."""

DROPPED_UNTIL = 0.8
"""Least probability, and least lower bound, with which a dropped request is not made after all."""

EXPLORED = 20
"""One URL of so many that would be dropped is fetched all the same, so that a rule that goes wrong shows."""


def may_drop(prediction: Prediction, leads: Leads) -> bool:
    """Whether a prediction, and what was read of such copies, are enough to drop a request."""
    return (
        prediction.is_known
        and is_sure(prediction)
        and not names_a_version(prediction.rule)
        and leads.leads_nowhere(prediction.rule)
    )


def names_a_version(rule: Rule) -> bool:
    """Whether a rule says that the segment of a version or a language may as well be missing.

    >>> [names_a_version(Rule("a.example", Slot.EXTRA, name)) for name in ("v2", "3.10", "de-AT", "print")]
    [True, True, True, False]
    >>> names_a_version(Rule("a.example", Slot.TOGETHER, "parameter:sid extra:v2"))
    True
    """
    return any(map(_VERSION.fullmatch, names_of(rule).split(" ")))


def is_still_sure(prediction: Prediction, leads: Leads) -> bool:
    """Whether they are enough to leave a dropped request dropped."""
    sure = min(prediction.probability, prediction.lower) >= DROPPED_UNTIL
    return sure and leads.leads_nowhere(prediction.rule)


def is_sure(prediction: Prediction) -> bool:
    """Whether a prediction alone is enough to drop a request."""
    return is_another_address(prediction) and prediction.lower >= DROPPED_FROM_LOWER


def is_another_address(prediction: Prediction) -> bool:
    """Whether a URL very likely is another address of a known page, not that of a page that is alike."""
    return prediction.probability >= DROPPED_FROM and is_about_addresses(prediction.rule)


def is_about_addresses(rule: Rule) -> bool:
    """Whether a rule is about other addresses of one page, not about pages that are alike."""
    return rule.slot not in NEVER_DROPPED


def is_explored(url: str) -> bool:
    """Whether a URL is one of those that are fetched all the same: the same ones in each crawl."""
    return mmh3.hash(url, signed=False) % EXPLORED == 0
