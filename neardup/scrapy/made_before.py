"""Requests in the queue of a stopped crawl that are not to be made, because copies of them were made before.

A request that waits may come forward: a copy of it is put before it. The next run of the job would make both.
So the last run leaves a file in the job directory. The file is gone as soon as it is read. A killed crawl
leaves none, because its queue is another by then: such a page is requested twice, and none is lost.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.utils.job import job_dir

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

FILE = "neardup.made-before"
"""The file's name in the job directory."""


@dataclass(slots=True)
class MadeBefore:
    """Requests by their keys (:func:`neardup.scrapy.links.request_key`).

    ``released`` are deferred links, a copy of which was made when their pages turned out to be no duplicates.
    ``outdated`` counts copies of a request by the band that they wait in.
    """

    released: set[int] = field(default_factory=set)
    outdated: Counter[tuple[int, float]] = field(default_factory=Counter)


def keep(crawler: Crawler, made: MadeBefore) -> None:
    """Keep what the next run has to know, if the crawl has a job directory."""
    path = _path(crawler)
    if path is None or not (made.released or made.outdated):
        return
    outdated = [(key, band, number) for (key, band), number in made.outdated.items()]
    try:
        path.write_text(json.dumps({"released": [*made.released], "outdated": outdated}), "utf-8")
    except OSError as exc:
        with suppress(OSError):
            path.unlink()
        logger.warning(
            "neardup: %(path)s cannot be written, so the next run makes some requests twice: %(reason)s",
            {"path": path, "reason": exc.strerror or exc},
            extra={"spider": crawler.spider},
        )


def take(crawler: Crawler) -> MadeBefore:
    """What the last run has kept, which is forgotten by that."""
    path = _path(crawler)
    if path is None or not path.is_file():
        return MadeBefore()
    text = path.read_text("utf-8")
    path.unlink()
    try:
        kept = json.loads(text)
    except ValueError:  # not written to its end: as after a kill
        return MadeBefore()
    outdated = Counter({(key, band): number for key, band, number in kept["outdated"]})
    return MadeBefore(set(kept["released"]), outdated)


def _path(crawler: Crawler) -> Path | None:
    directory = job_dir(crawler.settings)
    return Path(directory, FILE) if directory else None
