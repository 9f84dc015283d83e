"""The page of benchmarks in the manual, from the result files.

``python -m benchmarks.pages`` writes ``docs/benchmarks/index.md``, with a row for each file in
``benchmarks/results/``. A row has the command, machine, date, n and recall that the file names at its top.
``--check`` writes nothing and ends with 1 if the page is not what it would write.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks" / "index.md"
FACTS = ("command", "machine", "date", "n", "recall")

_INTRODUCTION = """\
# Benchmarks

<!-- Written by python -m benchmarks.pages from the files in benchmarks/results: change those. -->

A result file has the tables of one benchmark.
The file names the command that makes the tables again from folders of your own.
The date is the day on which the figures were noted. Figures of different machines do not compare.

## All results
"""


def facts(path: Path) -> dict[str, str]:
    """What a result file says at its top, as lines ``- name: value``; with its ``title``. ValueError names
    what is missing.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    found = {"title": lines[0].removeprefix("# ")}
    for line in lines[1:30]:
        match = re.fullmatch(r"- (\w+): (.+)", line)
        if match and match[1] in FACTS:
            found.setdefault(match[1], match[2])
    missing = [name for name in FACTS if name not in found]
    if missing or not lines[0].startswith("# "):
        raise ValueError(f"{path}: no title or no {', '.join(missing)} at the top")
    return found


def page() -> str:
    """The page, as Markdown."""
    parts = [_INTRODUCTION]
    for path in sorted(RESULTS.glob("*.md")):
        of = facts(path)
        parts.append(f"### [{of['title']}](../../benchmarks/results/{path.name})\n")
        parts.extend(f"- {name}: {of[name]}" for name in FACTS)
        parts.append("")
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        return int(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
