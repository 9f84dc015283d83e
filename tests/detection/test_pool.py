"""Arrays that grow without being copied, where the system reserves address space and where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.detection import pool

if TYPE_CHECKING:
    import pytest


def test_reserved_address_space_is_zero_and_keeps_what_was_there() -> None:
    grown = pool.grown(np.arange(1 << 20, dtype=np.uint64), 0)

    assert np.array_equal(grown[: 1 << 20], np.arange(1 << 20))
    assert not grown[1 << 20 : 1 << 21].any()


def test_without_reserved_address_space_arrays_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_NO_RESERVE", {})
    grown = pool.grown(np.arange(1 << 18), 0)

    assert len(grown) == 1 << 19
    assert np.array_equal(grown[: 1 << 18], np.arange(1 << 18))
    assert not grown[1 << 18 :].any()
