"""What the headlines of two pages say about whether the pages are one."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from neardup.detection import frequency_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from neardup.detection.document_frequencies import DocumentFrequencies
    from neardup.text.headline import Headline


class Likeness(Enum):
    """How two headlines compare."""

    UNKNOWN = frequency_kernels.UNKNOWN
    """No headline, one that many pages have, or another number."""
    SAME = frequency_kernels.SAME
    """No rare word differs, and the headline says what the page is about."""
    DIFFERENT = frequency_kernels.DIFFERENT
    """A rare word differs."""


def compare_many(
    own: Headline,
    own_host: str,
    others: npt.NDArray[np.uint32],
    other_hosts: Sequence[str],
    frequencies: DocumentFrequencies,
) -> list[Likeness]:
    """Compare the headline of a page with n others, shape (n, 20), of pages of these hosts.

    A word that is not rare on its host says nothing: the name of a site, "print", a version. A rare number
    says little: it may be that of a version, a chapter or a visitor, but also that of a product. So does the
    name of a month or a weekday. A title that many pages have says nothing either. Then the headings are
    compared.
    """
    found = np.empty(len(others), dtype=np.int8)
    own_site = frequencies.site(own_host)
    for host in set(other_hosts):
        places = [place for place, its_host in enumerate(other_hosts) if its_host == host]
        found[places] = frequency_kernels.likenesses(own, own_site, others[places], frequencies.site(host))
    return [Likeness(code) for code in found.tolist()]
