"""A detector that keeps what it said last of each page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.detection.detector import Detector, DetectorOptions

if TYPE_CHECKING:
    from neardup.detection.verdict import Verdict


class Recorder:
    """A detector with the defaults, and its latest verdict of each page by URL."""

    def __init__(self) -> None:
        self.detector = Detector(DetectorOptions())
        self.verdicts: dict[str, Verdict] = {}

    def examine_html(self, url: str, html: str | bytes) -> Verdict:
        verdict = self.detector.examine_html(url, html)
        self.verdicts[verdict.url] = verdict
        return verdict

    def judge_again(self, most: int) -> list[Verdict]:
        return self._noted(self.detector.judge_again(most))

    def judge_all_again(self) -> list[Verdict]:
        return self._noted(self.detector.judge_all_again())

    def canonical_of(self, url: str) -> str | None:
        return self.detector.canonical_of(url)

    def _noted(self, verdicts: list[Verdict]) -> list[Verdict]:
        self.verdicts.update((verdict.url, verdict) for verdict in verdicts)
        return verdicts
