"""A crawl that cannot start says why in one line, and one that is turned off says so once."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import scrapy
from scrapy.crawler import AsyncCrawlerProcess

class Quotes(scrapy.Spider):
    name = "quotes"
    start_urls = ["data:text/html,<p>hello"]

    def parse(self, response):
        self.logger.info("a page was crawled")

settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": "sqlite://", **SETTINGS}
process = AsyncCrawlerProcess(settings)
process.crawl(Quotes)
process.start()
"""


def run(tmp_path: Path, **settings: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("SETTINGS", repr(settings))],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"NEARDUP_ACTON": "drop"}, "did you mean NEARDUP_ACTION?"),
        ({"NEARDUP_GUARD": "perhaps"}, "NEARDUP_GUARD"),
        ({"NEARDUP_DATABASE_URL": "sqlite:////dev/null/all.db"}, "cannot be used"),
    ],
)
def test_crawl_that_cannot_start_says_why_in_one_line(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    log = run(tmp_path, LOG_LEVEL="INFO", **settings)
    (error,) = [line for line in log.splitlines() if "ERROR" in line]
    assert "[neardup.scrapy.refusal]" in error
    assert message in error
    assert "Traceback" not in log
    assert "a page was crawled" not in log


@pytest.mark.slow
def test_traceback_of_what_keeps_a_crawl_from_starting_is_at_debug(tmp_path: Path) -> None:
    assert run(tmp_path, NEARDUP_ACTON="drop").count("Traceback") == 1


@pytest.mark.slow
def test_crawl_without_neardup_says_so_once(tmp_path: Path) -> None:
    log = run(tmp_path, NEARDUP_ENABLED=False)
    assert log.count("Disabled") == 1
    assert "a page was crawled" in log
