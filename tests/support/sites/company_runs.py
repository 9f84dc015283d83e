"""Crawls of the site of :mod:`tests.support.sites.company` in processes of their own, paused, killed and
resumed, and what they told.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.places import ROOT
from tests.support.sites.company import Company
from tests.support.sites.journal import VARIABLE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.sites.served import Answer, Ask, Served

_HANG_SECONDS = 300

_LEVEL = re.compile(r"\] (?:ERROR|CRITICAL): ")
_COMPLAINT = re.compile(
    r"(?:WARNING|ERROR|CRITICAL): .*neardup|\[neardup\S*\] (?:WARNING|ERROR|CRITICAL)"
    r"|File \".*neardup/|^neardup\.\w|neardup.*Warning: "
)
_ERROR = re.compile(r"[\w.]+(?:Error|Exception|Outdated): ")


@dataclass
class Outcome:
    """What came of the crawls of a case, all together."""

    pages: list[str] = field(default_factory=list)
    """What was got with status 200, as often as it was, in order."""
    items: Counter[str] = field(default_factory=Counter)
    stats: list[dict[str, Any]] = field(default_factory=list)
    log: str = ""
    shown: str = ""
    """What a case has to show besides."""

    @property
    def unique(self) -> set[str]:
        return set(self.pages)

    @property
    def errors(self) -> int:
        """Counted in the logs, where there are any: the stats know nothing of those at the end of a crawl."""
        return max(len(_LEVEL.findall(self.log)), self.stat("log_count/ERROR"))

    @property
    def neardup_lines(self) -> list[str]:
        """Those lines of the logs at WARNING and above, of tracebacks, and of Python's own warnings that
        mention neardup.
        """
        return [line for line in self.log.splitlines() if _COMPLAINT.search(line)]

    @property
    def last_error(self) -> str:
        """The last line of the logs that looks like that of a traceback."""
        return next(
            (line for line in reversed(self.log.splitlines()) if _ERROR.match(line)), "no error logged"
        )

    def stat(self, name: str) -> int:
        return sum(int(stats.get(name, 0)) for stats in self.stats)


class Signalling(Company):
    """The site, which sends a process a signal instead of the answer to its so manieth request."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._asked = 0
        self._at = 0
        self._signal = signal.SIGINT
        self._process: subprocess.Popen[bytes] | None = None
        self._has_process = threading.Event()

    def strike(self, at: int, how: signal.Signals) -> None:
        """Before the process starts."""
        self._asked, self._at, self._signal = 0, at, how
        self._has_process.clear()

    def aim(self, process: subprocess.Popen[bytes]) -> None:
        """Tell which process it is."""
        self._process = process
        self._has_process.set()

    def answer(self, ask: Ask) -> Answer:
        self._asked += 1
        if self._asked == self._at:
            self._has_process.wait()
            assert self._process is not None
            self._process.send_signal(self._signal)
        return super().answer(ask)


@dataclass
class Ground:
    """A project folder in which crawls run, by one interpreter, with the add-on or without, and their
    outcome.
    """

    folder: Path
    addon: bool
    python: str = sys.executable
    addons: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome)
    _logs: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)

    def set(self, **settings: Any) -> None:
        """Have the crawls from now on in these settings, too."""
        self.settings = {**self.settings, **settings}

    def start(self, spider: str, **arguments: str) -> subprocess.Popen[bytes]:
        """Begin a crawl by ``scrapy crawl``."""
        command = ["scrapy", "crawl", spider]
        for name, value in arguments.items():
            command += ["-a", f"{name}={value}"]
        return self.run(command)

    def run(self, module: list[str]) -> subprocess.Popen[bytes]:
        """Begin ``python -m`` of a module, with arguments."""
        self._logs += 1
        self._write_settings()
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "PYTHONWARNINGS": "default",
            VARIABLE: str(self.folder / f"journal-{self._logs}.jsonl"),
        }
        with (self.folder / f"log-{self._logs}.txt").open("wb") as log:
            return subprocess.Popen(
                [self.python, "-m", *module], cwd=self.folder, env=environment, stdout=log, stderr=log
            )

    def _write_settings(self) -> None:
        settings = {
            "SPIDER_MODULES": ["tests.support.sites.company_spiders"],
            "EXTENSIONS": {"tests.support.sites.journal.Journal": 0},
            "ADDONS": {**self.addons, **({"neardup.Addon": 500} if self.addon else {})},
            "LOG_LEVEL": "WARNING",
            **self.settings,
        }
        lines = (f"{name} = {value!r}" for name, value in settings.items())
        (self.folder / "company_settings.py").write_text("\n".join(lines))
        (self.folder / "scrapy.cfg").write_text("[settings]\ndefault = company_settings\n")

    def crawl(self, spider: str, **arguments: str) -> None:
        """Crawl to the end."""
        self.start(spider, **arguments).wait(_HANG_SECONDS)

    def interrupted(self, served: Served, spider: str, at: int, how: signal.Signals) -> None:
        """Crawl with a job directory; send a signal at a request; crawl on."""
        site = served.site
        assert isinstance(site, Signalling)
        site.strike(at, how)
        self.set(JOBDIR="job", CONCURRENT_REQUESTS=1)
        process = self.start(spider, start=served.start)
        site.aim(process)
        process.wait(_HANG_SECONDS)
        self.crawl(spider, start=served.start)

    def gather(self) -> Outcome:
        """The outcome of all crawls so far."""
        outcome = self.outcome
        for number in range(1, self._logs + 1):
            outcome.log += (self.folder / f"log-{number}.txt").read_text(errors="replace")
            journal = self.folder / f"journal-{number}.jsonl"
            for line in journal.read_text().splitlines() if journal.exists() else []:
                told = json.loads(line)
                if told.get("status") == 200:
                    outcome.pages.append(told["page"])
                elif "item" in told:
                    outcome.items[json.dumps(told["item"], sort_keys=True)] += 1
                elif "stats" in told:
                    outcome.stats.append(told["stats"])
        return outcome
