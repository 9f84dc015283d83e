"""Charts as SVG, drawn on the server. Colours are those of the style sheet, by class."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.store.explore import Bit

WIDTH, HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 14, 30
_PLOT_WIDTH, _PLOT_HEIGHT = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

_SURE = 0.12
"""Relative weight of a bit that is drawn at full height; the weights of strong bits are not stored."""

Bar = tuple[float, float]
"""Where a bar of a histogram stands, and how high it is."""


def histogram(
    name: str,
    bars: Sequence[Bar],
    *,
    ends: tuple[float, float],
    step: float,
    ticks: Sequence[float],
    threshold: float,
    threshold_name: str,
) -> Markup:
    """Bars of one series over an axis from ``ends[0]`` to ``ends[1]``, with a threshold drawn in."""
    highest = max((height for _, height in bars), default=0.0)
    scale = _nice(highest)
    first, last = ends
    unit = _PLOT_WIDTH / (last - first)
    parts = _frame(name, scale)
    for at, height in bars:
        x, width = _LEFT + (at - first - step / 2) * unit, step * unit
        tall = _PLOT_HEIGHT * height / scale
        parts.append(
            f'<rect class="bar" x="{x + width * 0.06:.1f}" y="{_TOP + _PLOT_HEIGHT - tall:.1f}"'
            f' width="{width * 0.88:.1f}" height="{tall:.1f}"><title>{at:g}: {height:,.0f}</title></rect>'
        )
    for tick in ticks:
        parts.append(_below(_LEFT + (tick - first) * unit, f"{tick:g}"))
    x = _LEFT + (threshold - first) * unit
    anchor, gap = ("end", -6) if x > WIDTH / 2 else ("start", 6)
    parts += [
        f'<line class="threshold" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_TOP + _PLOT_HEIGHT}"/>',
        (
            f'<text class="label strong" x="{x + gap:.1f}" y="{_TOP + 11}" text-anchor="{anchor}">'
            f"{escape(threshold_name)}</text>"
        ),
    ]
    return _drawn(name, parts)


def curve(name: str, points: Sequence[tuple[int, int]], *, x_name: str, y_name: str) -> Markup:
    """A curve through points that begin at (0, 0), beside the diagonal that no duplicate would leave."""
    pages = max(1, points[-1][0] if points else 1)
    scale = _nice(pages)
    parts = _frame(name, scale)

    def place(x: float, y: float) -> str:
        return f"{_LEFT + _PLOT_WIDTH * x / pages:.1f},{_TOP + _PLOT_HEIGHT * (1 - y / scale):.1f}"

    line = " ".join(place(x, y) for x, y in points)
    parts += [
        f'<polygon class="area" points="{place(0, 0)} {line} {place(pages, 0)}"/>',
        f'<polyline class="diagonal" points="{place(0, 0)} {place(pages, pages)}"/>',
        f'<polyline class="curve" points="{line}"/>',
        _below(_LEFT, "0"),
        _below(WIDTH - _RIGHT, f"{pages:,} {x_name}", anchor="end"),
        f'<text class="label" x="{_LEFT + 6}" y="{_TOP + 11}">{escape(y_name)}</text>',
    ]
    return _drawn(name, parts)


def columns(name: str, stacks: Sequence[tuple[str, int, int]]) -> Markup:
    """A column for each of some names: all pages, and the duplicates among them below."""
    scale = _nice(max((pages for _, pages, _ in stacks), default=0))
    parts = _frame(name, scale)
    width = _PLOT_WIDTH / max(1, len(stacks))
    bar = min(width * 0.8, 40.0)
    for number, (label, pages, duplicates) in enumerate(stacks):
        x = _LEFT + width * (number + 0.5) - bar / 2
        for kind, count in (("rest", pages), ("bar", duplicates)):
            tall = _PLOT_HEIGHT * count / scale
            parts.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{_TOP + _PLOT_HEIGHT - tall:.1f}" width="{bar:.1f}"'
                f' height="{tall:.1f}"><title>{escape(label)}: {pages:,} pages, {duplicates:,} duplicates'
                "</title></rect>"
            )
    if stacks:
        parts.append(_below(_LEFT, stacks[0][0]))
        if len(stacks) > 1:
            parts.append(_below(WIDTH - _RIGHT, stacks[-1][0], anchor="end"))
    return _drawn(name, parts)


def bits(of_pair: Sequence[Bit]) -> Markup:
    """The bits of two fingerprints as columns: as high as the less sure of both is sure, and those that
    differ in another colour.
    """
    if not of_pair:
        return Markup("")
    differing = [str(bit.number) for bit in of_pair if bit.differs]
    name = f"{len(differing)} of {len(of_pair)} bits differ" + (": " + ", ".join(differing)) * bool(differing)
    width = WIDTH / len(of_pair)
    parts = [f"<title>{escape(name)}</title>"]
    for bit in of_pair:
        known = [weight for weight in bit.weights if weight is not None]
        tall = 60.0 * min(1.0, min(known) / _SURE) if known else 60.0
        if bit.differs:
            parts.append(
                f'<rect class="marked" x="{bit.number * width:.1f}" y="0" width="{width:.1f}" height="64"/>'
            )
        parts.append(
            f'<rect class="{"differs" if bit.differs else "agrees"}" x="{bit.number * width + 1:.1f}"'
            f' y="{64 - max(3.0, tall):.1f}" width="{width - 2:.1f}" height="{max(3.0, tall):.1f}"/>'
        )
        if bit.differs:
            parts.append(
                f'<text class="label strong bit" x="{(bit.number + 0.5) * width:.1f}" y="74"'
                f' text-anchor="middle">{bit.number}</text>'
            )
    return Markup(  # noqa: S704  # numbers
        f'<svg class="chart" viewBox="0 0 {WIDTH} 84" role="img" aria-label="{escape(name)}">'
        f"{''.join(parts)}</svg>"
    )


def share(percent: float) -> Markup:
    """A bar of so many percent, as wide as its place."""
    width = min(100.0, max(0.0, percent))
    return Markup(  # noqa: S704  # a number
        '<svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="rest" width="100" height="6"/><rect class="bar" width="{width:.1f}" height="6"/></svg>'
    )


def _nice(highest: float) -> float:
    """The least of 1, 2, 5, 10, 20… that is not below ``highest``."""
    top = 1.0
    while True:
        for factor in (1, 2, 5):
            if top * factor >= highest:
                return top * factor
        top *= 10


def _frame(name: str, scale: float) -> list[str]:
    parts = [f"<title>{escape(name)}</title>"]
    for share_of in (0.0, 0.5, 1.0):
        y = _TOP + _PLOT_HEIGHT * (1 - share_of)
        parts += [
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
            (
                f'<text class="label" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
                f"{_short(scale * share_of)}</text>"
            ),
        ]
    return parts


def _short(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{unit}"
    return f"{number:g}"


def _below(x: float, text: str, *, anchor: str = "") -> str:
    anchor = anchor or ("start" if x <= _LEFT else "middle")
    return f'<text class="label" x="{x:.1f}" y="{HEIGHT - 10}" text-anchor="{anchor}">{escape(text)}</text>'


def _drawn(name: str, parts: list[str]) -> Markup:
    """All that comes from outside has been escaped."""
    return Markup(  # noqa: S704
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(name)}">'
        f"{''.join(parts)}</svg>"
    )
