"""A picture of a terminal with sections of a report, as SVG.

``neardup report | python docs/terminal_picture.py 'All pages' 'By path prefix' > docs/images/report.svg``
"""

from __future__ import annotations

import sys
from html import escape

COMMAND = "$ neardup report"
_WIDTH, _HEIGHT = 7.8, 19.0
"""Of a character, in pixels: every line is stretched to it, whatever font the reader has."""

_MARGIN, _BAR = 16, 28


def sections(report: str, titles: list[str]) -> list[str]:
    """The lines of some sections of a report, by their titles, with an empty line between them."""
    found = {part.partition("\n")[0]: part for part in report.strip().split("\n\n")}
    return [line for title in titles for line in ("", *found[title].splitlines())]


def svg(lines: list[str]) -> str:
    """The picture; titles (lines that are not indented) stand out."""
    width = 2 * _MARGIN + _WIDTH * max(map(len, lines))
    height = _BAR + 2 * _MARGIN + _HEIGHT * len(lines)
    size = f'width="{width:.0f}" height="{height:.0f}"'
    font = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {size} {font}>',
        "<title>neardup report</title>",
        f'<rect {size} rx="8" fill="#1d2430"/>',
        *(
            f'<circle cx="{18 + 18 * n}" cy="16" r="5" fill="{fill}"/>'
            for n, fill in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
    ]
    for number, line in enumerate(lines):
        text = line.lstrip()
        if not text:
            continue
        x = _MARGIN + _WIDTH * (len(line) - len(text))
        y = _BAR + _MARGIN + _HEIGHT * (number + 0.7)
        fill = "#7fd1ae" if line == text else "#d7dce5"
        # Spaces that no renderer takes away.
        shown = escape(text).replace(" ", "\N{NO-BREAK SPACE}")
        parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"'
            f' textLength="{_WIDTH * len(text):.1f}">{shown}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    lines = sections(sys.stdin.read(), sys.argv[1:])
    sys.stdout.write(svg([COMMAND, *(line.rstrip() for line in lines)]))


if __name__ == "__main__":
    main()
