"""Verdicts made by hand: a page with a fingerprint of its number, and a duplicate of another. Pages with the
same fingerprint have the same text, unless said otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neardup.address import Address
from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind, Verdict
from neardup.fingerprint.simhash import Fingerprint


def fingerprint(value: int) -> Fingerprint:
    signs = np.array([1.0 if value >> (63 - j) & 1 else -1.0 for j in range(64)])
    return Fingerprint(value, signs * np.arange(1, 65))


def page(number: int, url: str, kind: Kind = Kind.NEW, **more: Any) -> Verdict:
    values: dict[str, Any] = {
        "fingerprint": fingerprint(2**64 - number),
        "features": 30,
        "follow": True,
        "reason": "",
    }
    values |= more
    if values["fingerprint"] is not None:
        value = values["fingerprint"].value
        drawn = np.random.default_rng(value).integers(0, 2**64, 16, dtype=np.uint64)
        values = {"sketch": drawn, "text_digest": value or 1} | values
    return Verdict(address=Address(url), kind=kind, page_id=number, **values)


def duplicate(number: int, url: str, canonical: int, distance: int = 2, **more: Any) -> Verdict:
    values = {"canonical_url": "c", "resemblance": 0.9, "evidence": Evidence.WHOLE} | more
    return page(
        number, url, Kind.DUPLICATE, follow=False, canonical_id=canonical, distance=distance, **values
    )
