"""What a crawl of real mirrors loses with the add-on, and how soon it finds what is unique: over HTTP, on
loopback.

Run as ``python -m benchmarks.bench_mirrors [--corpora FOLDER] [--debian PACKAGE,PACKAGE] [--only WORDS]
[--actions default,…]``. The mirrors are:

- the Clang manuals 13 to 16 and the site of Kafka 3.6 to 3.9, both archives in FOLDER;
- Debian's documentation packages, fetched by ``apt-get download``. Groups of packages are separated by
  semicolons; each group is one mirror.

A first page links to the index page of each part. Each mirror is crawled by ``scrapy crawl`` in a process of
its own, without the add-on and with it.

The truth is computed without any code of neardup. The text of the body is lxml's, and its 3-word shingles are
compared. The pages form greedy stars of an exact resemblance of at least .9, in the order of the paths. A
star is found when any of its pages is. Reported are pages and stars, those that were lost, and the requests
until 90, 95 and 99 % of the stars were found. The exit code is 1 if the defaults lost any.
"""

from __future__ import annotations

import argparse
import html as html_text
import math
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from lxml import etree, html

from benchmarks.bench_sites import requests_until
from tests.support.sites.processes import Outcome, crawl_process, make_project
from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, serve_site
from tests.support.sites.spiders import BREADTH_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

RESEMBLANCE = 0.9
ARCHIVES = {"clang 13-16": "clang-docs-13-16.tar.xz", "kafka 3.6-3.9": "kafka-36-39.tar.xz"}
DEBIAN = "libstdc++-11-doc,libstdc++-12-doc;erlang-doc"
_INDEXES = ("index.html", "index.htm")


class Mirror(MadeSite):
    """The HTML files below a folder; the first page links to the uppermost index pages."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder.resolve()
        files = (
            file for file in sorted(self.folder.rglob("*.htm*")) if file.is_file() and not file.is_symlink()
        )
        self.files = {f"/{file.relative_to(self.folder).as_posix()}": file for file in files}
        self.keys = frozenset(self.files)

    def answer(self, ask: Ask) -> Answer:
        path = unquote(ask.path)
        if path == "/":
            anchors = "".join(
                f'<p><a href="{quote(start)}">{html_text.escape(start)}</a></p>' for start in self.starts()
            )
            return Answer(f"<html><body><h1>Mirror</h1>{anchors}</body></html>")
        for name in ("", *_INDEXES):
            found = f"{path.rstrip('/')}/{name}" if name else path
            if found in self.files:
                # Its own charset counts; what is not UTF-8 is passed on as its bytes.
                body = self.files[found].read_bytes().decode("latin-1")
                return Answer(body, key=found, headers={"Content-Type": "text/html"}, encoding="latin-1")
        return NOT_FOUND

    def starts(self) -> list[str]:
        """Index pages with none above them."""
        folders = sorted({path.rpartition("/")[0] for path in self.files if path.endswith(_INDEXES)}, key=len)
        upper: list[str] = []
        for folder in folders:
            if not any(folder.startswith(f"{other}/") for other in upper):
                upper.append(folder)
        return [path for folder in upper for name in _INDEXES if (path := f"{folder}/{name}") in self.files]


def shingles(file: Path) -> frozenset[int]:
    """Hashes of the 3-word shingles of a page's body; they live no longer than this process."""
    try:
        root = html.fromstring(file.read_bytes())
    except (etree.ParserError, ValueError):
        return frozenset()
    etree.strip_elements(root, "head", "script", "style", etree.Comment, with_tail=False)
    words = re.findall(r"\w+", " ".join(map(str, root.itertext())).casefold())
    return frozenset(hash(tuple(words[i : i + 3])) for i in range(len(words) - 2))


def stars(sets: Mapping[str, frozenset[int]]) -> dict[str, str]:
    """For each page that of an exact resemblance of at least .9 that came first, or itself; in the order
    given.

    Two such sets of which each has its shingles in one order, the rare ones first, share one of the first |A|
    - ceil(.9 |A|) + 1 of each (Chaudhuri et al., the prefix filter): only those are looked up.
    """
    often = Counter(shingle for found in sets.values() for shingle in found)
    by_shingle: dict[int, list[str]] = defaultdict(list)
    star: dict[str, str] = {}
    for path, found in sets.items():
        size = len(found)
        prefix = sorted(found, key=lambda shingle: (often[shingle], shingle))
        prefix = prefix[: size - math.ceil(RESEMBLANCE * size) + 1]
        candidates = dict.fromkeys(other for shingle in prefix for other in by_shingle.get(shingle, ()))
        star[path] = next((other for other in candidates if resemble(found, sets[other])), path)
        if star[path] == path:
            for shingle in prefix:
                by_shingle[shingle].append(path)
    return star


def resemble(a: frozenset[int], b: frozenset[int]) -> bool:
    if min(len(a), len(b)) < RESEMBLANCE * max(len(a), len(b)):
        return False
    common = len(a & b)
    return common >= RESEMBLANCE * (len(a) + len(b) - common)


def mirrors(corpora: Path, debian: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Names and folders of the mirrors, unpacked one after the other."""
    for name, archive in ARCHIVES.items():
        if (corpora / archive).is_file():
            target = folder / archive
            with tarfile.open(corpora / archive) as packed:
                packed.extractall(target, filter="data")
            yield name, target
        else:
            print(f"not run, {corpora / archive} is missing: {name}")
    for group in filter(None, debian.split(";")):
        target = folder / group.replace(",", "+")
        target.mkdir()
        subprocess.run(
            ["apt-get", "download", "-q", *group.split(",")],
            cwd=target,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        for package in target.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, target / package.name.partition("_")[0]], check=True)
        yield group.replace(",", " + "), target


def keyed(outcome: Outcome, star: Mapping[str, str]) -> Outcome:
    """The same crawl with the star of each page as its key."""
    requests = [request._replace(key=star.get(request.key or "")) for request in outcome.requests]
    return Outcome(requests, outcome.items, outcome.stats, outcome.log)


def compare(name: str, folder: Path, work: Path, actions: Iterable[str], settings: dict[str, object]) -> bool:
    """Crawl a mirror in all modes and print its table; whether the defaults lost nothing."""
    site = Mirror(folder)
    outcomes: dict[str, Outcome] = {}
    for mode in ["without", *actions]:
        project = Path(tempfile.mkdtemp(dir=work))
        make_project(project, addon=mode != "without")
        action = {} if mode in {"without", "default"} else {"NEARDUP_ACTION": mode}
        with serve_site(site) as served:
            outcomes[mode] = crawl_process(served, project, {**settings, **action})
    reached = sorted(outcomes["without"].found)
    star = stars({path: shingles(site.files[path]) for path in reached})
    unique = frozenset(star.values())
    print(f"\n### {name} ({len(site.files):,} files, {len(reached):,} linked, {len(unique):,} unique)\n")
    print("| mode | requests | pages | lost | unique | lost | requests until 90 % | 95 % | 99 % | end |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    held = True
    for mode, outcome in outcomes.items():
        of_stars = keyed(outcome, star)
        lost, lost_unique = len(set(reached) - outcome.found), len(unique - of_stars.found)
        print(
            f"| {mode} | {len(outcome.requests):,} | {len(outcome.found):,} | {lost:,} |"
            f" {len(of_stars.found):,} |"
            f" {lost_unique:,} | {' | '.join(requests_until(of_stars, unique))} |"
            f" {outcome.stats['finish_reason']} |",
            flush=True,
        )
        if mode == "default":
            held = lost_unique == 0
    return held


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", type=Path, default=Path("corpora"), help="folder of the archives")
    parser.add_argument("--debian", default=DEBIAN, help="packages; empty: none")
    parser.add_argument("--only", default="", help="mirrors whose names contain this")
    parser.add_argument("--actions", default="default", help="separated by commas; default sets none")
    parser.add_argument("--order", choices=("depth", "breadth"), default="depth")
    arguments = parser.parse_args()
    settings = BREADTH_FIRST if arguments.order == "breadth" else {}
    failed = []
    with tempfile.TemporaryDirectory() as name:
        for mirror, folder in mirrors(arguments.corpora, arguments.debian, Path(name)):
            if arguments.only in mirror and not compare(
                mirror, folder, Path(name), arguments.actions.split(","), dict(settings)
            ):
                failed.append(mirror)
    if failed:
        print(f"\nthe defaults lost unique pages of: {', '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
