"""Precision against recall, drawn by matplotlib, which is an extra."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from neardup.evaluation.result import Result, Row

ENDINGS = (".svg", ".png")


def check_plot(path: Path) -> None:
    """ConfigurationError if no plot can be written there, before hours are spent on what it would show."""
    if path.suffix.lower() not in ENDINGS:
        raise ConfigurationError(f"--plot must name a file that ends in {' or '.join(ENDINGS)}, not {path}")
    if not path.parent.is_dir():
        raise ConfigurationError(f"{path} cannot be written: {path.parent} is not a folder")
    _matplotlib("matplotlib.figure")


def plot(result: Result, path: Path) -> None:
    """Write the curves to an .svg or .png file.

    Along a curve of features the distance grows, along the others the cut falls. The mark on a curve is its
    own distance.
    """
    # A Figure of its own, not pyplot: no window system, no state that a caller's plots would share.
    figure = _matplotlib("matplotlib.figure").Figure(figsize=(8.0, 6.0), layout="constrained")
    axes = figure.add_subplot(xlabel="recall", ylabel="precision", title=f"near-duplicates, {result.mode}")
    colours = {name: f"C{number}" for number, name in enumerate(_features(result.rows))}
    for (features, verify), rows in _curves(result.rows).items():
        label = features if verify is None else f"{features}, verified at {verify:g}"
        _draw(axes, rows, label, colours[features], "--" if verify is None else "-")
    for by, colour, label in (
        ("resemblance", "black", "exact resemblance"),
        ("estimate", "grey", "sketches alone"),
    ):
        _draw(axes, [row for row in result.rows if row.by == by and row.note != "best"], label, colour, ":")
    axes.grid(visible=True, alpha=0.3)
    if axes.lines:
        axes.legend(fontsize="small")
    try:
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be written: {exc.strerror or exc}") from exc


def _features(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row.trial.features for row in rows if row.trial))


def _curves(rows: Iterable[Row]) -> dict[tuple[str, float | None], list[Row]]:
    curves: dict[tuple[str, float | None], list[Row]] = {}
    for row in rows:
        if row.by == "fingerprint" and row.trial:
            curves.setdefault((row.trial.features, row.trial.verify), []).append(row)
    return curves


def _draw(axes: Any, rows: list[Row], label: str, colour: str, style: str) -> None:
    points = [
        (row.score.recall.value, row.score.precision.value, bool(row.note))
        for row in rows
        if row.score.recall and row.score.precision
    ]
    if points:
        recall, precision, _ = zip(*points, strict=True)
        axes.plot(recall, precision, style, color=colour, label=label, marker=".", markersize=3)
        own = [(r, p) for r, p, m in points if m]
        axes.plot([r for r, _ in own], [p for _, p in own], "o", color=colour)


def _matplotlib(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        raise ConfigurationError(
            "--plot needs matplotlib; install it with pip install 'neardup[plot]', or leave out --plot"
        ) from exc
