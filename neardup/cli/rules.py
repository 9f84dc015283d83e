"""The rules by which crawls judged, from the settings that are stored with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from neardup.detection.detector import DetectorOptions
from neardup.detection.rule import VERIFY, Rule
from neardup.errors import ConfigurationError
from neardup.fingerprint.hamming import FINGERPRINT_BITS
from neardup.store import stats
from neardup.text.features import Features

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.store.store import Store

_FIELDS = (
    ("features", "NEARDUP_FEATURES"),
    ("verify", "NEARDUP_VERIFY"),
    ("max_distance", "NEARDUP_MAX_DISTANCE"),
)


def stored_rule(store: Store) -> Rule:
    """The rule by which the newest crawl judged; what it did not record is as by default."""
    with store.reading() as connection:
        settings: dict[str, Any] = json.loads(stats.newest_settings(connection))
    try:
        return _rule(settings)
    except ConfigurationError as exc:
        raise ConfigurationError(f"the rule of the newest crawl cannot be told: {exc}") from exc


def distances_by_crawl(crawls: Iterable[tuple[int, str]]) -> dict[int, int]:
    """The largest distance of each crawl's rule, by ids and settings; of one whose rule cannot be told, any
    distance.
    """
    known: dict[str, int] = {}
    distances = {}
    for crawl_id, stored in crawls:
        if stored not in known:
            known[stored] = _distance(json.loads(stored))
        distances[crawl_id] = known[stored]
    return distances


def _distance(settings: dict[str, Any]) -> int:
    try:
        return _rule(settings).max_distance
    except ConfigurationError:
        return FINGERPRINT_BITS


def _rule(settings: dict[str, Any]) -> Rule:
    given = {field: settings[name] for field, name in _FIELDS if settings.get(name) is not None}
    if "max_distance" in given:  # the features are not needed, nor their table
        return Rule(given["max_distance"], given.get("verify", VERIFY))
    options = DetectorOptions(**given)
    return options.make_rule(Features(options.features))
