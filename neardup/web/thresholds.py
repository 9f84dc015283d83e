"""The view of thresholds: what the store would hold with others, and applied when somebody says so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.web.pages import to
from neardup.web.site import Answer, BadRequest, Redirect
from neardup.web.trials import Thresholds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from neardup.web.site import Asked, Site
    from neardup.web.trials import Trial

_PATIENCE = 0.2
"""Seconds that a form waits for its outcome: small stores are judged by then."""

_LOOK_AGAIN = {"Refresh": "2"}


class Dial(NamedTuple):
    """A threshold as the form has it, twice: as a field for ``least`` to ``most``, and as a slider, which
    goes to ``slider_most``.
    """

    name: str
    label: str
    kind: Callable[[str], Any]
    least: float
    most: float | None
    slider_most: float
    step: float

    def on_slider(self, value: float) -> float:
        """Where the slider stands for a value."""
        return min(value, self.slider_most)


DIALS = (
    Dial("max_distance", "Bits that may differ", int, 0, 16, 16, 1),
    Dial("verify", "Least resemblance", float, 0, 1, 1, 0.01),
    Dial("min_features", "Least number of words", int, 1, None, 200, 1),
)


def form(site: Site, asked: Asked) -> Answer:
    """The thresholds that the query names, with what has been found of them."""
    thresholds = _thresholds(site, asked.query)
    trial = site.trials.of(thresholds)
    if trial is not None and trial.failure is not None:
        raise trial.failure
    running = trial is not None and (trial.judged is None or trial.applying)
    return Answer(
        template="thresholds.html",
        title="Thresholds",
        data={
            **thresholds._asdict(),
            "judging": _progress(trial) if trial is not None and running else None,
            "outcome": None if trial is None or trial.judged is None else trial.judged.outcome,
            "applied": trial is not None and trial.applied,
        },
        headers=_LOOK_AGAIN if running else {},
        values={"dials": DIALS},
    )


def try_out(site: Site, asked: Asked) -> Redirect:
    """Have the store judged by other thresholds; nothing is stored unless the form says so.

    The form may also say that what is being judged shall end.
    """
    thresholds = _thresholds(site, asked.form)
    if asked.form.get("cancel") == "yes":
        site.trials.stop()
        return Redirect(to("/thresholds", **thresholds._asdict()))
    options = replace(site.options, **thresholds._asdict())
    site.trials.start(thresholds, options, apply=asked.form.get("apply") == "yes")
    site.trials.wait(_PATIENCE)
    return Redirect(to("/thresholds", **thresholds._asdict()))


def _thresholds(site: Site, given: Mapping[str, Any]) -> Thresholds:
    """Those that are given; the others are those of the settings. BadRequest: they make no sense."""
    settings = Thresholds(site.rule.max_distance, site.rule.verify, site.options.min_features)
    values = {dial.name: _value(dial, given) for dial in DIALS}
    return settings._replace(**{name: value for name, value in values.items() if value is not None})


def _value(dial: Dial, given: Mapping[str, Any]) -> Any:
    """What the field says, or else a slider that somebody has moved; None if neither is given."""
    field, slider, was = (_number(dial, given, dial.name + end) for end in ("", "_slider", "_was"))
    if slider is None or was is None or field != was or slider == dial.on_slider(was):
        return field
    return slider


def _number(dial: Dial, given: Mapping[str, Any], name: str) -> Any:
    text = str(given.get(name) or "").strip()
    if not text:
        return None
    try:
        value = dial.kind(text)
    except ValueError as exc:
        raise BadRequest(f"{dial.name} must be a number, not {text!r:.80}") from exc
    if not dial.least <= value <= (dial.most or 10**9):
        raise BadRequest(f"{dial.name} must be at least {dial.least} and at most {dial.most}, not {value}")
    return value


def _progress(trial: Trial) -> dict[str, Any]:
    return {"pages": trial.pages_judged, "of": trial.pages, "applying": trial.applying}
