"""The scheme: everything that fingerprints and sketches depend on, as one name that is stored with them."""

from __future__ import annotations

from dataclasses import dataclass

from neardup.fingerprint.sketch import SIZE, WIDTH
from neardup.text.features import DEFAULT, SEED

CONTENT = "body+alt"
"""The whole visible body of a page as its content, with the alt texts of its images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """Fingerprints and sketches of different schemes must never be compared.

    ``features`` is the name of a :class:`neardup.text.features.Features`. ``content`` says which part of a
    page was read. ``sketch_size`` is the number of places of a sketch.
    """

    features: str = DEFAULT
    content: str = CONTENT
    sketch_size: int = SIZE

    def __str__(self) -> str:
        return f"{self.features}/{self.content}/mmh3-x64-128-seed{SEED}/minwise-{WIDTH}x{self.sketch_size}/v1"
