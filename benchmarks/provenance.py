"""What a result file says at its top, so that ``benchmarks.pages`` can list it, and where its text goes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path


def header(command: str, *, n: str, recall: str) -> list[str]:
    """Lines on how, where and when something was measured: the machine is this one, the day today (UTC)."""
    cpu = next(
        (line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")),
        "model name: not known",
    )
    return [
        f"- command: `{command}`",
        f"- machine: {cpu.partition(':')[2].strip()}",
        f"- date: {datetime.now(UTC).date().isoformat()}",
        f"- n: {n}",
        f"- recall: {recall}",
    ]


def give(text: str, output: Path | None) -> None:
    """Write tables to the file that was asked for; print them if none was."""
    if output is None:
        print(text)
    else:
        output.write_text(text, encoding="utf-8")
