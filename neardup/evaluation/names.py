"""Pages whose names are the truth: two pages are the same page if the parts of their paths that an expression
matches are equal.

A detector judges one page after the other, as in a crawl. So what is measured is the verdicts themselves:
rule, index, clusters and what is learned on the way.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from neardup.detection.detector import AGAIN
from neardup.detection.verdict import COMPARED, Kind
from neardup.errors import ConfigurationError, NeardupError
from neardup.evaluation.folder import has_markup, in_half
from neardup.evaluation.mistakes import diff, each_page_once
from neardup.evaluation.name_scores import Judged, divided, found_pages, score_names
from neardup.evaluation.orders import RANDOM, in_order
from neardup.evaluation.result import VERSION
from neardup.fingerprint import hamming, sketch
from neardup.text.features import Features
from neardup.text.folders import html_files, read_page
from neardup.text.visible_text import text_of_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from neardup.detection.verdict import Verdict
    from neardup.evaluation.name_scores import NameScores

    Progress = Callable[[str, int, int], None]

EARLY = 0.1
"""Share of the pages that are the early ones, unless their number is given."""

MISTAKES = 10

MOST_COMPARED = 16
"""How many earlier pages of the same name, the latest of them, have their exact resemblance to a page
computed. So a name of many pages costs a bounded time a page.
"""

_SETS_KEPT = 256


class Judge(Protocol):
    """Tells of one page after the other what it is, as :class:`neardup.detection.detector.Detector` does."""

    def examine_html(self, url: str, html: str | bytes) -> Verdict: ...


@runtime_checkable
class Corrector(Protocol):
    """A judge that corrects earlier verdicts when more is known."""

    def judge_again(self, most: int) -> list[Verdict]: ...

    def judge_all_again(self) -> list[Verdict]: ...

    def canonical_of(self, url: str) -> str | None:
        """URL of the canonical page that a page is a duplicate of by now; None if it is no duplicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameOptions:
    """``name`` is searched in the path of a page below its folder; its first group, else the whole match, is
    the name of the page.

    A page has a name of its own if nothing is matched, or nothing but an empty text. ``order`` is one of
    :data:`neardup.evaluation.orders.ORDERS`. The first ``early`` pages are the early ones; if None, the first
    tenth of the pages. ``half`` is that of :class:`neardup.evaluation.folder.FolderOptions`. ``mistakes`` is
    how many mistakes of each kind are listed.
    """

    name: str
    order: str = RANDOM
    seed: int = 0
    early: int | None = None
    half: str | None = None
    mistakes: int = MISTAKES


@dataclass(frozen=True, slots=True)
class NameMistake:
    """Two pages and what was wrongly said of them."""

    kind: str
    """``missed``: kept apart, and of one name; ``wrong``: a canonical page and its duplicate of another name
    and text.
    """
    a: str
    b: str
    resemblance: float
    """Exact, of the 3-word shingles of the whole visible texts."""
    distance: int
    a_canonical: str | None
    """Canonical page that ``a`` is a duplicate of; None if ``a`` is canonical."""
    b_canonical: str | None
    diff: list[str]


@dataclass(frozen=True, slots=True)
class NameResult:
    """``scores`` are those of the final standing of all pages.

    ``at_first`` are those of the verdicts as they were given, None if no verdict was corrected.
    """

    source: dict[str, Any]
    scores: NameScores
    at_first: NameScores | None
    mistakes: list[NameMistake] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "mode": "names",
            "source": self.source,
            "scores": self.scores.record(),
            "at_first": self.at_first.record() if self.at_first else None,
            "mistakes": [asdict(mistake) for mistake in self.mistakes],
        }


def judge_names(
    folders: Sequence[Path], detector: Judge, options: NameOptions, on_progress: Progress | None = None
) -> NameResult:
    """Let a detector judge the pages below the folders, and score its verdicts by the names of the pages.

    The detector must not know any page yet.

    ``on_progress`` is as in :func:`neardup.evaluation.judged.evaluate_pairs`. Raises ConfigurationError if a
    folder has no pages, or if the expression is none or matches no page.
    """
    say = on_progress or (lambda *_: None)
    namer = _Namer(folders, options.name)
    files = _files(folders, options, namer)
    run = _Run(namer)
    for done, path in enumerate(in_order(files, options.order, options.seed, say), start=1):
        run.judge(detector, path)
        say("pages judged", done, len(files))
    if not run.paths:
        named = ", ".join(map(str, folders))
        raise ConfigurationError(f"{named}: none of {len(files)} pages could be judged")
    first, final = run.standing(run.canonical_urls), run.standing(run.final_urls(detector))
    truth = _Truth(run.paths, first, say)
    early = int(EARLY * len(first)) if options.early is None else min(options.early, len(first))
    scores = score_names(final, truth.likest, early=early)
    at_first = None if final == first else score_names(first, truth.likest, early=early)
    source = {
        "folders": [str(folder) for folder in folders],
        "same_name": options.name,
        "half": options.half,
        "order": options.order,
        "seed": options.seed if options.order == RANDOM else None,
        "early": early,
        "pages": len(first),
        "names": len({page.name for page in first}),
        "unnamed": sum(namer.name(path) is None for path in run.paths),
        "texts": len({page.text for page in first}),
        **run.left_out,
    }
    return NameResult(source, scores, at_first, _mistakes(run, final, truth, options.mistakes, say))


def _files(folders: Sequence[Path], options: NameOptions, namer: _Namer) -> list[Path]:
    for folder in folders:
        if not html_files([folder]):
            raise ConfigurationError(f"{folder} has no HTML pages")
    found = (path.resolve() for path in html_files(folders))
    files = [path for path in found if options.half is None or in_half(path, options.half)]
    if files and all(namer.name(path) is None for path in files):
        raise ConfigurationError(
            f"--same-name {options.name}: finds a name in the path of none of {len(files):,} pages, such as"
            f" {namer.path(files[0])}"
        )
    return files


class _Namer:
    """Names of pages by their paths below their folders."""

    def __init__(self, folders: Iterable[Path], expression: str) -> None:
        self._folders = [Path(folder).expanduser().resolve() for folder in folders]
        try:
            self._expression = re.compile(expression)
        except re.error as exc:
            at = "" if exc.pos is None else f" at position {exc.pos}"
            raise ConfigurationError(
                f"--same-name {expression}: no regular expression: {exc.msg}{at}"
            ) from exc
        except (OverflowError, RecursionError) as exc:
            raise ConfigurationError(f"--same-name {expression:.80}: no regular expression: {exc}") from exc

    def path(self, file: Path) -> str:
        """The path of a file below the first of the folders that it is in."""
        folder = next(folder for folder in self._folders if file.is_relative_to(folder))
        return file.relative_to(folder).as_posix()

    def name(self, file: Path) -> str | None:
        """The name of a page; None if the expression gives it none."""
        match = self._expression.search(self.path(file))
        if match is None:
            return None
        return match[1 if self._expression.groups else 0] or None


class _Run:
    """What a detector says of pages, column by column, and how many of them take no part."""

    def __init__(self, namer: _Namer) -> None:
        self._namer = namer
        self._rows: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._texts = array("Q")
        self._name_of: list[int] = []
        self.paths: list[Path] = []
        self.urls: list[str] = []
        self.values = array("Q")
        self.canonical_urls: list[str | None] = []
        self.left_out = dict.fromkeys(("too_short", "unjudged", "no_pages", "unreadable"), 0)

    def judge(self, detector: Judge, path: Path) -> None:
        try:
            data = read_page(path)
        except NeardupError:  # one broken or huge file among thousands is counted, and stops nothing
            self.left_out["unreadable"] += 1
            return
        if not has_markup(data):
            self.left_out["no_pages"] += 1
            return
        verdict = detector.examine_html(path.as_uri(), data)
        if isinstance(detector, Corrector):
            detector.judge_again(AGAIN)
        if verdict.kind not in COMPARED:
            self.left_out["too_short" if verdict.kind is Kind.TOO_SHORT else "unjudged"] += 1
            return
        assert verdict.fingerprint is not None
        assert verdict.text_digest is not None
        name = self._namer.name(path)
        key = f"named {name}" if name else f"unnamed {path}"
        self._name_of.append(self._names.setdefault(key, len(self._names)))
        self._texts.append(verdict.text_digest)
        self._rows[verdict.url] = len(self.urls)
        self.urls.append(verdict.url)
        self.paths.append(path)
        self.values.append(verdict.fingerprint.value)
        self.canonical_urls.append(verdict.canonical_url)

    def final_urls(self, detector: Judge) -> list[str | None]:
        """URLs of the canonical pages by now, None of a page that is no duplicate."""
        if isinstance(detector, Corrector):
            detector.judge_all_again()
            return [detector.canonical_of(url) for url in self.urls]
        return self.canonical_urls

    def standing(self, canonical_urls: Iterable[str | None]) -> list[Judged]:
        """All judged pages with these canonical pages."""
        return [
            Judged(name, text, row if url is None else self._rows[url])
            for row, (name, text, url) in enumerate(
                zip(self._name_of, self._texts, canonical_urls, strict=True)
            )
        ]


class _Truth:
    """Exact resemblances, of the whole visible texts, whatever the detector compares."""

    def __init__(self, paths: Sequence[Path], pages: Sequence[Judged], say: Progress) -> None:
        self._paths = paths
        self._features = Features()
        self._shingles = lru_cache(_SETS_KEPT)(self._read)
        self.likest: dict[int, float] = {}
        """For each page with an earlier page of its name, the resemblance to the likest of those."""
        self.partners: dict[int, int] = {}
        """Which earlier page that is."""
        rows_of: defaultdict[int, list[int]] = defaultdict(list)
        for row, page in enumerate(pages):
            rows_of[page.name].append(row)
        done = 0
        for rows in rows_of.values():  # name by name, so that each page is read once
            for place, row in enumerate(rows[1:], start=1):
                earlier = rows[max(0, place - MOST_COMPARED) : place]
                self.likest[row], self.partners[row] = max(
                    (self.resemblance(row, one), one) for one in earlier
                )
            done += len(rows)
            say("exact resemblances", done, len(pages))

    def resemblance(self, row: int, other: int) -> float:
        return sketch.resemblance(self._shingles(row), self._shingles(other))

    def _read(self, row: int) -> sketch.Hashes:
        text = text_of_bytes(read_page(self._paths[row]))
        return sketch.shingle_set(self._features.extract(text).words)


def _mistakes(
    run: _Run, pages: Sequence[Judged], truth: _Truth, number: int, say: Progress
) -> list[NameMistake]:
    """Of the pages wrongly kept apart those most alike, and of those wrongly joined those least alike, each
    page once in either.
    """
    if not number:
        return []
    apart = sorted(truth.likest.keys() - found_pages(pages), key=lambda row: (-truth.likest[row], row))
    joined = sorted(divided(pages)[2], key=lambda row: (pages[row].canonical, row))
    alike: dict[int, float] = {}
    for done, row in enumerate(joined, start=1):  # cluster by cluster, so that canonical pages are read once
        alike[row] = truth.resemblance(row, pages[row].canonical)
        say("pages wrongly joined", done, len(joined))
    missed = each_page_once(((truth.partners[row], row) for row in apart), number)
    wrong = each_page_once(
        ((pages[row].canonical, row) for row in sorted(joined, key=alike.__getitem__)), number
    )
    return [
        *(_mistake("missed", run, pages, truth, pair) for pair in missed),
        *(_mistake("wrong", run, pages, truth, pair) for pair in wrong),
    ]


def _mistake(
    kind: str, run: _Run, pages: Sequence[Judged], truth: _Truth, pair: tuple[int, int]
) -> NameMistake:
    a, b = pair
    a_canonical, b_canonical = (pages[row].canonical for row in pair)
    return NameMistake(
        kind=kind,
        a=run.urls[a],
        b=run.urls[b],
        resemblance=truth.resemblance(a, b),
        distance=hamming.distance(run.values[a], run.values[b]),
        a_canonical=None if a_canonical == a else run.urls[a_canonical],
        b_canonical=None if b_canonical == b else run.urls[b_canonical],
        diff=diff(*(text_of_bytes(read_page(run.paths[row])) for row in pair)),
    )
