"""What a crawl loses with the add-on, and how soon it finds what is new: made sites of real text, at full
size.

Run as ``python -m benchmarks.bench_sites [--only WORDS] [--quick] [--actions
default,record,nofollow,drop,skip]``. Each site is served on loopback and crawled by ``scrapy crawl`` in a
process of its own. The order is Scrapy's default (depth first) or breadth first. A site is crawled without
the add-on, with its defaults, and with the other actions that are asked for. ``neardup`` is that of the same
tree. A row tells what exists, what was got, and what was lost against the crawl without the add-on. A row
also tells the requests until 90, 95 and 99 % of the unique pages were found. Endless sites have a cap on
requests; "finished" says that the crawl ended by itself. Sites of several crawls (new session ids, moved,
known before) show the last crawl.

The exit code is 1 if a crawl with the defaults lost a page or an item, or did not end. The rows of
scrapy-redis need its package and ``redis-server``; no test depends on them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import neardup
from tests.support.sites.dead_links import DeadLinks
from tests.support.sites.endless import Agenda, BeyondTheLast, Calendar, clock, time_taken
from tests.support.sites.processes import Outcome, crawl_process, make_project, scrapy
from tests.support.sites.served import MadeSite, Served, serve_site
from tests.support.sites.sessions import AlikeSessions, Pages, SessionIds
from tests.support.sites.shop import CARDS, PAGINGS, Shop
from tests.support.sites.spiders import BREADTH_FIRST
from tests.support.sites.stations import Archive, Stations
from tests.support.sites.two_ways import TwoWays
from tests.support.sites.walls import Captcha, Chained, ErrorPages, LoginWall
from tests.support.sites.wiki import Wiki

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHARES = (0.90, 0.95, 0.99)


@dataclass
class Case:
    """A site, and how it is crawled: so many times on one database, the last time on another port if it
    ``moves``.

    ``before``: what else is done in the project before the last crawl with the add-on.
    """

    name: str
    make: Callable[[], MadeSite]
    crawls: int = 1
    moves: bool = False
    spider: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    before: Callable[[Served, Path], None] | None = None
    redis: bool = False


@dataclass
class Result:
    """What one mode brought."""

    outcome: Outcome
    lost_pages: int
    lost_items: int

    @property
    def end(self) -> str:
        return str(self.outcome.stats["finish_reason"])


def look_at_pages(served: Served, project: Path) -> None:
    """Scrapy's commands, as somebody uses them before a crawl."""
    urls = [f"{served.url}/page/{number}?utm_source=mail" for number in (1, 5, 6)]
    scrapy(project, "fetch", urls[0], "--spider", "follow")
    scrapy(project, "shell", urls[1], "-c", "response.status")
    scrapy(project, "parse", urls[2], "--spider", "follow", "--depth", "2")
    scrapy(project, "check", "follow")


def collect_titles(served: Served, project: Path) -> None:
    """A spider that yields items and no requests, on three pages by other URLs."""
    for path in ("/", "/page/1", "/page/2"):
        scrapy(project, "crawl", "title", "-a", f"start={served.url}{path}?utm_source=mail")


def cases(*, quick: bool) -> list[Case]:
    size = 10 if quick else 1  # divides what is large
    verdict = {"NEARDUP_VERDICT_FIELD": "verdict"}
    listed = [
        Case("session ids, second crawl", SessionIds, crawls=2),
        Case("session ids, third crawl", SessionIds, crawls=3),
        Case("moved to another port", Pages, crawls=2, moves=True),
        Case("after fetch, shell, parse and check", Pages, before=look_at_pages),
        Case("after a spider of items alone", Pages, before=collect_titles),
        Case("captcha on the first answer", Captcha),
        Case("chained items, cb_kwargs", Chained),
        Case("chained items, meta", partial(Chained, carry="meta")),
        Case("chained items, 500", partial(Chained, 500 // size)),
        Case("requests when idle, moved", Pages, crawls=2, moves=True, spider="idle"),
        Case("scrapy-redis, moved", Pages, crawls=2, moves=True, spider="redis", redis=True),
        Case("error pages, recrawl", ErrorPages, crawls=2),
        *(
            Case(f"items: {kind}", partial(_with_items, kind), spider="items", settings=verdict)
            for kind in ("FrozenDataclass", "FrozenAttrs", "FrozenPydantic", "ValidatingPydantic")
        ),
        Case("login wall that opens", LoginWall),
        Case("login wall, second crawl", LoginWall, crawls=2),
        Case("login wall that never opens", partial(LoginWall, opens=False)),
        Case("wiki with views and revisions", partial(Wiki, 200 // size)),
        Case("wiki, second crawl", partial(Wiki, 200 // size), crawls=2),
        *(
            Case(f"dead links, answered with {answer}", partial(DeadLinks, missing=answer))
            for answer in ("404", "notice", "echo", "home")
        ),
        Case("URLs written in two ways", TwoWays),
        Case("short ways below a list", partial(Stations, 3_000 // size)),
        Case("endless calendar of months", Calendar),
        Case("endless calendar of months and days", partial(Calendar, days=True)),
        Case("endless calendar of months and days, with a clock", partial(Calendar, days=True, foot=clock)),
        Case("the same, with the time it took", partial(Calendar, days=True, foot=time_taken)),
        Case("endless agenda of years, weeks and days", Agenda),
        Case("archive of numbers", partial(Archive, 10, 10, 12, 5)),
        Case("endless session ids", partial(_endless, partial(SessionIds, 20, endless=True))),
        Case("alike pages, endless session ids", partial(_endless, partial(AlikeSessions, 400))),
        Case(
            "alike pages in a row, endless ids", partial(_endless, partial(AlikeSessions, 60, in_a_row=True))
        ),
        Case("endless ?page= beyond the last", BeyondTheLast),
    ]
    for paging in PAGINGS:
        for cards in CARDS:
            for boilerplate in (300, 1_000, 2_000):
                shop = partial(Shop, 2_000 // size, cards=cards, boilerplate=boilerplate, paging=paging)
                listed.append(Case(f"shop: {paging}, {cards}, {boilerplate} words", shop))
    for alike in ("names", "numbers"):
        for products in (50, 500):
            shop = partial(Shop, products, alike=alike)
            listed.append(Case(f"shop of {products} alike products: {alike}", shop))
    return listed


def _with_items(kind: str) -> MadeSite:
    site = Pages()
    site.arguments = {"kind": kind}
    return site


def _endless(make: Callable[[], MadeSite]) -> MadeSite:
    """A site that hands out new session ids forever, as far as a crawl is to go on."""
    site = make()
    site.most_requests = 10_000
    return site


def run(case: Case, action: str | None, folder: Path, settings: dict[str, Any]) -> Outcome:
    """The last crawl of a case in a fresh project; ``action``: None is without the add-on, "default" sets
    none.
    """
    project = Path(tempfile.mkdtemp(dir=folder))
    make_project(project, addon=action is not None)
    pairs = settings | {name: value for name, value in case.settings.items() if action is not None}
    if action not in {None, "default"}:
        pairs["NEARDUP_ACTION"] = action
    site = case.make()
    if case.spider:
        site.spider = case.spider
    with own_redis() if case.redis else _nothing() as redis_settings:
        outcome = _crawls(case, site, project, pairs | redis_settings)
    shutil.rmtree(project)
    return outcome


def _crawls(case: Case, site: MadeSite, project: Path, settings: dict[str, Any]) -> Outcome:
    with serve_site(site) as served:
        for _ in range(case.crawls - 1):
            crawl_process(served, project, settings)
        if not case.moves:
            if case.before:
                case.before(served, project)
            return crawl_process(served, project, settings)
        with serve_site(site) as moved:  # while the first server keeps its port
            return crawl_process(moved, project, settings)


@contextmanager
def _nothing() -> Iterator[dict[str, Any]]:
    yield {}


@contextmanager
def own_redis() -> Iterator[dict[str, Any]]:
    """A redis of its own on a free port; gives the settings of spiders that use it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    server = subprocess.Popen(
        ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
        stdout=subprocess.DEVNULL,
    )
    try:
        while not _listens(int(port)):
            time.sleep(0.05)
        yield {
            "REDIS_URL": f"redis://127.0.0.1:{port}",
            "SPIDER_MODULES": "tests.support.sites.redis_spiders",
        }
    finally:
        server.terminate()
        server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def able(case: Case) -> bool:
    """Whether all is there that a case needs."""
    return not case.redis or (
        shutil.which("redis-server") is not None and find_spec("scrapy_redis") is not None
    )


def lost_items(without: Outcome, with_addon: Outcome, *, verdict: bool) -> int:
    """Items of the one that the other has not; as often as they come."""

    def counted(outcome: Outcome) -> Counter[str]:
        texts = []
        for item in outcome.items:
            if verdict:
                item.pop("verdict", None)
            texts.append(json.dumps(item, sort_keys=True))
        return Counter(texts)

    return (counted(without) - counted(with_addon)).total()


def requests_until(outcome: Outcome, keys: frozenset[str]) -> list[str]:
    """The requests that were made until each of the shares of the keys was found."""
    seen: set[str] = set()
    made: dict[float, int] = {}
    for number, request in enumerate(outcome.requests, 1):
        if request.key in keys:
            seen.add(request.key)
        for share in SHARES:
            if len(seen) >= share * len(keys):
                made.setdefault(share, number)
    return [f"{made[share]:,}" if share in made else "-" for share in SHARES]


def compare(case: Case, actions: list[str], folder: Path, settings: dict[str, Any]) -> bool:
    """Crawl a site in all modes and print its table; whether the defaults lost nothing."""
    site = case.make()
    without = run(case, None, folder, settings)
    endless = site.most_requests > 0
    if not endless and without.found != site.keys:
        print(f"\n### {case.name}: without the add-on, {len(site.keys - without.found)} pages were not found")
        return False
    exist = f"exist: {len(site.keys):,} pages, {'endless' if endless else f'{len(without.items):,}'} items"
    cap = f"; cap {site.most_requests:,} requests" if endless else ""
    print(f"\n### {case.name} ({exist}{cap})\n")
    print("| mode | pages | lost | items | lost | requests until 90 % | 95 % | 99 % | all | end |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    held = True
    for mode in [None, *actions]:
        outcome = without if mode is None else run(case, mode, folder, settings)
        lost = len(site.keys - outcome.found)
        items = lost_items(without, outcome, verdict="NEARDUP_VERDICT_FIELD" in case.settings)
        if endless:  # how many copies were seen is not what matters
            items = 0
        print(
            f"| {mode or 'without'} | {len(outcome.found):,} | {lost:,} | {len(outcome.items):,} |"
            f" {items:,} |"
            f" {' | '.join(requests_until(outcome, site.keys))} | {len(outcome.requests):,} |"
            f" {outcome.stats['finish_reason']} |",
            flush=True,
        )
        if mode == "default":
            held = lost == items == 0 and outcome.stats["finish_reason"] == "finished"
    return held


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="sites whose names contain this")
    parser.add_argument("--quick", action="store_true", help="shops and wikis of a tenth of the size")
    parser.add_argument("--actions", default="default", help="separated by commas; default sets none")
    parser.add_argument("--order", choices=("depth", "breadth"), default="depth")
    arguments = parser.parse_args()
    settings = BREADTH_FIRST if arguments.order == "breadth" else {}
    print(f"neardup of {Path(neardup.__file__).parent}, {arguments.order} first")
    failed, unable = [], []
    with tempfile.TemporaryDirectory() as name:
        for case in cases(quick=arguments.quick):
            if arguments.only not in case.name:
                continue
            if not able(case):
                unable.append(case.name)
            elif not compare(case, arguments.actions.split(","), Path(name), settings):
                failed.append(case.name)
    if unable:
        print(f"\nnot run, scrapy-redis or redis-server is missing: {', '.join(unable)}")
    if failed:
        print(f"\nthe defaults lost something, or did not end: {'; '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
