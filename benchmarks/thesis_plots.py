"""The figures of :mod:`benchmarks.bench_thesis`, as small SVG files. Needs matplotlib, which the project does
not.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Facts: TypeAlias = dict[str, Any]

KINDS = {"first": "F", "all": "A"}
LINES = {"first": "--", "all": "-"}
COLOURS = {
    "psm": "tab:blue",
    "manku4": "tab:orange",
    "manku10": "tab:red",
    "mih": "tab:green",
    "project equal": "black",
}
NAMES = {
    "psm": "PSM", "manku4": "Manku 4", "manku10": "Manku 10", "mih": "multi-index",
    "project equal": "this project .95",
}  # fmt: skip


def _sizes(facts: Facts) -> list[str]:
    return sorted((n for n in facts if n.isdigit() and "times" in facts[n]), key=int)


def _axes(rows: int, names: list[str]) -> tuple[Figure, list[list[Axes]]]:
    """One column for each collection; built without pyplot, which keeps figures for good."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Made

    figure = Made(figsize=(5 * len(names), 3.4 * rows), layout="constrained")
    FigureCanvasSVG(figure)
    grid = figure.subplots(rows, len(names), squeeze=False)
    for row in grid:
        for name, axes in zip(names, row, strict=True):
            axes.set_title(f"{name} fingerprints", fontsize=10)
            axes.grid(alpha=0.3)
    return figure, [list(row) for row in grid]


def _label(axes: Axes, x: str, y: str, *, log: str = "", legend: bool = True) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if name in log:
            (axes.set_xscale if name == "x" else axes.set_yscale)("log")
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.minorticks_off()
    if legend:
        axes.legend(fontsize=6)


def _fig5(columns: dict[str, Facts]) -> Figure:
    figure, grid = _axes(2, list(columns))
    for column, facts in enumerate(columns.values()):
        found = facts.get("prefixes", {})
        for kind, of in KINDS.items():
            at = [int(p) for p, cell in found.items() if cell[f"k {kind}"] is not None]
            grid[0][column].plot(
                at, [found[str(p)][f"k {kind}"] for p in at], "o" + LINES[kind], label=f"PSM {of}"
            )
            at = [int(p) for p in found]
            grid[1][column].plot(
                at, [found[str(p)][kind]["us"] for p in at], "o" + LINES[kind], label=f"PSM {of}"
            )
        _label(grid[0][column], "p (bits)", "flips k for recall .95")
        _label(grid[1][column], "p (bits)", "time (µs a query)", log="y")
    return figure


def _fig7(columns: dict[str, Facts], what: str, y: str) -> Figure:
    figure, grid = _axes(1, list(columns))
    for column, facts in enumerate(columns.values()):
        axes = grid[0][column]
        times = facts[_sizes(facts)[-1]]["times"]
        found = facts.get("prefixes", {})
        for kind, of in KINDS.items():
            cells = [times[f"manku{t} {kind}"][what] for t in (4, 10)]
            axes.plot((4, 10), cells, "s" + LINES[kind], color="tab:red", label=f"Manku {of}")
            cells = [cell[kind][what] for cell in found.values()]
            at = [cell["tables"] for cell in found.values()]
            axes.plot(
                at,
                cells,
                "o" + LINES[kind],
                color="tab:blue",
                label=f"PSM {of}, p = {'–'.join(list(found)[:: max(1, len(found) - 1)])}",
            )
        _label(axes, "tables (eq. 7.6)", y, log="y")
    return figure


def _fig8(columns: dict[str, Facts]) -> Figure:
    figure, grid = _axes(3, list(columns))
    for column, facts in enumerate(columns.values()):
        for row, kind in enumerate(KINDS):
            axes = grid[row][column]
            for shade, n in enumerate(_sizes(facts)):
                recall = facts[n]["recall"]
                colour = f"C{shade}"
                name = f"{int(n) / 1e6:.3g} M"
                axes.plot(recall[f"thesis {kind}"]["curve"], color=colour, label=name)
                curve = [c for c in recall[f"adaptive {kind}"]["curve"] if c[0] <= 60]
                axes.plot(*zip(*curve, strict=True), ":", color=colour)
            axes.axhline(0.95, color="grey", lw=0.8)
            axes.set_ylim(0.5, 1.0)
            _label(axes, "flips k (dotted: mean when chosen by query)", f"recall of PSM {KINDS[kind]}")
        axes = grid[2][column]
        at = [int(n) / 1e6 for n in _sizes(facts)]
        for system, name in NAMES.items():
            for kind, of in KINDS.items():
                us = [facts[n]["times"][f"{system} {kind}"]["us"] for n in _sizes(facts)]
                axes.plot(at, us, LINES[kind], color=COLOURS[system], label=f"{name} {of}")
        _label(axes, "n (million fingerprints)", "time (µs a query)", log="xy", legend=column == 0)
    return figure


def _fig10(columns: dict[str, Facts]) -> Figure:
    figure, grid = _axes(2, list(columns))
    for column, facts in enumerate(columns.values()):
        batch = {tuple(map(int, key.split())): cells for key, cells in facts.get("batch", {}).items()}
        if not batch:
            continue
        n, m = max(key[0] for key in batch), max(key[1] for key in batch)
        for row, held in enumerate((0, 1)):
            chosen = sorted(key for key in batch if key[held] == (n, m)[held])
            at = [key[1 - held] / 1e6 for key in chosen]
            for system, name in (("psm first", "PSM F"), ("psm all", "PSM A"), ("manku", "Manku 4, F → Q")):
                grid[row][column].plot(at, [batch[key][system]["us"] for key in chosen], "o-", label=name)
        _label(
            grid[0][column], f"batch (million queries), n = {n / 1e6:.3g} M", "time (µs a query)", log="xy"
        )
        _label(
            grid[1][column], f"n (million fingerprints), batch {m / 1e6:.3g} M", "time (µs a query)", log="xy"
        )
    return figure


def shortened(svg: str) -> str:
    """The same picture in a third of the bytes: fewer digits and blanks, styles as classes, no names of
    groups.
    """
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg)
    svg = re.sub(r"(\d+\.\d)\d+", r"\1", svg)
    svg = re.sub(r' id="[a-zA-Z2.]+_\d+"', "", svg)
    styles = sorted(set(re.findall(r' style="([^"]*)"', svg)))
    for number, style in enumerate(styles):
        svg = svg.replace(f' style="{style}"', f' class="s{number}"')
    classes = "".join(f".s{number}{{{style}}}\n" for number, style in enumerate(styles))
    svg = svg.replace("</style>", f"\n{classes}</style>", 1)
    return re.sub(r"\s*\n\s*", "\n", svg)


def draw(folder: Path, columns: dict[str, Facts]) -> None:
    """Write those plots for which there are facts."""
    import matplotlib as mpl

    if not columns:
        return
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "neardup"}):
        figures = {
            "fig5": _fig5(columns),
            "fig7b": _fig7(columns, "candidates", "fingerprints checked a query"),
            "fig7c": _fig7(columns, "us", "time (µs a query)"),
            "fig8": _fig8(columns),
            "fig10": _fig10(columns),
        }
        for name, figure in figures.items():
            text = io.StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None})
            (folder / f"{name}.svg").write_text(shortened(text.getvalue()))
