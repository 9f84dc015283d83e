"""Near-duplicate detection for web crawls: SimHash, Probabilistic SimHash Matching, verdicts in SQL.

In a Scrapy project one line turns it on: ``ADDONS = {"neardup.Addon": 500}``. The parts can be used without
Scrapy: :mod:`neardup.text.visible_text`, :mod:`neardup.text.features`, :mod:`neardup.fingerprint.simhash`,
:mod:`neardup.index`, :mod:`neardup.detection.detector`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neardup.scrapy.addon import Addon

__all__ = ["Addon"]

if not TYPE_CHECKING:  # or mypy would take every misspelt import from here for an object

    def __getattr__(name: str) -> object:
        """Import the Scrapy side only when it is asked for, so that the library works without starting
        Scrapy.
        """
        if name == "Addon":
            from neardup.scrapy.addon import Addon  # noqa: PLC0415

            return Addon
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
