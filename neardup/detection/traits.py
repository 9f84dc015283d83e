"""What a canonical page is compared by, beside its fingerprint."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from neardup.fingerprint.sketch import Compact
    from neardup.text.headline import Headline


class Traits(NamedTuple):
    """The traits of one page; ``digest`` is that of its text within the scope."""

    sketch: Compact
    headline: Headline
    digest: int
