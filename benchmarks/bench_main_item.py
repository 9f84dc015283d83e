"""Whether verdicts are about the main item of a page: sites alone, and pairs of versions, truth by path.

Run as ``python -m benchmarks.bench_main_item --folder FOLDER --runs FOLDER [--only NAMES] [--jobs N]``, and
with ``--output FILE`` for the tables of all runs so far. ``SETS`` says which packages FOLDER holds unpacked,
each in a folder of its own. A set whose folders are not there is left out.

A set is judged by ``Detector(DetectorOptions())`` as ``neardup evaluate --same-name`` does. The name of a
page is the path below the folder, or the part of it that the set's expression finds. A run is one set in one
order, and leaves one JSON file. A run that has its file is not made again.

A site alone has different pages only, so each duplicate of another text is a mistake. Pages that a person
calls the same under two names are listed by hand in ``benchmarks/main_item_same.txt``. Each line there is the
name of a set and the paths of such pages. They are counted apart.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import shutil
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from urllib.request import url2pathname

import numpy as np

from benchmarks.provenance import header
from benchmarks.recorder import Recorder
from neardup.address import Address
from neardup.detection import own_text
from neardup.detection.headlines import compare_many
from neardup.detection.own_text import OwnText
from neardup.detection.rule import SURE, Evidence
from neardup.evaluation.name_scores import CUTS
from neardup.evaluation.names import NameOptions, judge_names
from neardup.evaluation.orders import CRAWL, RANDOM
from neardup.fingerprint import sketch
from neardup.text.folders import html_files, read_page
from neardup.text.visible_text import text_of_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.evaluation.names import NameMistake

WORST = 10
LONGEST_LINE = 110
RIGHT, WRONG, SAME_TEXT = "right", "wrong", "same text"
MOST_COMPARED = 100_000
"""Characters of the texts of which a difference is shown."""
SAME = Path(__file__).with_name("main_item_same.txt")


class Set(NamedTuple):
    """Pages of ``folders``, below the folder of all packages.

    ``name`` is what ``--same-name`` takes. Pages whose paths below their folder match ``without`` take no
    part: those that have no names, or that a set is measured without. What ``dropped`` matches is no part of
    a path: the version of a part of the manual.
    """

    title: str
    folders: tuple[str, ...]
    name: str = ".+"
    without: str | None = None
    dropped: str | None = None
    orders: tuple[str, ...] = (RANDOM, CRAWL)

    @property
    def is_alone(self) -> bool:
        return len(self.folders) == 1


_LLVM = "llvm-{0}-doc/usr/share/doc/llvm-{0}-doc/html"
_OPENJDK = "openjdk-{0}-doc/usr/share/doc/openjdk-{0}-jre-headless/api"
_LIBSTDCXX = "libstdc++-{0}-doc/usr/share/doc/gcc-{0}-base/libstdc++"
_DJANGO = "python-django-doc-{}/usr/share/doc/python-django-doc/html"
_SQLITE = "sqlite3-doc-{}/usr/share/doc/sqlite3"
_GIMP = "gimp-help-en-{}/usr/share/gimp/2.0/help/en"
_BOOST = "libboost-doc-{0}/usr/share/doc/libboost{0}-doc"
_GTK = "libgtk-3-doc-{}/usr/share/gtk-doc/html"
_GUIDE = "installation-guide-{}/usr/share/doc/installation-guide-amd64/{}"
_LILYPOND = "lilypond-doc-{}/usr/share/doc/lilypond/html"
_HANDBOOK = "debian-handbook/usr/share/doc/debian-handbook/html"
_POSTGRESQL = "postgresql-doc-{0}/usr/share/doc/postgresql-doc-{0}/html"
_PYTHON = "python{0}-doc/usr/share/doc/python{0}/html"
_GLIB = "libglib2.0-doc-{}/usr/share/gtk-doc/html"
_SQLALCHEMY = "python-sqlalchemy-doc-{}/usr/share/doc/python-sqlalchemy-doc/html"
_OCTAVE = "octave-doc-{}/usr/share/doc/octave"
_GIT = "git-doc-{}/usr/share/doc/git-doc"
_ZSH = "zsh-doc-{}/usr/share/doc/zsh-common/html"
_POLICY = "debian-policy-{}/usr/share/doc/debian-policy/policy.html"
_REFERENCE = "debian-reference-{}/usr/share/debian-reference"
_AMDGPU = "^AMDGPU/"
_DOXYGEN = r"(^|/)a\d+(_source)?\.html$"
"""Numbers that Doxygen gives anew in each version."""
_BOOSTBOOK = r"(idm\d+|(_\d+){4,})\.html$"
"""Numbers of places in a book, of which another version has others."""

ALONE = (
    Set("erlang-doc 25", ("erlang-doc/usr/share/doc/erlang-doc",)),
    Set("cppreference", ("cppreference-doc-en-html/usr/share/cppreference/doc/html",)),
    Set("OpenJDK 17", (_OPENJDK.format(17),)),
    Set("Kafka 3.9", ("kafka-39",)),
    Set("LLVM 14", (_LLVM.format(14),)),
    Set("LLVM 14 without AMDGPU", (_LLVM.format(14),), without=_AMDGPU),
)
VERSIONS = (
    Set("Clang 13 to 16", tuple(f"clang-{version}" for version in (13, 14, 15, 16))),
    Set("Kafka 3.6, 3.9", ("kafka-36", "kafka-39")),
    Set("LLVM 15, 16", (_LLVM.format(15), _LLVM.format(16)), orders=(RANDOM,)),
    Set("LLVM 15, 16 without AMDGPU", (_LLVM.format(15), _LLVM.format(16)), without=_AMDGPU),
    Set(
        "Erlang 23, 25",
        ("erlang-doc-23/usr/share/doc/erlang-doc", "erlang-doc/usr/share/doc/erlang-doc"),
        dropped=r"(?<=[a-z0-9])-[\d.]+(?=/)",
        orders=(RANDOM,),
    ),
    Set("OpenJDK 17, 21, java.base", tuple(f"{_OPENJDK.format(one)}/java.base" for one in (17, 21))),
    Set("libstdc++ 11, 12", (_LIBSTDCXX.format(11), _LIBSTDCXX.format(12)), without=_DOXYGEN),
)
HELD_OUT = (
    Set("Django 3.2", (_DJANGO.format("3.2"),)),
    Set("SQLite 3.40", (_SQLITE.format("3.40"),)),
    Set("GIMP 2.10.34", (_GIMP.format("2.10.34"),)),
    Set("Boost 1.81", (_BOOST.format("1.81"),)),
    Set("GTK 3.24.38", (_GTK.format("3.24.38"),)),
    Set("Qt 5.15.2", ("qtbase5-doc-5.15.2/usr/share/qt5/doc",)),
    Set("LilyPond 2.24", (_LILYPOND.format("2.24"),)),
    Set("Debian's handbook, en", (f"{_HANDBOOK}/en-US",)),
    Set("Debian's handbook, 26 languages", (_HANDBOOK,), name="[^/]+$", orders=(RANDOM,)),
    Set("installation guide 12, en", (_GUIDE.format(12, "en"),)),
    Set("Django 2.2, 3.2", (_DJANGO.format("2.2"), _DJANGO.format("3.2"))),
    Set("SQLite 3.34, 3.40", (_SQLITE.format("3.34"), _SQLITE.format("3.40"))),
    Set("GIMP 2.10.0, 2.10.34", (_GIMP.format("2.10.0"), _GIMP.format("2.10.34"))),
    Set("Boost 1.74, 1.81", (_BOOST.format("1.74"), _BOOST.format("1.81")), orders=(RANDOM,)),
    Set(
        "Boost 1.74, 1.81 without numbered names",
        (_BOOST.format("1.74"), _BOOST.format("1.81")),
        without=_BOOSTBOOK,
        orders=(RANDOM,),
    ),
    Set("GTK 3.24.24, 3.24.38", (_GTK.format("3.24.24"), _GTK.format("3.24.38"))),
    Set("LilyPond 2.22, 2.24", (_LILYPOND.format("2.22"), _LILYPOND.format("2.24")), orders=(RANDOM,)),
    Set("installation guide 11, 12, en", (_GUIDE.format(11, "en"), _GUIDE.format(12, "en"))),
    Set("installation guide 11, 12, vi", (_GUIDE.format(11, "vi"), _GUIDE.format(12, "vi"))),
)
HELD_OUT_LATER = (
    Set("PostgreSQL 15", (_POSTGRESQL.format("15"),)),
    Set("Python 3.11", (_PYTHON.format("3.11"),)),
    Set("Rust 1.63, std", ("rust-doc/usr/share/doc/rust-doc/html/std",)),
    Set("Node.js 18", ("nodejs-doc/usr/share/doc/nodejs/api",)),
    Set("PostgreSQL 13, 15", (_POSTGRESQL.format("13"), _POSTGRESQL.format("15"))),
    Set("Python 3.9, 3.11", (_PYTHON.format("3.9"), _PYTHON.format("3.11"))),
)
"""Opened once, after the names of files had become evidence."""
HELD_OUT_LAST = (
    Set("Eigen 3.4", ("libeigen3-doc/usr/share/doc/libeigen3-dev/html",)),
    Set("Free Pascal 3.2.2, rtl", ("fp-docs/usr/share/doc/fp-docs/3.2.2/rtl",)),
    Set("GLib 2.74", (_GLIB.format("2.74"),)),
    Set("SQLAlchemy 1.4", (_SQLALCHEMY.format("1.4"),)),
    Set("GLib 2.66, 2.74", (_GLIB.format("2.66"), _GLIB.format("2.74"))),
    Set("SQLAlchemy 1.3, 1.4", (_SQLALCHEMY.format("1.3"), _SQLALCHEMY.format("1.4"))),
)
"""Opened once, after headlines and template had been made to weigh more on short pages."""
HELD_OUT_RENUMBERED = (
    Set("Octave 7.3", (_OCTAVE.format("7.3"),)),
    Set("Git 2.47", (_GIT.format("2.47"),)),
    Set("Octave 6.2, 7.3", (_OCTAVE.format("6.2"), _OCTAVE.format("7.3"))),
    Set("Git 2.30, 2.47", (_GIT.format("2.30"), _GIT.format("2.47"))),
    Set("Zsh 5.8, 5.9", (_ZSH.format("5.8"), _ZSH.format("5.9"))),
    Set("Debian policy 4.5, 4.6", (_POLICY.format("4.5"), _POLICY.format("4.6"))),
    Set("Debian reference 2.78, 2.100", (_REFERENCE.format("2.78"), _REFERENCE.format("2.100"))),
)
"""Opened once, after chapters with other numbers had become the same chapters."""
SETS = (*ALONE, *VERSIONS, *HELD_OUT, *HELD_OUT_LATER, *HELD_OUT_LAST, *HELD_OUT_RENUMBERED)


@dataclass(frozen=True)
class Run:
    """One set in one order."""

    set: Set
    order: str

    @property
    def file(self) -> str:
        return re.sub(r"\W+", "-", f"{self.set.title} {self.order}".lower()) + ".json"

    def make(self, folder: Path) -> dict[str, Any]:
        """The record of the run: what ``neardup evaluate`` says, all wrong pairs, and the worst mistakes."""
        with tempfile.TemporaryDirectory() as copies:
            folders = [
                self._chosen(folder / path, Path(copies) / str(n)) for n, path in enumerate(self.set.folders)
            ]
            recorder = Recorder()
            options = NameOptions(name=self.set.name, order=self.order, mistakes=2 * WORST)
            made = judge_names(folders, recorder, options)
            tops = [f"{one.resolve().as_uri()}/" for one in folders]

            def short(url: str) -> str:
                top = next(top for top in tops if url.startswith(top))
                return self.set.folders[tops.index(top)].partition("/")[0] + ":" + url.removeprefix(top)

            duplicates = list(self._duplicates(recorder, tops))
            return made.record() | {
                "evidence": Counter(f"{evidence} {told}" for *_, evidence, told in duplicates),
                "wrong": [
                    [short(url), short(canonical), evidence]
                    for url, canonical, evidence, told in duplicates
                    if told == WRONG
                ],
                "mistakes": [
                    {
                        "kind": one.kind,
                        "a": short(one.a),
                        "b": short(one.b),
                        "resemblance": one.resemblance,
                        "distance": one.distance,
                        "evidence": _evidence(recorder, one),
                    }
                    for one in made.mistakes
                ],
            }

    def _chosen(self, folder: Path, copies: Path) -> Path:
        """The folder, or one with the pages of it that take part, under the paths that are compared."""
        if self.set.without is None and self.set.dropped is None:
            return folder
        for file in html_files([folder]):
            path = file.resolve().relative_to(folder.resolve()).as_posix()
            if self.set.without is None or not re.search(self.set.without, path):
                target = copies / (re.sub(self.set.dropped, "", path) if self.set.dropped else path)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
        return copies

    def _duplicates(self, recorder: Recorder, tops: list[str]) -> Iterator[tuple[str, str, str, str]]:
        """Duplicates, their canonical pages, the evidence, and whether that is right."""
        for url, verdict in recorder.verdicts.items():
            canonical = recorder.canonical_of(url)
            if canonical is None:
                continue
            if self._name(url, tops) == self._name(canonical, tops):
                told = RIGHT
            elif verdict.text_digest == recorder.verdicts[canonical].text_digest:
                told = SAME_TEXT
            else:
                told = WRONG
            yield url, canonical, str(verdict.evidence), told

    def _name(self, url: str, tops: list[str]) -> str:
        path = url2pathname(next(url.removeprefix(top) for top in tops if url.startswith(top)))
        match = re.search(self.set.name, path)
        return url if match is None else match[1 if match.re.groups else 0] or url


def _evidence(recorder: Recorder, one: NameMistake) -> str:
    """Why the second page is a duplicate, or what speaks against the pair, by what is known at the end."""
    if one.kind == "wrong":
        return str(recorder.verdicts[one.b].evidence)
    verifier, reader = recorder.detector.verifier, recorder.detector.reader
    paths = (Path(url2pathname(url.removeprefix("file://"))) for url in (one.a, one.b))
    a, b = (reader.read_html(path.as_uri(), read_page(path)) for path in paths)
    host = Address.of(one.b).host
    (likeness,) = compare_many(b.headline, host, np.array([a.headline]), [host], verifier.frequencies)
    said = f"headlines {likeness.name.lower()}"
    known = verifier.frequencies.of(host)
    assert a.sketch is not None
    assert b.sketch is not None
    stored = np.array([a.sketch])
    wholes = sketch.compact_estimates(stored, b.sketch)
    places = None if known is None else OwnText(b, known).places()
    if places is not None:
        said += f", rare {own_text.resemblances(stored, b.sketch, wholes, places)[0]:.2f}"
    return said


def texts_apart(a: str, b: str) -> list[str]:
    """The longest run of words that the first text has and not the second, and the other way round."""
    first, second = a.split(), b.split()
    changes = difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    runs = (
        [" ".join(first[start:end]) for change, start, end, _, _ in changes if change != "equal"],
        [" ".join(second[start:end]) for change, _, _, start, end in changes if change != "equal"],
    )
    longest = [max(some, key=len, default="") for some in runs]
    return [
        f"{sign}{words}"[:LONGEST_LINE].replace("`", "'")
        for sign, words in zip("-+", longest, strict=True)
        if words
    ]


def text_of(folder: Path, pages: Set, short: str) -> str:
    """The visible text of the page that a record names."""
    package, _, path = short.partition(":")
    top = next(folder / one for one in pages.folders if one.partition("/")[0] == package)
    for file in html_files([top]):
        named = file.resolve().relative_to(top.resolve()).as_posix()
        if quote(re.sub(pages.dropped, "", named) if pages.dropped else named) == path:
            return text_of_bytes(read_page(file))
    raise ValueError(f"{top} has no page {path}")


def same_to_people() -> dict[str, list[frozenset[str]]]:
    """By set, groups of pages that a person calls the same."""
    groups: dict[str, list[frozenset[str]]] = {}
    for line in SAME.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            title, *paths = line.split("\t")
            groups.setdefault(title, []).append(frozenset(paths))
    return groups


def left_out(wrong: list[list[str]], groups: list[frozenset[str]]) -> int:
    """How many of the wrong pairs a person calls the same."""
    pairs = ({url.partition(":")[2] for url in pair[:2]} for pair in wrong)
    return sum(any(pair <= group for group in groups) for pair in pairs)


def missed_table(records: dict[Run, dict[str, Any]]) -> list[str]:
    """The pages that were missed, by their exact resemblance to the earlier page of their name."""
    cuts = [0.0, *sorted(CUTS)]
    bands = [
        f"below {cuts[1]}",
        *(f"{low} to {high}" for low, high in pairwise(cuts[1:])),
        f"{cuts[-1]} or more",
    ]
    lines = [
        "## Missed, by resemblance",
        "",
        "How many were not found, of the pages with an earlier page of their name. The bands are the exact",
        "resemblance of both pages. In random order.",
        "",
        "| pages | missed | " + " | ".join(bands) + " | recall at .6 or more |",
        "|---|---:" + "|---:" * (len(bands) + 1) + "|",
    ]
    for run, record in records.items():
        if run.order == RANDOM and not run.set.is_alone:
            pairs = record["scores"]["pairs"]
            recalls = {one["among"]: one for one in record["scores"]["recalls"]}
            some = [pairs, *(recalls[f"resemblance ≥ {cut}"] for cut in cuts[1:])]
            wanted, found = ([one[name] for one in some] + [0] for name in ("wanted", "found"))
            cells = [
                f"{more - fewer - (met - less):,} of {more - fewer:,}"
                for (more, fewer), (met, less) in zip(pairwise(wanted), pairwise(found), strict=True)
            ]
            at_6 = recalls["resemblance ≥ 0.6"]
            lines.append(
                f"| {run.set.title} | {wanted[0] - found[0]:,} | "
                + " | ".join(cells)
                + f" | {_rate(at_6['found'], at_6['wanted'])} |"
            )
    return [*lines, ""]


def tables(records: dict[Run, dict[str, Any]]) -> list[str]:
    groups = same_to_people()
    alone = [
        "| pages | order | n | called | the same to a person | left | share | surely | evidence |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    versions = [
        "| pages | order | n | said | right | people | wanted | recall | r ≥ .9 | recall | r ≥ .8 | recall |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for run, record in records.items():
        scores, n = record["scores"], record["source"]["pages"]
        called_same = groups.get(run.set.title, [])
        same = left_out(record["wrong"], called_same)
        if run.set.is_alone:
            called = scores["different"][0]["called"]
            kinds = Counter(evidence for *_, evidence in record["wrong"])
            said = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
            sure = [pair for pair in record["wrong"] if Evidence(pair[2]).confidence >= SURE]
            surely = len(sure) - left_out(sure, called_same)
            alone.append(
                f"| {run.set.title} | {run.order} | {n:,} | {called} | {same} | {called - same} |"
                f" {(called - same) / n:.2%} | {surely / n:.2%} | {said} |"
            )
        else:
            pairs = scores["pairs"]
            right, reported = pairs["right"], pairs["reported"]
            recalls = {one["among"]: one for one in scores["recalls"]}
            harder = [recalls[f"resemblance ≥ {cut}"] for cut in (0.9, 0.8)]
            versions.append(
                f"| {run.set.title} | {run.order} | {n:,} | {reported:,} | {_rate(right, reported)} |"
                f" {_rate(right + same, reported)} | {pairs['wanted']:,} |"
                f" {_rate(pairs['found'], pairs['wanted'])} |"
                + "".join(f" {one['wanted']:,} | {_rate(one['found'], one['wanted'])} |" for one in harder)
            )
    return [
        "## Each site alone",
        "",
        f"`surely`: those left with a confidence of {SURE} or more. An action drops items for no other.",
        "",
        *alone,
        "",
        "## Two versions",
        "",
        "`said`: duplicates. `right`: the share with the name of their canonical page. `people`: the",
        "same, and pages that a person calls the same. `wanted`: pages with an earlier page of their name.",
        "Recall: of all wanted, and of those that resemble the earlier page by .9 or .8 or more.",
        "",
        *versions,
    ]


def evidence_table(records: dict[Run, dict[str, Any]]) -> list[str]:
    reasons = [Evidence.TEXT, Evidence.HEADLINE, Evidence.RARE, Evidence.WHOLE]
    lines = [
        "## Evidence",
        "",
        "How many of the duplicates are right, by their evidence, in random order. A duplicate is right",
        "if it has the name, or the very text, of its canonical page.",
        "",
        "| pages | " + " | ".join(reasons) + " |",
        "|---" + "|---:" * len(reasons) + "|",
    ]
    for run, record in records.items():
        if run.order == RANDOM and not run.set.is_alone:
            counts = record["evidence"]
            cells = []
            for kind in reasons:
                right, same, wrong = (counts.get(f"{kind} {told}", 0) for told in (RIGHT, SAME_TEXT, WRONG))
                reported = right + same + wrong
                cells.append(f"{right + same:,} of {reported:,}" if reported else "–")
            lines.append(f"| {run.set.title} | " + " | ".join(cells) + " |")
    return lines


def _rate(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "–"


def worst(folder: Path, records: dict[Run, dict[str, Any]]) -> list[str]:
    """The wrong pairs that resemble each other least, and the missed ones that resemble each other most.

    One of each site is listed.
    """
    said = []
    groups = same_to_people()
    for kind, title, sign in (("wrong", "Wrongly called duplicates", 1), ("missed", "Missed", -1)):
        found = [
            (sign * one["resemblance"], run.set.title, run.set, one, swallowed(record))
            for run, record in records.items()
            if run.order == RANDOM and (kind == "wrong" or not run.set.is_alone)
            for one in record["mistakes"]
            if one["kind"] == kind and (kind == "missed" or not _same(one, groups.get(run.set.title, [])))
        ]
        said += ["", f"## {title}, the worst {WORST}, one of each site", ""]
        sites: set[str] = set()
        for _, name, pages, one, canonicals in sorted(found, key=lambda item: item[:2]):
            site = pages.folders[-1]
            if site not in sites and len(sites) < WORST:
                sites.add(site)
                said.append(
                    f"- {name}: `{one['a']}` and `{one['b']}`, resemblance {one['resemblance']:.3f}, distance"
                    f" {one['distance']}, {one['evidence']}"
                )
                if kind == "missed":
                    said += [
                        f"  - `{one[side]}` is called a duplicate of `{canonicals[one[side]]}`"
                        for side in "ab"
                        if one[side] in canonicals
                    ]
                texts = (text_of(folder, pages, one[side])[:MOST_COMPARED] for side in "ab")
                said += [f"  - `{line}`" for line in texts_apart(*texts)]
    return said


def swallowed(record: dict[str, Any]) -> dict[str, str]:
    """The canonical pages of pages that are called duplicates of pages of another name, by page."""
    return {url: canonical for url, canonical, _ in record["wrong"]}


def _same(one: dict[str, Any], groups: list[frozenset[str]]) -> bool:
    return any(_paths(one) <= group for group in groups)


def _paths(one: dict[str, Any]) -> frozenset[str]:
    """The paths of the pages of a mistake, of whichever version."""
    return frozenset(one[side].partition(":")[2] for side in "ab")


def report(folder: Path, records: dict[Run, dict[str, Any]]) -> str:
    pages = [record["source"]["pages"] for record in records.values()]
    lines = ["# The main item decides: sites alone, and two versions", ""]
    lines += header(
        "python -m benchmarks.bench_main_item --folder FOLDER --runs FOLDER",
        n=f"{min(pages):,} to {max(pages):,} pages a set",
        recall="see the tables",
    )
    return "\n".join(
        [
            *lines,
            "",
            *tables(records),
            "",
            *missed_table(records),
            *evidence_table(records),
            *worst(folder, records),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="folder of the unpacked packages")
    parser.add_argument("--runs", type=Path, required=True, help="folder that keeps what was measured")
    parser.add_argument("--only", default="", help="expression that the titles of sets to judge match")
    parser.add_argument("--order", choices=(RANDOM, CRAWL), help="judge in this order only")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--output", type=Path, help="file for the tables of all runs")
    arguments = parser.parse_args()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    runs = [Run(one, order) for one in SETS for order in one.orders]
    todo = [
        run
        for run in runs
        if re.search(arguments.only, run.set.title)
        and arguments.order in (None, run.order)
        and not (arguments.runs / run.file).exists()
        and all((arguments.folder / path).is_dir() for path in run.set.folders)
    ]
    with ProcessPoolExecutor(arguments.jobs, max_tasks_per_child=1) as pool:
        waiting = {pool.submit(run.make, arguments.folder): run for run in todo}
        for done in as_completed(waiting):
            run = waiting[done]
            text = json.dumps(done.result(), ensure_ascii=False, indent=1)
            (arguments.runs / run.file).write_text(text, encoding="utf-8")
            print(f"{run.set.title}, {run.order}: done")
    if arguments.output:
        records = {
            run: json.loads((arguments.runs / run.file).read_text(encoding="utf-8"))
            for run in runs
            if (arguments.runs / run.file).exists()
        }
        arguments.output.write_text(report(arguments.folder, records), encoding="utf-8")


if __name__ == "__main__":
    main()
