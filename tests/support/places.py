"""Where things are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The project."""

PAGES = ROOT / "tests" / "pages"
"""Real pages: four versions of one manual, and another one in seven languages."""
