"""Types of items that refuse to be changed, each with a field for the verdict and without."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - pydantic reads annotations
from dataclasses import dataclass
from typing import Any

import attrs
import pydantic


@dataclass(frozen=True)
class FrozenDataclass:
    title: str
    verdict: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class FrozenDataclassWithout:
    title: str


@attrs.frozen
class FrozenAttrs:
    title: str
    verdict: dict[str, Any] | None = None


@attrs.define
class ValidatingAttrs:
    title: str
    verdict: str = attrs.field(default="", validator=attrs.validators.instance_of(str))


class FrozenPydantic(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)

    title: str
    verdict: dict[str, Any] | None = None


class ValidatingPydantic(pydantic.BaseModel):
    """A verdict is no str, and the model says so."""

    model_config = pydantic.ConfigDict(validate_assignment=True)

    title: str
    verdict: str = ""


class ClosedPydantic(pydantic.BaseModel):
    """No field for a verdict, and none may be added."""

    model_config = pydantic.ConfigDict(extra="forbid", validate_assignment=True)

    title: str


TYPES: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (
        FrozenDataclass,
        FrozenDataclassWithout,
        FrozenAttrs,
        ValidatingAttrs,
        FrozenPydantic,
        ValidatingPydantic,
        ClosedPydantic,
    )
}
"""By name."""
