"""What the headlines of two pages say about whether the pages are one."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

import numpy as np

from neardup.detection import frequency_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from neardup.detection.frequency_kernels import Site
    from neardup.text.headline import Headline


class Likeness(Enum):
    """How two headlines compare."""

    UNKNOWN = frequency_kernels.UNKNOWN
    """No headline, one that many pages have, or another number."""
    SAME = frequency_kernels.SAME
    """No rare word differs, and the headline says what the page is about."""
    DIFFERENT = frequency_kernels.DIFFERENT
    """A rare word differs."""


class Sites(Protocol):
    """What is known of the headlines of hosts."""

    def site(self, host: str) -> Site:
        """The counts of a host's headlines, or None where nothing is known of the host; and its limit."""


def compare_many(
    own: Headline,
    own_host: str,
    others: npt.NDArray[np.uint32],
    other_hosts: Sequence[str],
    frequencies: Sites,
) -> list[Likeness]:
    """Compare the headline of a page with n others, shape (n, 20), of pages of these hosts.

    A word that is not rare on its host says nothing: the name of a site, "print", a version. A rare number
    says little: it may be that of a version, a chapter or a visitor, but also that of a product. So does the
    name of a month or a weekday. A title that many pages have says nothing either. Then the headings are
    compared.
    """
    found = np.empty(len(others), dtype=np.int8)
    own_site = frequencies.site(own_host)
    places_of: dict[str, list[int]] = {}
    for place, host in enumerate(other_hosts):
        places_of.setdefault(host, []).append(place)
    for host, places in places_of.items():
        found[places] = frequency_kernels.likenesses(own, own_site, others[places], frequencies.site(host))
    likeness = {each.value: each for each in Likeness}
    return [likeness[code] for code in found.tolist()]
