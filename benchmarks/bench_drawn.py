"""What a crawl loses on sites that are drawn at random (``tests/support/sites/drawn.py``).

Run as ``python -m benchmarks.bench_drawn FIRST NUMBER [--actions default,drop] [--crawls 1] [--new-ids]
[--versions 3] [--beside] [--grows] [--keeps chain] [--set NAME=VALUE]``. FIRST is the seed of the first of so
many sites. Each site is served on loopback and crawled by ``scrapy crawl`` in a process of its own, so many
times on one database. The last crawl counts. A row tells how many pages say something of their own, and how
many of these were not fetched. It tells, too, of how many of them no item came. Below stand the sites where
something was lost.

``predict`` sets ``NEARDUP_PREDICT`` to ``drop``. ``items`` has whole pages in items, which are judged and
dropped. ``--new-ids`` gives each link of each answer a new session id, so that no site has an end.
``--versions`` serves each site in so many, as a manual is. With ``--beside``, no words and numbers that are
shown tell pages apart, but videos, files, data and the like. With ``--grows``, each crawl finds new, edited
and removed pages. With ``--keeps``, the spider keeps an item by itself until it has read the parts of its
page. ``--set`` gives each crawl a setting more.

The exit code is 1 if a crawl with the defaults lost a page, or did not end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.bench_sites import Case, run
from benchmarks.provenance import header
from tests.support.sites.drawn import Drawn
from tests.support.sites.spiders import BREADTH_FIRST

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.sites.processes import Outcome

ACTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "drop": {"NEARDUP_ACTION": "drop"},
    "skip": {"NEARDUP_ACTION": "skip"},
    "predict": {"NEARDUP_PREDICT": "drop"},
    "items": {"NEARDUP_ACTION": "drop", "NEARDUP_CONTENT_FIELD": "html"},
}

_MOST_PAGES = 10_000
"""Pages after which a crawl is called endless: the largest site has some 4,000."""


class Lost(NamedTuple):
    """What a crawl made of the pages of a site that say something of their own."""

    exist: int
    not_fetched: set[str]
    no_item: set[str]
    requests: int
    end: str


def crawled(make: Callable[[], Drawn], settings: dict[str, Any], crawls: int, folder: Path) -> Lost:
    site = make()
    for _ in range(1 + crawls):  # a site begins when it is served, and once more with each crawl
        site.begin()
    order = BREADTH_FIRST if site.breadth_first else {}
    case = Case(
        "drawn", make, crawls=crawls, spider="source" if "NEARDUP_CONTENT_FIELD" in settings else None
    )
    outcome = run(case, "default", folder, settings | order | {"CLOSESPIDER_PAGECOUNT": _MOST_PAGES})
    return _lost(site, outcome)


def _lost(site: Drawn, outcome: Outcome) -> Lost:
    with_item = {key for item in outcome.items for key in site.keys_of(item)}
    end = str(outcome.stats["finish_reason"])
    return Lost(
        len(site.keys), set(site.keys - outcome.found), set(site.keys - with_item), len(outcome.requests), end
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", type=int)
    parser.add_argument("number", type=int)
    parser.add_argument("--actions", default="default", help=f"of {', '.join(ACTIONS)}, separated by commas")
    parser.add_argument("--crawls", type=int, default=1, help="of each site, on one database")
    parser.add_argument("--new-ids", action="store_true", help="a new session id in each link")
    parser.add_argument("--versions", type=int, default=1, help="of each site, in a directory each")
    parser.add_argument("--beside", action="store_true", help="pages told apart by what is not shown as text")
    parser.add_argument("--grows", action="store_true", help="each crawl finds more, and other pages")
    parser.add_argument("--keeps", default="", choices=("chain", "together"), help="the order of parts")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting more")
    arguments = parser.parse_args()
    more = dict(setting.split("=", 1) for setting in arguments.set)
    actions = arguments.actions.split(",")
    seeds = range(arguments.first, arguments.first + arguments.number)
    command = f"python -m benchmarks.bench_drawn {arguments.first} {arguments.number}"
    command += f" --actions {arguments.actions} --crawls {arguments.crawls}"
    command += " --new-ids" if arguments.new_ids else ""
    command += f" --versions {arguments.versions}" if arguments.versions > 1 else ""
    command += " --beside" if arguments.beside else ""
    command += " --grows" if arguments.grows else ""
    command += f" --keeps {arguments.keeps}" if arguments.keeps else ""
    command += "".join(f" --set {setting}" for setting in arguments.set)
    print("# Sites that are drawn at random\n")
    print("\n".join(header(command, n=f"{len(seeds)} sites", recall="0.98 asked")))
    print("\n| seed | action | pages | not fetched | without an item | requests | end |")
    print("|---|---|---|---|---|---|---|")
    told, failed = [], False
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            make = partial(
                Drawn,
                seed,
                new_ids=arguments.new_ids,
                versions=arguments.versions,
                beside=arguments.beside,
                grows=arguments.grows,
                keeps=arguments.keeps,
            )
            for action in actions:
                lost = crawled(make, ACTIONS[action] | more, arguments.crawls, Path(folder))
                print(
                    f"| {seed} | {action} | {lost.exist:,} | {len(lost.not_fetched):,} |"
                    f" {len(lost.no_item):,} | {lost.requests:,} | {lost.end} |",
                    flush=True,
                )
                if lost.no_item or lost.end != "finished":
                    missing = ", ".join(sorted(lost.no_item)[:5])
                    told.append(f"{seed}, {action}: {missing} of {make().kinds}")
                    failed |= action == "default"
    for text in told:
        print(f"\n{text}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
