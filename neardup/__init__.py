"""Near-duplicate detection for web crawls: SimHash, Probabilistic SimHash Matching, verdicts in SQL.

In a Scrapy project one line turns it on: ``ADDONS = {"neardup.Addon": 500}``. The detector works without
Scrapy, too. Every public name is imported when it is asked for, so that a program pays for nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neardup.detection.detector import Detector, DetectorOptions
    from neardup.detection.verdict import Kind, Verdict
    from neardup.scrapy.addon import Addon
    from neardup.scrapy.verdicts import get_verdict

    __version__: str

__all__ = ["Addon", "Detector", "DetectorOptions", "Kind", "Verdict", "__version__", "get_verdict"]

_MODULES = {
    "Addon": "neardup.scrapy.addon",
    "Detector": "neardup.detection.detector",
    "DetectorOptions": "neardup.detection.detector",
    "Kind": "neardup.detection.verdict",
    "Verdict": "neardup.detection.verdict",
    "get_verdict": "neardup.scrapy.verdicts",
}

if not TYPE_CHECKING:  # or mypy would take every misspelt import from here for an object

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return getattr(import_module(_MODULES[name]), name)
        if name == "__version__":
            return import_module("importlib.metadata").version("neardup")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
