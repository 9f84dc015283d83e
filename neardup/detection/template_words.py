"""Which words of a page are taken for the template of its host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.detection.document_frequencies import MOST_COUNTED
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.detection.document_frequencies import HostFrequencies
    from neardup.fingerprint.sketch import Hashes


def are_template(known: HostFrequencies, shingles: Hashes, words: int) -> npt.NDArray[np.bool_]:
    """Of each of the words of a page whether a shingle with it is not rare on the host; shape (words,).

    ``shingles`` are those of the page, in their order.
    """
    template = np.zeros(words, dtype=np.bool_)
    (places,) = np.nonzero(known.counts(shingles[:MOST_COUNTED]) > known.limit)
    for offset in range(min(sketch.WIDTH, words)):
        template[places + offset] = True
    return template
