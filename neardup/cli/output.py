"""Tables, JSON and CSV on standard output."""

from __future__ import annotations

import csv
import json
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from neardup.detection.interval import Rate

FORMATS = ("table", "json", "csv")

MARKDOWN = "markdown"
"""Of reports that are read by people elsewhere, as in a pull request."""

_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""With what a cell begins that some spreadsheet takes for a formula; those of full width are for Chinese and
Japanese keyboards.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a report; every row has a value, or None, for each column."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def records(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def printable(value: object) -> str:
    r"""A value for a terminal: URLs come from the web, and control characters in them are shown, not obeyed.

    >>> printable("http://a.example/\x1b[2J"), printable(None), printable(95.3125), printable(0.987)
    ('http://a.example/\\x1b[2J', '', '95.3', '0.99')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) > 1.0 or not value else f"{value:.2f}"
    return _escaped(str(value))


def plain(value: object) -> str:
    """A value in a line of text: numbers with commas, all of a list, and a dash for nothing.

    >>> plain(12000), plain(0.83456), plain(["a", "b"]), plain(None)
    ('12,000', '0.835', 'a b', '-')
    """
    if isinstance(value, list):
        return " ".join(map(printable, value))
    if isinstance(value, float):
        return f"{value:.3g}"
    return "-" if value is None else printable(f"{value:,}" if isinstance(value, int) else value)


def percent(rate: Rate | None) -> str:
    """A share and its interval in percent; a dash where there is none."""
    return "-" if rate is None else f"{100 * rate.value:5.1f} [{100 * rate.low:.1f}-{100 * rate.high:.1f}]"


def complain(problem: object) -> None:
    """A message on standard error, in one line: it may quote what a server sent."""
    print(f"neardup: {printable(problem)}", file=sys.stderr)


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def show_sections(sections: Sequence[Section], output_format: str) -> None:
    """Print the sections in one of ``FORMATS``, or in Markdown."""
    if output_format == "json":
        show_json({section.name: section.records() for section in sections})
    elif output_format == "csv":
        _show_csv(sections)
    elif output_format == MARKDOWN:
        print("\n\n".join(map(_markdown, filter(lambda section: section.rows, sections))))
    else:
        for number, section in enumerate(sections):
            if number:
                print()
            print(section.title)
            show_table(section.columns, section.rows)


def show_json(value: object) -> None:
    knows_all = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    text = json.dumps(value, indent=2, ensure_ascii=not knows_all, default=str)
    # JSON itself escapes some control characters only; outside of strings it has none but line ends.
    print("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Aligned columns, numbers to the right."""
    values = list(rows)
    cells = [[printable(value) for value in row] for row in values]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    numeric = [
        bool(values) and all(isinstance(row[i], int | float | None) for row in values)
        for i in range(len(columns))
    ]
    for row in [list(columns), *cells]:
        aligned = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        print("  " + "  ".join(aligned).rstrip())
    if not values:
        print("  (none)")


_OF_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|~#&])")


def _markdown(section: Section) -> str:
    """A heading and a table; what a cell holds is text, whatever characters it has."""
    lines = [section.columns, ["---"] * len(section.columns)]
    lines += [[_OF_MARKDOWN.sub(r"\\\1", printable(value)) for value in row] for row in section.rows]
    return "\n".join([f"### {section.title}", "", *(f"| {' | '.join(cells)} |" for cells in lines)])


def show_fields(fields: Mapping[str, object]) -> None:
    """One named value a line."""
    width = max(map(len, fields))
    for name, value in fields.items():
        print(f"  {name.ljust(width)}  {printable(value)}")


def _show_csv(sections: Sequence[Section]) -> None:
    """All sections in one table: a column ``section``, then every column that any of them has."""
    columns = list(dict.fromkeys(column for section in sections for column in section.columns))
    writer = csv.DictWriter(sys.stdout, ["section", *columns], lineterminator="\n")
    writer.writeheader()
    for section in sections:
        for record in section.records():
            writer.writerow(
                {"section": section.name, **{name: csv_cell(value) for name, value in record.items()}}
            )


def csv_cell(value: object) -> object:
    """Texts without control characters; one that a spreadsheet would take for a formula gets an apostrophe in
    front.
    """
    if not isinstance(value, str):
        return value
    return f"'{_escaped(value)}" if value.startswith(_FORMULA_SIGNS) else _escaped(value)
