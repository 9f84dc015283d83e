"""The only reader of ``NEARDUP_*`` settings: all of them become one frozen value, checked at the door."""

from __future__ import annotations

import difflib
import json
import math
import operator
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings
from scrapy.utils.project import data_path

from neardup.detection import endless
from neardup.detection.detector import DetectorOptions
from neardup.errors import ConfigurationError
from neardup.store.age import parse_age
from neardup.web import html_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

_Choice = TypeVar("_Choice", bound=StrEnum)

DATABASE_URL = "NEARDUP_DATABASE_URL"
"""Name of the setting, and of the environment variable that stands in for it."""

_FIELD_OF_DETECTOR_OPTION = {
    "features": "NEARDUP_FEATURES",
    "content": "NEARDUP_CONTENT",
    "selectors": "NEARDUP_SELECTORS",
    "alt_texts": "NEARDUP_ALT_TEXTS",
    "sketch_size": "NEARDUP_SKETCH_SIZE",
    "verify": "NEARDUP_VERIFY",
    "max_distance": "NEARDUP_MAX_DISTANCE",
    "scope": "NEARDUP_SCOPE",
    "recall": "NEARDUP_RECALL",
    "recall_sample": "NEARDUP_RECALL_SAMPLE",
    "index": "NEARDUP_INDEX",
    "min_features": "NEARDUP_MIN_FEATURES",
    "follow_per_cluster": "NEARDUP_FOLLOW_PER_CLUSTER",
    "max_page_bytes": "NEARDUP_MAX_PAGE_BYTES",
    "max_tags": "NEARDUP_MAX_TAGS",
    "max_attributes": "NEARDUP_MAX_ATTRIBUTES",
    "max_words": "NEARDUP_MAX_WORDS",
}

SETTINGS = (
    "NEARDUP_ENABLED",
    "NEARDUP_ACTION",
    "NEARDUP_PREDICT",
    "NEARDUP_LOSS_BUDGET",
    "NEARDUP_ENDLESS_AFTER",
    DATABASE_URL,
    "NEARDUP_WHEN_UNAVAILABLE",
    "NEARDUP_SNAPSHOT",
    "NEARDUP_SHARE",
    "NEARDUP_SHARE_INTERVAL",
    "NEARDUP_MAX_AGE",
    "NEARDUP_HISTORY",
    "NEARDUP_KEEP_TEXT",
    "NEARDUP_REPORT",
    "NEARDUP_LINKS",
    "NEARDUP_GUARD",
    *_FIELD_OF_DETECTOR_OPTION.values(),
    "NEARDUP_CONTENT_FIELD",
    "NEARDUP_URL_FIELD",
    "NEARDUP_VERDICT_FIELD",
)


class Action(StrEnum):
    """What is done about a duplicate; each does what the one before it does, and more."""

    RECORD = "record"
    """It is only remembered."""
    DEFER = "defer"
    """Its links are followed last; its items pass."""
    NOFOLLOW = "nofollow"
    """Those of its links that another page of the crawl has too are not followed."""
    DROP = "drop"
    """Its items are dropped, if the crawl has had a page of its cluster already."""
    SKIP = "skip"
    """Its callback is not called, if the crawl has had a page of its cluster already."""

    @property
    def withholds(self) -> bool:
        """Whether a duplicate's links that another page has too are withheld."""
        return self not in {Action.RECORD, Action.DEFER}

    @property
    def drops(self) -> bool:
        """Whether the items of duplicates are dropped."""
        return self in {Action.DROP, Action.SKIP}


class Predict(StrEnum):
    """What is done about a request whose URL says that its page is a copy; each does what the one before it
    does, and more.
    """

    OFF = "off"
    """Nothing is learned of URLs."""
    RECORD = "record"
    """It is counted, and whether the prediction was right."""
    DEFER = "defer"
    """It is made last."""
    DROP = "drop"
    """It is not made if the prediction is nearly sure."""


class Share(StrEnum):
    """When other crawls see the pages of a crawl."""

    LIVE = "live"
    """As soon as they are stored."""
    FINISHED = "finished"
    """When all of them are stored, at the end of the crawl."""


class WhenUnavailable(StrEnum):
    """What becomes of a crawl whose database stays away."""

    CLOSE = "close"
    """It is closed."""
    CONTINUE = "continue"
    """It goes on, and its rows wait in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All settings of neardup. The manual (docs/reference/settings.md) describes each."""

    enabled: bool
    action: Action
    predict: Predict
    loss_budget: float | None
    endless_after: int
    database_url: str
    snapshot: bool
    when_unavailable: WhenUnavailable
    share: Share
    share_interval: float
    max_age: timedelta | None
    history: bool
    keep_text: bool
    report: Path | None
    links: bool
    detector: DetectorOptions
    content_field: str | None
    url_field: str
    verdict_field: str | None

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Options:
        """Read and check all settings; ConfigurationError names the setting, its value and what
        is allowed.
        """
        _refuse_unknown(settings)
        return cls(
            enabled=is_enabled(settings),
            action=_choice(settings, "NEARDUP_ACTION", Action, Action.DEFER),
            predict=_choice(settings, "NEARDUP_PREDICT", Predict, Predict.DEFER),
            loss_budget=_loss_budget(settings),
            endless_after=_count(settings, "NEARDUP_ENDLESS_AFTER", endless.LIMIT),
            database_url=database_url(settings),
            snapshot=_switch(settings, "NEARDUP_SNAPSHOT", default=True),
            when_unavailable=_choice(
                settings, "NEARDUP_WHEN_UNAVAILABLE", WhenUnavailable, WhenUnavailable.CLOSE
            ),
            share=_choice(settings, "NEARDUP_SHARE", Share, Share.LIVE),
            share_interval=_seconds(settings, "NEARDUP_SHARE_INTERVAL", 5.0),
            max_age=_max_age(settings),
            history=_switch(settings, "NEARDUP_HISTORY", default=False),
            keep_text=_switch(settings, "NEARDUP_KEEP_TEXT", default=False),
            report=_report(settings),
            links=_links(settings),
            detector=_detector_options(settings),
            content_field=settings.get("NEARDUP_CONTENT_FIELD") or None,
            url_field=settings.get("NEARDUP_URL_FIELD") or "url",
            verdict_field=settings.get("NEARDUP_VERDICT_FIELD") or None,
        )

    @property
    def recorded(self) -> dict[str, object]:
        """The settings that decide verdicts, as kept with the crawl."""
        return {
            "NEARDUP_ACTION": self.action.value,
            "NEARDUP_PREDICT": self.predict.value,
            "NEARDUP_LOSS_BUDGET": self.loss_budget,
            "NEARDUP_ENDLESS_AFTER": self.endless_after,
            "NEARDUP_MAX_AGE": None if self.max_age is None else str(self.max_age),
            **{name: getattr(self.detector, field) for field, name in _FIELD_OF_DETECTOR_OPTION.items()},
        }


def is_enabled(settings: BaseSettings) -> bool:
    """NEARDUP_ENABLED, true unless set."""
    return _switch(settings, "NEARDUP_ENABLED", default=True)


def is_guarded(settings: BaseSettings) -> bool:
    """NEARDUP_GUARD, false unless set."""
    return _switch(settings, "NEARDUP_GUARD", default=False)


def _switch(settings: BaseSettings, name: str, *, default: bool) -> bool:
    try:
        return settings.getbool(name, default)
    except (TypeError, ValueError) as exc:
        raise ConfigurationError(f"{name} must be True or False, not {settings.get(name)!r}") from exc


def _links(settings: BaseSettings) -> bool:
    links = _switch(settings, "NEARDUP_LINKS", default=False)
    if links and settings.get("NEARDUP_CONTENT_FIELD"):
        raise ConfigurationError(
            "NEARDUP_LINKS is True and NEARDUP_CONTENT_FIELD is set: items have no links to store; unset one"
        )
    return links


def database_url(settings: BaseSettings) -> str:
    """NEARDUP_DATABASE_URL, else the environment variable of that name, else SQLite in the project's data
    folder.
    """
    url = settings.get(DATABASE_URL) or os.environ.get(DATABASE_URL)
    return url or f"sqlite:///{data_folder() / 'neardup.db'}"


def data_folder() -> Path:
    """Where a project's data are kept, whether it is there yet or not."""
    try:
        try:
            return Path(data_path("neardup")).absolute()
        except FileExistsError:  # Scrapy makes the folder above, and another crawl has made it meanwhile
            return Path(data_path("neardup")).absolute()
    except NotConfigured:  # the settings are those of a project, but the current folder is none
        return Path(".scrapy", "neardup").absolute()


def _refuse_unknown(settings: BaseSettings) -> None:
    """A misspelt name would otherwise be a setting that silently does nothing."""
    for name in settings:
        if str(name).startswith("NEARDUP_") and name not in SETTINGS:
            close = difflib.get_close_matches(str(name), SETTINGS, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(SETTINGS)}"
            raise ConfigurationError(f"{name} is not a setting of neardup{hint}")


def _max_age(settings: BaseSettings) -> timedelta | None:
    value = settings.get("NEARDUP_MAX_AGE")
    if not value:
        return None
    try:
        return parse_age(str(value))
    except ValueError as exc:
        raise ConfigurationError(f"NEARDUP_MAX_AGE: {exc}") from exc


def _report(settings: BaseSettings) -> Path | None:
    value = settings.get("NEARDUP_REPORT")
    if not value:
        return None
    if not isinstance(value, str | os.PathLike):
        raise ConfigurationError(f"NEARDUP_REPORT must be the name of a file, not {value!r}")
    path = Path(value).absolute()
    if not path.parent.is_dir() or path.is_dir():
        raise ConfigurationError(f"NEARDUP_REPORT must name a file in a folder that is there, not {value!r}")
    html_report.check("NEARDUP_REPORT")
    return path


def _choice(settings: BaseSettings, name: str, choices: type[_Choice], default: _Choice) -> _Choice:
    value = settings.get(name, default)
    try:
        return choices(value)
    except ValueError as exc:
        raise ConfigurationError(f"{name} must be one of {', '.join(choices)}, not {value!r}") from exc


def _seconds(settings: BaseSettings, name: str, default: float) -> float:
    value = settings.get(name, default)
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0.0 <= seconds < math.inf:
        raise ConfigurationError(f"{name} must be a number of seconds, 0 or more, not {value!r}")
    return seconds


def _loss_budget(settings: BaseSettings) -> float | None:
    value = settings.get("NEARDUP_LOSS_BUDGET")
    if value is None:
        return None
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = math.nan
    if not 0.0 < share < 1.0:
        raise ConfigurationError(
            "NEARDUP_LOSS_BUDGET must be a share of the unique pages, between 0 and 1, such as 0.01; or None,"
            f" to make all requests; not {value!r}"
        )
    return share


def _count(settings: BaseSettings, name: str, default: int) -> int:
    value = settings.get(name, default)
    try:
        count = _whole_number(value)
    except (TypeError, ValueError):
        count = -1
    if count < 0:
        raise ConfigurationError(f"{name} must be a whole number, 0 or more, not {value!r}")
    return count


def _whole_number(value: Any) -> int:
    """Settings from the command line are strings."""
    return operator.index(int(value) if isinstance(value, str) else value)


def _selectors(value: Any) -> dict[str, Any]:
    return dict(json.loads(value) if isinstance(value, str) else value)


def _yes_or_no(value: Any) -> bool:
    return BaseSettings({"": value}).getbool("")


_KINDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "features": (str, "a name"),
    "content": (str, "a name"),
    "selectors": (_selectors, "a dict (or JSON) of hosts and their selectors"),
    "alt_texts": (_yes_or_no, "True or False"),
    "verify": (float, "a number"),
    "scope": (str, "a name"),
    "recall": (float, "a number"),
    "recall_sample": (float, "a number"),
    "index": (str, "a name"),
}


def _detector_options(settings: BaseSettings) -> DetectorOptions:
    """Values by name; the defaults and the ranges are those of :class:`DetectorOptions`."""
    values: dict[str, Any] = {}
    for field, name in _FIELD_OF_DETECTOR_OPTION.items():
        value = settings.get(name)
        if value is None:
            continue
        read, kind = _KINDS.get(field, (_whole_number, "a whole number"))
        try:
            values[field] = read(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as exc:
            raise ConfigurationError(f"{name} must be {kind}, not {value!r}") from exc
    try:
        return DetectorOptions(**values)
    except ConfigurationError as exc:
        first, _, rest = str(exc).partition(" ")
        field = exc.option or first
        name = _FIELD_OF_DETECTOR_OPTION.get(field, field)
        raise ConfigurationError(f"{name} {rest}" if field == first else f"{name}: {exc}") from exc
