"""A site that writes its URLs in two ways, crawled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from neardup.cli.main import main
from neardup.store.store import Store
from neardup.urls.rules import Slot, State
from tests.support.crawling import crawl
from tests.support.sites import spiders
from tests.support.sites.processes import Outcome
from tests.support.sites.served import serve_site
from tests.support.sites.two_ways import TwoWays
from tests.support.stores import rules_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.parametrize("predict", ["defer", "drop"])
def test_one_way_waits_and_nothing_is_lost(
    predict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = TwoWays()
    database = f"sqlite:///{tmp_path}/neardup.db"
    settings = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": database,
        "NEARDUP_PREDICT": predict,
    }
    with serve_site(site) as served:
        stats = crawl(spiders.FollowSpider, settings, start=served.start).stats
        done = Outcome(list(served.log), [], stats)

    assert done.found == site.keys
    assert stats.get("neardup/predicted/dropped", 0) == 0
    assert done.requests_until(len(site.keys)) < 0.75 * len(done.requests)
    with Store.open(database, scheme=None) as store:
        found = {rule: one for rule, one in rules_of(store).items() if rule.slot is Slot.SUBSTITUTION}
    (whole,) = (rule for rule in found if not rule.context)
    assert whole.value == "story.php?id={} = story_{}.html"
    assert found[whole].learned.state is State.ACTIVE
    assert sum(one.effect.deferred for one in found.values()) > 50
    assert main(["rules", "--database", database, "--format", "json"]) == 0
    says = {rule["says"] for rule in json.loads(capsys.readouterr().out)["rules"]}
    assert f"two ways of writing one URL: {whole.value}" in says
    assert main(["rules", "export", "--database", database]) == 0
    assert f"substitution {whole.value}" in capsys.readouterr().err
