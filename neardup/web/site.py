"""What the views of the live page share, and what they are asked and answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neardup.errors import NeardupError
from neardup.store.types import storable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from neardup.detection.detector import DetectorOptions
    from neardup.detection.rule import Rule
    from neardup.fingerprint.reader import Reader, Response
    from neardup.store.store import Store
    from neardup.web.checking import KnownPages
    from neardup.web.counting import Figures
    from neardup.web.security import Secret
    from neardup.web.trials import Trials

    class Fetch(Protocol):
        """Gets the page of a URL, or of one that is stored; NeardupError says why there is none."""

        def __call__(self, page: str, /, *, as_stored: bool = ...) -> Response: ...


_MOST_DIGITS = 18
"""Of a number that any database takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One store on the live page.

    ``fetch`` gets the page of a URL that nobody vouches for. ``person`` is who
    decides, as the rows say. ``settings`` are recorded with a page that somebody stores.
    """

    store: Store
    rule: Rule
    figures: Figures
    trials: Trials
    known: KnownPages
    secret: Secret
    options: DetectorOptions
    reader: Reader
    fetch: Fetch
    person: str
    settings: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: what stands in its path, in its query, and in its form."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, Any] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """A field of the query as it would be stored, without spaces around it; None if it is empty."""
        return storable(self.query.get(name) or "").strip() or None

    def whole_number(self, name: str) -> int | None:
        """A field of the query that is a number; NeardupError if it is none."""
        text = self.text(name)
        if text is None:
            return None
        if not text.isdecimal() or len(text) > _MOST_DIGITS:
            raise BadRequest(
                f"{name} must be a whole number of at most {_MOST_DIGITS} digits, not {text!r:.80}"
            )
        return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a view answers: a template with values, of which ``data`` is also the answer as JSON."""

    template: str
    title: str
    data: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Redirect:
    """Another view has the answer."""

    path: str


class NotFound(NeardupError):
    """What is asked for is not stored."""


class BadRequest(NeardupError):
    """What is asked makes no sense."""
