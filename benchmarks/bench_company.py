"""The add-on with its defaults beside other parts of Scrapy's world: the same pages and items as without it.

Run as ``python -m benchmarks.bench_company [--only WORDS] [--python PATH ...]``. Each case crawls one site,
served on loopback, with Scrapy's own settings and those of the plugin, without the add-on and with it. The
table has these columns:

- the different pages without and with the add-on; of two crawls or two spiders, the pages got in all;
- the items without and with the add-on;
- what was lost;
- the lines of the logs at WARNING or above that mention neardup;
- the errors logged without and with the add-on;
- the links that were deferred.

Below the table are those lines, and what a case shows.

``--python`` names interpreters of other environments (other versions of Python or Scrapy, other plugins),
with which all cases are run as well. A case whose plugin an environment does not have is reported as "not
installed". A killed crawl must get at least as many different pages in both runs as without the add-on. The
pages themselves may differ, because another page is the last before the kill. The case of redis needs a redis
at 127.0.0.1:6379, or ``NEARDUP_TEST_REDIS_URL``, and PostgreSQL as the tests do; the one of playwright
Debian's chromium.

The exit code is 1 if a case lost something, logged neardup or more errors than without.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.databases import new_database
from tests.support.sites.company import Company
from tests.support.sites.company_runs import Ground, Outcome, Signalling
from tests.support.sites.company_workers import crawl_with_two_workers
from tests.support.sites.served import Served, serve_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHROMIUM = "/usr/bin/chromium"

_STRUCK_AT = 90
_MONITOR = re.compile(r"INFO: \[Spidermon\] \S.*\.\.\. (\w+)")
_VERSIONS = (
    "import json, platform; from importlib import metadata\n"
    "found = {d.metadata['Name'].lower(): d.version for d in metadata.distributions()}\n"
    "print(json.dumps({'python': platform.python_version(), **found}))"
)


def once(ground: Ground, served: Served, spider: str = "company", crawls: int = 1) -> None:
    for _ in range(crawls):
        ground.crawl(spider, start=served.start)


def interrupted(ground: Ground, served: Served, how: signal.Signals) -> None:
    ground.interrupted(served, "company", _STRUCK_AT, how)


def together(ground: Ground, served: Served) -> None:
    ground.run(["tests.support.sites.company_together", served.start]).wait(300)


def ends(outcome: Outcome) -> str:
    """Why each crawl ended that came to an end, and after how many responses."""
    return ", ".join(
        f"{stats['finish_reason']} after {stats.get('response_received_count', 0)}"
        for stats in outcome.stats
        if "finish_reason" in stats
    )


def monitors(outcome: Outcome) -> str:
    """What the monitors of spidermon said."""
    said = Counter(_MONITOR.findall(outcome.log))
    return f"monitors: {dict(said)}; {outcome.stat('spidermon/validation/items')} items validated"


def redis(ground: Ground, served: Served) -> None:
    with new_database("postgresql", ground.folder) as database:
        crawl_with_two_workers(ground, served, database)


@dataclass
class Case:
    """A case: its plugin (a distribution's name), what it needs besides, and how it crawls.

    ``inside``: the spider logs in.
    """

    name: str
    run: Callable[[Ground, Served], None] = once
    plugin: str | None = None
    needs: Callable[[], str | None] = lambda: None
    addons: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    site: Callable[[], Company] = Company
    killed: bool = False
    shows: Callable[[Outcome], str] = attrgetter("shown")


def _no_chromium() -> str | None:
    return None if Path(CHROMIUM).exists() else f"not installed: {CHROMIUM}"


CASES = [
    Case("Scrapy alone"),
    Case("JOBDIR, SIGINT, resumed", partial(interrupted, how=signal.SIGINT), site=Signalling, shows=ends),
    Case(
        "JOBDIR, SIGKILL, resumed",
        partial(interrupted, how=signal.SIGKILL),
        site=Signalling,
        killed=True,
        shows=ends,
    ),
    Case("HTTPCACHE, two crawls", partial(once, crawls=2), settings={"HTTPCACHE_ENABLED": True}),
    Case("two spiders, one AsyncCrawlerProcess", together),
    Case("no reactor", settings={"TWISTED_REACTOR_ENABLED": False, "TELNETCONSOLE_ENABLED": False}),
    Case(
        "a reactor that is not asyncio's",
        settings={"TWISTED_REACTOR": "twisted.internet.epollreactor.EPollReactor"},
    ),
    Case("CrawlSpider", partial(once, spider="rules")),
    Case("SitemapSpider", partial(once, spider="map")),
    Case("XMLFeedSpider", partial(once, spider="feed")),
    Case("FormRequest, cookies", partial(once, spider="members")),
    Case("scrapy-redis, two workers, PostgreSQL", redis, plugin="scrapy-redis"),
    Case(
        "scrapy-playwright",
        partial(once, spider="browser"),
        plugin="scrapy-playwright",
        needs=_no_chromium,
        settings={
            "DOWNLOAD_HANDLERS": dict.fromkeys(
                ("http", "https"), "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
            ),
            "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": CHROMIUM, "args": ["--no-sandbox"]},
        },
        site=partial(Company, ("clang-13", "clang-14"), products=6),
    ),
    Case(
        "scrapy-poet",
        partial(once, spider="poet"),
        plugin="scrapy-poet",
        addons={"scrapy_poet.Addon": 300},
        settings={"SPIDER_MODULES": ["tests.support.sites.company_poet"]},
    ),
    Case(
        "scrapy-deltafetch, two crawls",
        partial(once, crawls=2),
        plugin="scrapy-deltafetch",
        settings={"DELTAFETCH_ENABLED": True, "SPIDER_MIDDLEWARES": {"scrapy_deltafetch.DeltaFetch": 100}},
    ),
    Case(
        "scrapy-deltafetch made asynchronous, two crawls",
        partial(once, crawls=2),
        plugin="scrapy-deltafetch",
        settings={
            "DELTAFETCH_ENABLED": True,
            "SPIDER_MIDDLEWARES": {"tests.support.sites.company_delta.AsynchronousDeltaFetch": 100},
        },
    ),
    Case(
        "spidermon",
        plugin="spidermon",
        shows=monitors,
        settings={
            "LOG_LEVEL": "INFO",
            "EXTENSIONS": {
                "tests.support.sites.journal.Journal": 0,
                "spidermon.contrib.scrapy.extensions.Spidermon": 500,
            },
            "ITEM_PIPELINES": {"spidermon.contrib.scrapy.pipelines.ItemValidationPipeline": 800},
            "SPIDERMON_ENABLED": True,
            "SPIDERMON_SPIDER_CLOSE_MONITORS": ["spidermon.contrib.scrapy.monitors.SpiderCloseMonitorSuite"],
            "SPIDERMON_MIN_ITEMS": 190,
            "SPIDERMON_MAX_DOWNLOADER_EXCEPTIONS": 0,
            "SPIDERMON_MIN_SUCCESSFUL_REQUESTS": 200,
            "SPIDERMON_MAX_REQUESTS_ALLOWED": 215,
            "SPIDERMON_MAX_ERRORS": 0,
            "SPIDERMON_MAX_WARNINGS": 0,
            "SPIDERMON_MAX_ITEM_VALIDATION_ERRORS": 0,
            "SPIDERMON_VALIDATION_SCHEMAS": [{"type": "object", "required": ["path", "title"]}],
            "SPIDERMON_ADD_FIELD_COVERAGE": True,
            "SPIDERMON_FIELD_COVERAGE_RULES": {"dict/path": 1.0},
        },
    ),
]


def versions(python: str) -> dict[str, str]:
    """Versions of Python and of all distributions of an environment, by name."""
    done = subprocess.run([python, "-c", _VERSIONS], check=True, capture_output=True, text=True)
    found: dict[str, str] = json.loads(done.stdout)
    return {name.replace("_", "-"): version for name, version in found.items()}


def run(case: Case, python: str, folder: Path, *, addon: bool) -> Outcome:
    """One mode of a case in a fresh project on a fresh site."""
    ground = Ground(Path(tempfile.mkdtemp(dir=folder)), addon, python, case.addons, case.settings)
    site = case.site()
    site.keys = site.public | site.inside
    with serve_site(site) as served:
        case.run(ground, served)
    return ground.gather()


def lost(case: Case, without: Outcome, with_addon: Outcome) -> tuple[int, int]:
    """Pages and items."""
    if case.killed:
        return max(0, len(without.unique) - len(with_addon.unique)), max(
            0, without.items.total() - with_addon.items.total()
        )
    pages = Counter(without.pages) - Counter(with_addon.pages)
    return pages.total(), (without.items - with_addon.items).total()


def compare(case: Case, python: str, have: dict[str, str], folder: Path) -> tuple[bool, list[str]]:
    """Run a case, print its row; whether all is well, and what is to be said below the table."""
    used = {"Python": have["python"], "Scrapy": have["scrapy"]}
    if case.plugin:
        used[case.plugin] = have.get(case.plugin, "not installed")
    named = ", ".join(f"{name} {version}" for name, version in used.items())
    if "TWISTED_REACTOR_ENABLED" in case.settings and have["scrapy"].startswith("2.14."):
        used["without a reactor"] = "not installed"  # it came with Scrapy 2.15
    missing = case.needs() or ("not installed" if "not installed" in used.values() else None)
    if missing is None:
        try:
            without = run(case, python, folder, addon=False)
            with_addon = run(case, python, folder, addon=True)
        except pytest.skip.Exception as exc:
            missing = str(exc)
        else:
            if not without.pages:  # the plugin is not made for this Scrapy
                missing = f"gets nothing without the add-on: {without.last_error}"
    if missing is not None:
        print(f"| {case.name} | {named} | {missing} |" + " |" * 7, flush=True)
        return True, []
    pages, items = lost(case, without, with_addon)
    lines = with_addon.neardup_lines
    print(
        f"| {case.name} | {named} | {_pages(without)} | {_pages(with_addon)} | {without.items.total()} |"
        f" {with_addon.items.total()} | {pages} + {items} | {len(lines)} | {without.errors} /"
        f" {with_addon.errors} |"
        f" {with_addon.stat('neardup/links_deferred')} |",
        flush=True,
    )
    notes = [f"{case.name} ({named}): {line}" for line in lines[:5]]
    for mode, one in (("without", without), ("with", with_addon)):
        if case.shows(one):
            notes.append(f"{case.name} ({named}), {mode}: {case.shows(one)}")
    good = pages == items == 0 and not lines and with_addon.errors <= without.errors
    return good, notes


def _pages(outcome: Outcome) -> str:
    unique, every = len(outcome.unique), len(outcome.pages)
    return f"{unique}" if unique == every else f"{unique} ({every} in all)"


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="company-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--python", action="append", default=[], help="another environment's interpreter")
    arguments = parser.parse_args()
    print(
        "| case | versions | pages without | with | items without | with | lost, pages + items | neardup in"
        " log |"
        " errors without / with | links deferred |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    failed, notes = [], []
    with _folder() as folder:
        for python in arguments.python or [sys.executable]:
            have = versions(python)
            for case in CASES:
                if arguments.only.lower() in case.name.lower():
                    good, said = compare(case, python, have, folder)
                    failed += [] if good else [case.name]
                    notes += said
    print("\n" + "\n".join(f"* {note}" for note in notes))
    if failed:
        print(f"\nnot as without the add-on: {'; '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
