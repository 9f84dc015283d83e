"""The view of thresholds: what the store would hold with others, and applied when somebody says so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neardup.collection import rethreshold
from neardup.collection.rethreshold import Outcome
from neardup.store import removal
from neardup.store.page_report import store_sizes
from neardup.web.site import Answer, BadRequest

if TYPE_CHECKING:
    from neardup.detection.detector import DetectorOptions
    from neardup.web.site import Asked, Site

MOST_PAGES = 50_000
"""Of a store that a request judges anew: some seconds."""


def form(site: Site, asked: Asked) -> Answer:
    return _answer(site.options, None, applied=False)


def preview(site: Site, asked: Asked) -> Answer:
    """What would change; nothing is stored unless the form says so."""
    options = _options(site, asked)
    applied = asked.form.get("apply") == "yes"
    with site.store.looking() as connection:
        pages = store_sizes(connection)["simhash_values"]
        running = removal.running(connection) if applied else []
    if pages > MOST_PAGES:
        raise BadRequest(f"{pages:,} pages take too long for a page; neardup rethreshold judges them")
    if running:
        raise BadRequest(f"crawl {running[0]} seems to be running; wait for its end")
    outcome = rethreshold.rethreshold(site.store, options, site.rule, lambda _: None)
    if applied:
        rethreshold.apply(site.store, outcome)
    return _answer(options, outcome, applied=applied)


def _options(site: Site, asked: Asked) -> DetectorOptions:
    given: dict[str, Any] = {}
    for name, kind in (("max_distance", int), ("verify", float), ("min_features", int)):
        text = str(asked.form.get(name) or "").strip()
        if not text:
            continue
        try:
            given[name] = kind(text)
        except ValueError as exc:
            raise BadRequest(f"{name} must be a number, not {text!r:.80}") from exc
    return replace(site.options, **given)


def _answer(options: DetectorOptions, outcome: Outcome | None, *, applied: bool) -> Answer:
    rule = options.make_rule(options.make_reader().features)
    sums = None
    if outcome is not None:
        hidden = {"relations", "canonical", "too_short"}
        sums = {name: getattr(outcome, name) for name in Outcome.__dataclass_fields__ if name not in hidden}
    return Answer(
        template="thresholds.html",
        title="Thresholds",
        data={
            "max_distance": rule.max_distance,
            "verify": rule.verify,
            "min_features": options.min_features,
            "outcome": sums,
            "applied": applied,
        },
    )
