"""What the real pages are compared by."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING

from neardup.detection.detector import DetectorOptions
from tests.support.real_pages import real_pages

if TYPE_CHECKING:
    from neardup.fingerprint.reader import Reading


@cache
def readings() -> list[Reading]:
    """The real pages in random order."""
    reader = DetectorOptions().make_reader()
    made = [reader.read_html(path.as_uri(), path.read_bytes()) for path in real_pages()]
    random.Random(0).shuffle(made)
    return made
