"""Two workers of scrapy-redis with one queue in redis and one database, and in which order requests came out
of that queue.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

from neardup.scrapy.links import DEFERRED

if TYPE_CHECKING:
    from tests.support.sites.company_runs import Ground
    from tests.support.sites.served import Served

REDIS_URL = os.environ.get("NEARDUP_TEST_REDIS_URL", "redis://127.0.0.1:6379")

_HANG_SECONDS = 300


def redis_cli(*command: str) -> str:
    """What redis answers. Raises CalledProcessError if it is away, FileNotFoundError if ``redis-cli`` is not
    installed.
    """
    done = subprocess.run(
        ["redis-cli", "-u", REDIS_URL, *command], check=True, capture_output=True, text=True
    )
    return done.stdout


def crawl_with_two_workers(ground: Ground, served: Served, database: str) -> list[dict[str, Any]]:
    """Crawl a site; what came out of redis, in order. ``database``: that of the add-on, an empty one."""
    key = f"neardup_company_{secrets.token_hex(4)}"
    keys = [f"{key}:{name}" for name in ("starts", "requests", "dupefilter", "requests:told")]
    ground.set(
        SPIDER_MODULES=["tests.support.sites.company_redis"],
        REDIS_URL=REDIS_URL,
        REDIS_START_URLS_KEY=keys[0],
        SCHEDULER_QUEUE_KEY=keys[1],
        SCHEDULER_DUPEFILTER_KEY=keys[2],
    )
    if ground.addon:
        upgrade = [ground.python, "-m", "neardup", "db", "upgrade", "--database", database]
        subprocess.run(upgrade, check=True, capture_output=True, cwd=ground.folder)
        ground.set(NEARDUP_DATABASE_URL=database)
    redis_cli("lpush", keys[0], json.dumps({"url": served.start}))
    try:
        workers = [ground.start("queued") for _ in range(2)]
        ended = [worker.wait(_HANG_SECONDS) for worker in workers]
        popped = [json.loads(line) for line in redis_cli("lrange", keys[3], "0", "-1").splitlines() if line]
    finally:
        redis_cli("del", *keys)
    ground.outcome.shown = f"the workers ended with {ended}; {_order(popped)}"
    return popped


def is_deferred(popped: dict[str, Any]) -> bool:
    return int(popped["score"]) > DEFERRED // 2


def _order(popped: list[dict[str, Any]]) -> str:
    deferred = [one for one in popped if is_deferred(one)]
    early = sum(one["ordinary"] > 0 for one in deferred)
    changed = sum(one["priority"] != -one["score"] for one in popped)
    marked = sum(one["cluster"] is not None for one in deferred)
    predicted = sum(one["predicted"] for one in deferred)
    scores = Counter(int(one["score"]) for one in popped)
    return (
        f"{len(popped)} requests out of redis, {len(deferred)} of them deferred"
        f" ({marked} with their cluster, {predicted} predicted to be copies);"
        f" {early} came while an ordinary one was waiting; {changed} with another priority than their score;"
        f" by score: {dict(sorted(scores.items()))}"
    )
