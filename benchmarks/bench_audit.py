"""What crawls with a loss budget lose and save: whole sites over HTTP, on loopback.

Run as ``python -m benchmarks.bench_audit [--corpora FOLDER] [--budgets .01,.05] [--runs N] [--only WORDS]``.
The sites are the mirrors of ``benchmarks.bench_mirrors`` and made ones. Each is crawled by ``scrapy crawl``
in a process of its own: once without a budget, then so many times with each. Each crawl draws its own sample.

The truth about the mirrors is that of ``benchmarks.bench_mirrors``; of made pages the site says itself which
are copies. A loss is the share of the unique pages of the crawl without a budget that is missing. The exit
code is 1 if more than one crawl in twenty lost more than its budget.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.bench_mirrors import Mirror, keyed, mirrors, shingles, stars
from benchmarks.provenance import header
from tests.support.sites.cms import Cms, Forum
from tests.support.sites.processes import Outcome, crawl_process, make_project
from tests.support.sites.served import MadeSite, serve_site
from tests.support.sites.wiki import Wiki

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEAD = (
    "\n| site | unique pages | requests of all | budget | crawls | ended early | median of all requests |"
    " median loss | highest loss | over the budget |\n" + "|---" * 10 + "|"
)
"""Of the table of losses, whose rows :func:`told` makes."""

ALLOWED = 1 / 20
"""Share of the crawls that may lose more than their budgets."""


def sites(corpora: Path, folder: Path, only: str) -> Iterator[tuple[str, MadeSite]]:
    made: dict[str, MadeSite] = {"made CMS": Cms(), "made forum": Forum(), "made wiki": Wiki(200)}
    for name, site in made.items():
        if only in name:
            yield name, site
    for name, unpacked in mirrors(corpora, "", folder):
        if only in name:
            yield name, Mirror(unpacked)


def told(
    site: str,
    unique: int,
    of_all: int,
    budget: float,
    *,
    requests: Sequence[int],
    lost: Sequence[float],
    ended: int,
) -> str:
    """The row of some crawls with one budget. ``requests`` and ``lost``: of each; ``of_all``: without one."""
    return (
        f"| {site} | {unique:,} | {of_all:,} | {budget:g} | {len(lost)} | {ended} |"
        f" {median(requests) / of_all:.2f} | {median(lost):.4f} | {max(lost):.4f} | {over(lost, budget)} |"
    )


def over(lost: Sequence[float], budget: float) -> int:
    """How many crawls lost more than their budget."""
    return sum(share > budget for share in lost)


def options(description: str | None) -> argparse.ArgumentParser:
    """What both benchmarks of losses take."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budgets", default="0.01,0.05", type=_shares)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="", help="sites whose names contain this")
    return parser


def _shares(text: str) -> list[float]:
    return [float(share) for share in text.split(",")]


def crawl(site: MadeSite, work: Path, settings: dict[str, object]) -> Outcome:
    project = Path(tempfile.mkdtemp(dir=work))
    make_project(project, addon=True)
    with serve_site(site) as served:
        return crawl_process(served, project, settings)


def compare(name: str, site: MadeSite, work: Path, budgets: list[float], runs: int) -> int:
    """Crawl a site with all budgets and print its rows; how many crawls lost more than they may."""
    everything = crawl(site, work, {})
    star = {path: path for path in everything.found}
    if isinstance(site, Mirror):
        star = stars({path: shingles(site.files[path]) for path in sorted(everything.found)})
    unique = keyed(everything, star).found
    too_many = 0
    for budget in budgets:
        crawls = [crawl(site, work, {"NEARDUP_LOSS_BUDGET": budget}) for _ in range(runs)]
        lost = [len(unique - keyed(outcome, star).found) / len(unique) for outcome in crawls]
        requests = [len(outcome.requests) for outcome in crawls]
        ended = sum(outcome.stats["finish_reason"] == "neardup_loss_budget" for outcome in crawls)
        too_many += over(lost, budget)
        row = told(
            name, len(unique), len(everything.requests), budget, requests=requests, lost=lost, ended=ended
        )
        print(row, flush=True)
    return too_many


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--corpora", type=Path, default=Path("corpora"), help="folder of the archives")
    arguments = parser.parse_args()
    print("# The loss budget: crawls that end before all requests are made\n")
    command = "python -m benchmarks.bench_audit --corpora FOLDER"
    print("\n".join(header(command, n=f"{arguments.runs} crawls a site and budget", recall="0.98 asked")))
    print(HEAD)
    too_many = crawls = 0
    with tempfile.TemporaryDirectory() as name:
        for title, site in sites(arguments.corpora, Path(name), arguments.only):
            too_many += compare(title, site, Path(name), arguments.budgets, arguments.runs)
            crawls += arguments.runs * len(arguments.budgets)
    sys.exit(1 if too_many > ALLOWED * crawls else 0)


if __name__ == "__main__":
    main()
