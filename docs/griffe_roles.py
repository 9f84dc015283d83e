"""Show the roles of docstrings, such as ``:class:`x.Y```, as the name they point to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import griffe

if TYPE_CHECKING:
    from griffe import Object

_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")


class Roles(griffe.Extension):
    """The docstrings are written for :func:`help` as well: a role becomes the last part of its target, as
    code.
    """

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change one docstring."""
        if obj.docstring is not None:
            text = _ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = text.replace("``", "`")
