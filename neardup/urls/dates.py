"""Dates as URLs write them: days such as ``2026-11-01``, ``1.11.2026`` or ``Nov/1/2026``, and months."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
_SHORT = 3
"""Letters of a short name of a month."""

_NAMES = "|".join(f"{name[:_SHORT]}(?:{name[_SHORT:]})?" for name in _MONTHS)
_FIELDS = {
    "year": "((?:19|20)[0-9]{2})",
    "month": f"(0?[1-9]|1[0-2]|(?<![A-Za-z])(?:{_NAMES}))",
    "day": "(0?[1-9]|[12][0-9]|3[01])",
}
_BETWEEN = r"([-/_. +]|%20|&\w{1,12}=)"
"""What stands between the fields of a date; parameters of one name each, too."""

_COMPACT = {"year": _FIELDS["year"], "month": "(0[1-9]|1[0-2])", "day": "(0[1-9]|[12][0-9]|3[01])"}
"""Fields with nothing between."""

_WIDTHS = {"year": 4, "month": 2, "day": 2}

_Order = tuple[str, ...]


class Dates(NamedTuple):
    """Dates of one spelling.

    ``numbers`` counts days or months. ``month`` is the longest that is written, a name or a number.
    """

    numbers: list[int]
    order: _Order
    between: list[str]
    is_padded: bool
    month: str

    def write(self, number: int) -> str:
        """The day or month of a number in the same spelling; of days, the last that there is at most."""
        if "day" in self.order:
            day = date.fromordinal(min(max(number, 1), date.max.toordinal()))
            values = {"year": day.year, "month": day.month, "day": day.day}
        else:
            values = {"year": number // 12, "month": number % 12 + 1}
        fields = [self._write(field, values[field]) for field in self.order]
        return "".join(map("".join, zip(fields, [*self.between, ""], strict=True)))

    def _write(self, field: str, value: int) -> str:
        if field != "month" or self.month.isdigit():
            return f"{value:0{_WIDTHS[field] if self.is_padded or field == 'year' else 1}}"
        name = _MONTHS[value - 1]
        name = name[:_SHORT] if len(self.month) == _SHORT else name
        return name.upper() if self.month.isupper() else name.title() if self.month.istitle() else name


class Spelling(NamedTuple):
    """A date in a URL: its place, the order of its fields, and the pattern that has found it.

    The odd groups of the pattern are the fields. The even ones stand between.
    """

    found: re.Match[str]
    order: _Order

    def read(self, texts: Iterable[str]) -> Dates | None:
        """The dates that texts are in this spelling; None: they are not all."""
        between = self.found.groups()[1::2]
        numbers, named = [], []
        for text in texts:
            found = self.found.re.fullmatch(text)
            if found is None or found.groups()[1::2] != between:
                return None
            fields = dict(zip(self.order, found.groups()[::2], strict=True))
            try:
                day = date(int(fields["year"]), _month(fields["month"]), int(fields.get("day", 1)))
            except ValueError:
                return None
            numbers.append(day.toordinal() if "day" in fields else 12 * day.year + day.month - 1)
            named.append(fields)
        return Dates(
            numbers,
            self.order,
            list(between),
            is_padded=all(len(text) > 1 for fields in named for text in fields.values()),
            month=max((fields["month"] for fields in named), key=len),
        )


def dates_in(url: str, start: int) -> Iterator[Spelling]:
    """The dates that a URL may have from a place on, in all spellings that they may have.

    Whether ``1/11/2026`` is a day of November is told by the dates of other URLs.

    >>> [spelling.order for spelling in dates_in("http://a.example/1/11/2026", 16)]
    [('day', 'month', 'year'), ('month', 'day', 'year'), ('month', 'year')]
    """
    for order, pattern in _PATTERNS:
        for found in pattern.finditer(url, start):
            yield Spelling(found, order)


def _month(text: str) -> int:
    """The number of a month by its number or its name."""
    if text.isdigit():
        return int(text)
    return next(number for number, name in enumerate(_MONTHS, 1) if name.startswith(text[:_SHORT].lower()))


def _pattern(order: _Order, fields: dict[str, str], between: str) -> re.Pattern[str]:
    written = between.join(fields[field] for field in order)
    return re.compile(f"(?<![0-9]){written}(?![0-9])", re.IGNORECASE)


_DAYS: tuple[_Order, ...] = (("year", "month", "day"), ("day", "month", "year"), ("month", "day", "year"))
_MONTHS_OF_YEARS: tuple[_Order, ...] = (("year", "month"), ("month", "year"))
_PATTERNS = [
    *((order, _pattern(order, _FIELDS, _BETWEEN)) for order in _DAYS),
    (_DAYS[0], _pattern(_DAYS[0], _COMPACT, "()")),
    *((order, _pattern(order, _FIELDS, _BETWEEN)) for order in _MONTHS_OF_YEARS),
    (_MONTHS_OF_YEARS[0], _pattern(_MONTHS_OF_YEARS[0], _COMPACT, "()")),
]
"""Days before months, which are parts of them."""
