"""What a crawl saves by what it learns of URLs: sites of real pages, replayed without HTTP.

Run as ``python -m benchmarks.bench_budget --folder NAME=FOLDER[,PART…]… [--only WORDS]``. A
folder holds HTML files; its parts (default: all) are served as one host. Made sites of real text come in any
case. Each page is read once by neardup's own reader, and judged by a fresh detector in each crawl.

The policies are:

- ``no dedup``: follow everything in its order;
- ``nofollow``: leave out the links of duplicates;
- ``links last``: make the requests out of duplicates last, as the action ``defer`` does;
- ``learn``: make the requests last that are predicted to lead to copies, the likeliest copies at the end;
- ``learn, links last``: both in one order, as a crawl does by default;
- ``oracle``: make the requests last that lead to copies, by the truth.

Each is run breadth first and last in first out. ``no dedup`` and ``learn`` are run with 16 requests at once,
too. A page of a folder is unique if its exact resemblance to every unique page before it, in the order of
paths, is below .9. Of made pages the site says itself which are copies. Reported are unique pages lost at the
end and requests until 99 % of them were found. What was predicted at the first decision about each URL is
compared with the truth at that moment.
The exit code is 1 if ``learn`` lost a unique page of a site that ends.
"""

from __future__ import annotations

import argparse
import sys
import tracemalloc
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.provenance import header
from benchmarks.replay import DEFER, Folder, Made, Outcome, Policy, Replay, Site
from neardup.urls.learner import Learner
from tests.support.sites.cms import Cms, Forum, SessionPaths
from tests.support.sites.wiki import Wiki

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARE = 0.99
NO_DEDUP, LEARN = "no dedup", "learn"
POLICIES = (
    Policy(NO_DEDUP),
    Policy("nofollow", follows=False),
    Policy("links last", links_last=True),
    Policy(LEARN, learns=True),
    Policy("learn, links last", learns=True, links_last=True),
    Policy("oracle", knows=True),
)
DROP_ZONES = (0.95, 0.99)


class Cost(NamedTuple):
    """What learning costs a page: seconds of processor time to predict and to observe, and bytes kept."""

    predict: float
    observe: float
    kept: float


def sites(folders: list[str]) -> Iterator[Site]:
    yield from map(Folder.named, folders)
    yield Made("made CMS", Cms(), Cms.host)
    yield Made("made session paths", SessionPaths(), SessionPaths.host)
    yield Made("made forum", Forum(), Forum.host)
    yield Made("made wiki", Wiki(200), "http://wiki.example.com")


def unique_pages(site: Site, followed: Outcome) -> set[str]:
    """What there is to find: what a crawl that follows everything finds, or what an endless site names."""
    return set(site.site.keys) if isinstance(site, Made) else followed.stars


def replay(site: Site) -> tuple[list[Outcome], bool]:
    """Crawl a site by all policies and print its table; the outcomes of ``learn``, and whether it lost
    nothing.
    """
    learned: list[Outcome] = []
    held = True
    unique: set[str] = set()
    for breadth_first in (True, False):
        for at_once in (1, 16):
            base: int | None = None
            for policy in POLICIES:
                if at_once > 1 and policy.name not in {NO_DEDUP, LEARN}:
                    continue
                outcome = Replay(site, policy, breadth_first=breadth_first, at_once=at_once).run()
                unique = unique or unique_pages(site, outcome)
                if not learned and policy.name == NO_DEDUP:
                    cap = f", at most {site.cap:,} requests" if site.cap else ""
                    print(f"\n## {site.name} ({len(unique):,} unique pages{cap})\n")
                    print("| order | at once | policy | requests | unique lost | until 99 % | of no dedup |")
                    print("|---|---|---|---|---|---|---|")
                until, lost = outcome.until(SHARE, len(unique)), len(unique - outcome.stars)
                if policy.name == NO_DEDUP:
                    base = until
                said = f"{until:,}" if until else "never"
                # An endless site that is never found has the cap to be compared with.
                of = f"{until / (base or site.cap):.2f}" if until and (base or site.cap) else "–"
                print(
                    f"| {'breadth first' if breadth_first else 'LIFO'} | {at_once} | {policy.name} |"
                    f" {len(outcome.found):,} | {lost:,} | {said} | {of} |",
                    flush=True,
                )
                if policy.name == LEARN:
                    learned.append(outcome)
                    held &= bool(site.cap) or not lost
    return learned, held


def told(site: Site, learned: list[Outcome]) -> str:
    """A row on what was predicted of a site, over all orders."""
    decisions = [decision for outcome in learned for decision in outcome.decisions]
    requests = sum(len(outcome.found) for outcome in learned)
    wrongly = sum(outcome.deferred_wrongly for outcome in learned)
    cells = [f"{wrongly / requests:.3f}"]
    for least in (DEFER, *DROP_ZONES):
        found = [decision.known for decision in decisions if decision.probability >= least]
        cells.append(f"{sum(found) / len(found):.3f} ({len(found):,})" if found else "–")
    spent = cost(learned[0].observed)
    asked = sum(outcome.asked for outcome in learned) / requests
    cells += [
        f"{spent.predict * 1e6:.0f}",
        f"{spent.observe * 1e6:.0f}",
        f"{asked:.1f}",
        f"{spent.kept:,.0f}",
    ]
    return f"| {site.name} | {' | '.join(cells)} |"


def cost(observed: list[tuple[str, int]]) -> Cost:
    """What the pages of one crawl cost, each predicted and then observed."""
    learner, predicting, observing = Learner(), 0.0, 0.0
    for url, cluster in observed:
        started = process_time()
        learner.predict(url)
        between = process_time()
        learner.observe(url, cluster)
        predicting += between - started
        observing += process_time() - between
    tracemalloc.start()
    learner = Learner()
    for url, cluster in observed:
        learner.observe(url, cluster)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    pages = len(observed)
    return Cost(predicting / pages, observing / pages, kept / pages)


def calibration(learned: dict[str, list[Outcome]]) -> Iterator[str]:
    """Rows of what was predicted and what was so, by tenths; the sites one by one."""
    for name, outcomes in learned.items():
        cells = []
        for tenth in range(10):
            found = [
                decision
                for outcome in outcomes
                for decision in outcome.decisions
                if tenth <= decision.probability * 10 < tenth + 1
                or (tenth == 9 and decision.probability == 1)
            ]
            mean = sum(decision.probability for decision in found) / max(1, len(found))
            known = sum(decision.known for decision in found) / max(1, len(found))
            cells.append(f"{mean:.2f} → {known:.2f} ({len(found):,})" if len(found) >= 100 else "–")
        yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", action="append", default=[], help="NAME=FOLDER or NAME=FOLDER,PART,PART")
    parser.add_argument("--only", default="", help="sites whose names contain this")
    arguments = parser.parse_args()
    print("# The budget: requests until the unique pages are found\n")
    command = "python -m benchmarks.bench_budget --folder NAME=FOLDER,PART…"
    print("\n".join(header(command, n="4 crawls a site and policy, see the tables", recall="0.98 asked")))
    learned: dict[str, list[Outcome]] = {}
    rows, failed = [], []
    for site in sites(arguments.folder):
        if arguments.only not in site.name:
            continue
        learned[site.name], held = replay(site)
        rows.append(told(site, learned[site.name]))
        if not held:
            failed.append(site.name)
    print("\n## What was predicted, and what it cost\n")
    print("Shares are of the first decisions about URLs, with their numbers. Times are processor time.\n")
    print(
        "| site | deferred wrongly | copies at p ≥ .5 | at p ≥ .95 | at p ≥ .99 | µs to predict |"
        " µs to observe | asked a page | bytes a page |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    print("\n## Calibration: predicted → observed, tenths with 100 decisions\n")
    print(f"| site | {' | '.join(f'.{tenth}' for tenth in range(10))} |")
    print("|---" * 11 + "|")
    print("\n".join(calibration(learned)))
    if failed:
        print(f"\nlearning lost unique pages of: {', '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
