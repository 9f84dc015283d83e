"""What the tests of the crawl share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """The add-on, and a database of its own."""
    return {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/neardup.db",
    }
