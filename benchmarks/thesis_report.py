"""Writes ``thesis.md`` and the plots of :mod:`benchmarks.bench_thesis` from its ``thesis.json``, finished or
not.
"""

from __future__ import annotations

import json
from math import comb
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks import thesis_plots

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    Facts: TypeAlias = dict[str, Any]

KINDS = {"first": "F", "all": "A"}
SHOWN_FLIPS = (1, 5, 10, 15, 20, 23, 30, 40, 60)
_CLOSE = 0.9
SYSTEMS = {
    "psm": "PSM of the thesis",
    "calibrated": "the same, calibrated order",
    "manku4": "Manku, 4 tables",
    "manku10": "Manku, 10 tables",
    "mih": "multi-index hashing, exact",
    "project equal": "this project, found .95",
    "project 0.9": "this project, recall .90 asked",
    "project 0.95": "this project, recall .95 asked",
    "project 0.99": "this project, recall .99 asked",
    "linear": "linear scan",
}


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(number(cell) for cell in row) + " |" for row in rows]
    return [*lines, ""]


def number(cell: object) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
    return str(cell)


def sizes(facts: Facts) -> list[str]:
    """The n of a collection that have times, ascending."""
    return sorted((n for n in facts if n.isdigit() and "times" in facts[n]), key=int)


def millions(n: str | int) -> str:
    return f"{int(n) / 1e6:.3g} M"


def _claim(name: str, thesis: float, measured: float | None, *, less: bool = False) -> list[object]:
    if measured is None:
        return [name, thesis, None, "not reached"]
    share = thesis / max(measured, 1e-9) if less else measured / thesis
    word = "holds" if share >= 1.0 else f"nearly ({share:.0%})" if share >= _CLOSE else "does not hold"
    return [name, thesis, measured, word]


def claims(facts: Facts) -> list[str]:
    last = facts[sizes(facts)[-1]]
    n, times, held, recall = int(sizes(facts)[-1]), last["times"], last["bytes"], last["recall"]
    p = recall["p"]
    rows = [
        _claim(
            "space: Manku 10 tables / PSM, eq. 6.12 / 6.17 (8 bytes an offset)", 5, 80 * n / (8 * (n + 2**p))
        ),
        _claim(
            "space: Manku 10 tables / PSM, bytes held (4 bytes an offset)", 5, held["manku10"] / held["psm"]
        ),
        ["space: Manku 4 tables / PSM, bytes held", 2, held["manku4"] / held["psm"], ""],
        ["space: Manku 10 tables / this project", None, held["manku10"] / held["project"], ""],
        ["space: multi-index hashing / PSM", None, held["mih"] / held["psm"], ""],
    ]
    for kind, thesis in (("all", 4.0), ("first", 4.5)):
        own = times[f"psm {kind}"]["us"]
        of = KINDS[kind]
        rows.append(
            _claim(f"online {of}: Manku 10 tables / PSM", thesis, times[f"manku10 {kind}"]["us"] / own)
        )
        if kind == "all":
            rows.append(
                _claim(
                    "online A: Manku 4 tables / PSM (“at least 3.5”)", 3.5, times["manku4 all"]["us"] / own
                )
            )
        else:
            rows.append(["online F: Manku 4 tables / PSM", None, times["manku4 first"]["us"] / own, ""])
        rows.append([f"online {of}: multi-index hashing / PSM", None, times[f"mih {kind}"]["us"] / own, ""])
        project = times[f"project equal {kind}"]["us"]
        for rival in ("manku10", "manku4", "mih", "psm"):
            ratio = times[f"{rival} {kind}"]["us"] / project
            rows.append([f"online {of}: {SYSTEMS[rival]} / this project (found .95)", None, ratio, ""])
    for kind, flips in (("first", 15), ("all", 23)):
        k = recall[f"thesis {kind}"]["k"]["0.95"]
        rows.append(_claim(f"k for recall .95, {KINDS[kind]}", flips, k, less=True))
    rows += _batch_claims(facts.get("batch", {}), n)
    return table(["claim", "thesis", "measured", ""], rows)


def _batch_claims(batch: Facts, n: int) -> list[list[object]]:
    at = {int(key.split()[1]): cells for key, cells in batch.items() if int(key.split()[0]) == n}
    if not at:
        return []
    ratios = {m: {kind: c["manku"]["us"] / c[f"psm {kind}"]["us"] for kind in KINDS} for m, c in at.items()}
    least, most = min(at), max(at)
    return [
        _claim(f"batch of {millions(least)}, A: Manku 4 tables / PSM", 3.7, ratios[least]["all"]),
        _claim(f"batch of {millions(most)}, A: Manku 4 tables / PSM", 7, ratios[most]["all"]),
        _claim(f"batch of {millions(most)}, F: Manku 4 tables / PSM", 14, ratios[most]["first"]),
    ]


def recall_tables(facts: Facts) -> list[str]:
    lines = ["### Figures 8a and 8b: recall against flips", ""]
    rows: list[list[object]] = []
    for n in sizes(facts):
        recall = facts[n]["recall"]
        for kind, of in KINDS.items():
            curve = recall[f"thesis {kind}"]["curve"]
            rows.append([
                millions(n), recall["p"], of,
                recall["with a match"] if kind == "first" else recall["matches"],
                *(curve[k] for k in SHOWN_FLIPS),
            ])  # fmt: skip
    lines += table(
        ["n", "p", "", "queries with a match, or matches", *(f"k = {k}" for k in SHOWN_FLIPS)], rows
    )
    lines += [
        "Flips for a recall, same prefix bits: fixed k (least whole one; in brackets interpolated, to",
        "compare with means) in the thesis's order (eq. 4.5) and in this project's, and the mean when all",
        "above a threshold are tried, as this project's index does:", "",
    ]  # fmt: skip
    rows = []
    for n in sizes(facts):
        recall = facts[n]["recall"]
        for kind, of in KINDS.items():
            row: list[object] = [millions(n), of]
            for wanted in ("0.9", "0.95", "0.99"):
                for order in ("thesis", "calibrated"):
                    known = recall[f"{order} {kind}"]
                    row.append(f"{number(known['k'][wanted])} ({number(known['k interpolated'][wanted])})")
                row.append(recall[f"adaptive {kind}"]["k"][wanted])
            rows.append(row)
    heads = [f".{w} {order}" for w in (90, 95, 99) for order in ("thesis", "calibrated", "by query")]
    return lines + table(["n", "", *heads], rows)


def time_tables(facts: Facts) -> list[str]:
    lines = ["### Figures 8c and 8d: time against n", "", "µs a query (recall in brackets).", ""]
    for kind, of in KINDS.items():
        rows = []
        for name, title in SYSTEMS.items():
            cells = [facts[n]["times"][f"{name} {kind}"] for n in sizes(facts)]
            rows.append([f"{title} {of}", *(f"{number(c['us'])} ({_recall(c)})" for c in cells)])
        lines += table(["", *map(millions, sizes(facts))], rows)
    n = sizes(facts)[-1]
    rows = [
        [
            f"{SYSTEMS[name]} {KINDS[kind]}", c["queries"], c["us"], c["us_least"], c["us_most"], c["probes"],
            c["candidates"], c.get("recall"), facts[n]["bytes"].get(name.split()[0], 8 * int(n)) / int(n),
        ]
        for kind in KINDS for name in SYSTEMS for c in [facts[n]["times"][f"{name} {kind}"]]
    ]  # fmt: skip
    for row in rows:
        if str(row[0]).startswith("the same"):
            row[-1] = facts[n]["bytes"]["psm"] / int(n)
    asked = [f"{KINDS[kind]} {facts[n]['recall'][f'asked of the project {kind}']:.3f}" for kind in KINDS]
    lines += [f"At n = {millions(n)} (this project finds .95 when asked for {', '.join(asked)}):", ""]
    head = [
        "",
        "queries timed",
        "µs",
        "least",
        "most",
        "probes a query",
        "candidates a query",
        "recall",
        "bytes a fingerprint",
    ]
    return lines + table(head, rows)


def _recall(cell: Facts) -> str:
    return f"{cell['recall']:.3f}" if "recall" in cell else "–"


def table_tables(facts: Facts) -> list[str]:
    """Figures 7b and 7c, and 5: the tables of Manku, and prefix bits."""
    n = sizes(facts)[-1]
    times = facts[n]["times"]
    rows: list[list[object]] = []
    for tables, blocks, leading in ((4, 4, 1), (10, 5, 2), (20, 6, 3)):
        model = comb(blocks, leading) * int(n) * 2.0 ** (-64 * leading / blocks)
        row: list[object] = [f"Manku ({blocks}, {leading})", tables, model]
        for kind in KINDS:
            cell = times.get(f"manku{tables} {kind}", {})
            row += [cell.get("candidates"), cell.get("us")]
        rows.append(row)
    for p, cell in facts.get("prefixes", {}).items():
        model = (cell["k all"] + 1) * int(n) / 2.0 ** int(p) if cell["k all"] is not None else None
        row = [f"PSM p = {p}", cell["tables"], model]
        for kind in KINDS:
            row += [cell[kind]["candidates"], cell[kind]["us"]]
        rows.append(row)
    lines = [
        f"### Figures 7b and 7c: tables, candidates and time at n = {millions(n)}", "",
        "Candidates by eq. 6.6 and 6.21 are those of uniform fingerprints, for all matches. A PSM table",
        "counts as eq. 7.6.", "",
    ]  # fmt: skip
    lines += table(
        ["", "tables", "candidates by formula", "candidates F", "µs F", "candidates A", "µs A"], rows
    )
    rows = [
        [
            p, c["k first"], c["k all"], c["first"]["us"], c["all"]["us"], c["first"]["queries"],
            c["all"]["queries"],
        ]
        for p, c in facts.get("prefixes", {}).items()
    ]  # fmt: skip
    lines += [f"### Figure 5: flips for recall .95, and time, against p at n = {millions(n)}", ""]
    return lines + table(["p", "k F", "k A", "µs F", "µs A", "queries timed F", "queries timed A"], rows)


def batch_table(facts: Facts) -> list[str]:
    rows = []
    for key, cells in facts.get("batch", {}).items():
        n, m = key.split()
        manku, first, all_ = cells["manku"], cells["psm first"], cells["psm all"]
        rows.append([
            millions(n), millions(m), first["chunks"], f"{first['k']}, {all_['k']}", first["us"], all_["us"],
            manku["us"],
            manku["us"] / all_["us"], manku["us"] / first["us"], all_["preparing"], all_["queries timed"],
            manku["stored timed"],
        ])  # fmt: skip
    head = [
        "n", "batch", "chunks", "k F, A", "PSM F µs", "PSM A µs", "Manku 4 µs", "Manku / A", "Manku / F",
        "of A: choosing flips", "queries timed, PSM", "stored timed, Manku",
    ]  # fmt: skip
    lines = [
        "### Figure 10: batch mode, µs a query of the batch", "",
        "PSM: choosing the flips, sorting the batch, and for each chunk of F, as large as the batch, its 2^p",
        "offsets and the search, p = log2 of the batch; timed on at most three chunks and scaled to all.",
        "Manku: four tables over the whole batch, searched for the fingerprints of F. No reading of files,",
        "which is the same for both.", "",
    ]  # fmt: skip
    lines += table(head, rows)
    own = facts.get("batch project")
    if own:
        lines += [
            "This project's batch mode (`neardup.collection.matching`, one thread):",
            f"{millions(own['batch'])} queries in {millions(own['n'])} fingerprints in random order, which",
            "are read, grouped and searched; once:", "",
        ]  # fmt: skip
        shown = (("first", "F, .95 asked"), ("all", "A, .95 asked"), ("exact all", "A, exact"))
        lines += table(["", "µs", "recall"], [[t, own[k]["us"], own[k]["recall"]] for k, t in shown])
    return lines


def write(folder: Path) -> None:
    whole = json.loads((folder / "thesis.json").read_text())
    lines = [
        "# Chapter VII of the thesis on this machine", "",
        "- command: `python -m benchmarks.bench_thesis`",
        f"- machine: {whole['machine']['cpu']}",
        f"- date: {whole['machine']['date']}",
        f"- n: {whole['settings']['n']:,}",
        "- recall: .95, see the tables", "",
        "Written by `python -m benchmarks.bench_thesis`. CPU time (`time.process_time`) of one thread,",
        "medians of three interleaved repetitions. F: first match; A: all matches. A match differs in 1 to 3",
        "bits; queries whose exact value is stored are left out. k counts combinations flipped, the query's",
        "own prefix not among them. Exact systems were asserted to agree with each other and with a linear",
        "scan. Smaller n are parts of the largest, so fewer queries have a match there. Times and recalls",
        "are those of the first queries of a random order, as many as the tables say.", "",
    ]  # fmt: skip
    about = {**whole["machine"], **whole["settings"]}
    lines += table(["machine and settings", ""], [[k, str(v)] for k, v in about.items()])
    if whole.get("notes"):
        lines += ["Notes of this run:", "", *(f"- {note}" for note in whole["notes"]), ""]
    done = [name for name in ("uniform", "simulated") if name in whole and sizes(whole[name])]
    for name in done:
        facts = whole[name]
        title = (
            "Uniform fingerprints"
            if name == "uniform"
            else "Skewed fingerprints, as of real pages (“simulated”)"
        )
        lines += [f"## {title}", "", f"Queries: {facts['queries']}", ""]
        lines += (
            claims(facts)
            + recall_tables(facts)
            + table_tables(facts)
            + time_tables(facts)
            + batch_table(facts)
        )
    (folder / "thesis.md").write_text("\n".join(lines).rstrip() + "\n")
    thesis_plots.draw(folder, {name: whole[name] for name in done})
