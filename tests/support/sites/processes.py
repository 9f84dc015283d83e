"""``scrapy`` as people run it: processes of their own, in a folder that is a project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured

from tests.support.places import ROOT

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from tests.support.sites.served import Request, Served


_LOG_SHOWN = 3_000
"""Characters of the log of a command that failed."""


class StatsFile:
    """Writes the stats of a crawl to the file named by the environment variable ``SITES_STATS``."""

    def __init__(self, crawler: Crawler, file: Path) -> None:
        self._crawler = crawler
        self._file = file

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        name = os.environ.get("SITES_STATS")
        if not name:
            raise NotConfigured("SITES_STATS is not set")
        extension = cls(crawler, Path(name))
        crawler.signals.connect(extension.write, signal=signals.engine_stopped)
        return extension

    def write(self) -> None:
        self._file.write_text(json.dumps(self._crawler.stats.get_stats(), default=str))


@dataclass
class Outcome:
    """What came of a crawl: what the site was asked for, in order, the items, the stats and the log."""

    requests: list[Request]
    items: list[Any]
    stats: dict[str, Any] = field(default_factory=dict)
    log: str = ""

    @property
    def found(self) -> set[str]:
        """The keys of the pages that were got."""
        return {request.key for request in self.requests if request.key is not None}

    def requests_until(self, number: int) -> int:
        """How many requests were made until so many pages were found; LookupError if they were not."""
        seen: set[str] = set()
        for made, request in enumerate(self.requests, 1):
            if request.key is not None:
                seen.add(request.key)
            if len(seen) >= number:
                return made
        raise LookupError(f"only {len(seen)} of {number} pages were found")


def make_project(folder: Path, *, addon: bool) -> None:
    """Make a folder the project of :mod:`tests.support.sites.spiders`."""
    folder.mkdir(exist_ok=True)
    module = "tests.support.sites.settings_addon" if addon else "tests.support.sites.settings"
    (folder / "scrapy.cfg").write_text(f"[settings]\ndefault = {module}\n")


def scrapy(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``scrapy`` in a project; what it prints is kept. Raises CalledProcessError, with its log as a note,
    if it fails.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    inherited = {name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"}
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=folder,
        env={**inherited, "PYTHONPATH": path, **environment},
        check=False,
        capture_output=True,
        text=True,
    )
    try:
        done.check_returncode()
    except subprocess.CalledProcessError as exc:
        exc.add_note(done.stderr[-_LOG_SHOWN:])
        raise
    return done


def crawl_process(served: Served, project: Path, settings: dict[str, Any] | None = None) -> Outcome:
    """``scrapy crawl`` of a site by its spider, from its start, in a project."""
    site = served.site
    served.begin()
    items, stats = project / "items.jsonl", project / "stats.json"
    pairs = dict(settings or {})
    if site.most_requests:
        pairs["CLOSESPIDER_PAGECOUNT"] = site.most_requests
    arguments = ["-a", f"start={served.start}"]
    for name, value in site.arguments.items():
        arguments += ["-a", f"{name}={value}"]
    for name, value in pairs.items():
        arguments += ["-s", f"{name}={value}"]
    done = scrapy(project, "crawl", site.spider, *arguments, "-O", str(items), SITES_STATS=str(stats))
    lines = items.read_text().splitlines()
    return Outcome(
        list(served.log), [json.loads(line) for line in lines], json.loads(stats.read_text()), done.stderr
    )
