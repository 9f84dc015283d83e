"""Precision and recall of mirrored hosts: copies planted among sites that are none.

Run as ``python -m benchmarks.bench_mirror_hosts [CORPORA] [--output FILE]``. CORPORA has ``apache2-doc``,
``clang-13-doc`` to ``clang-16-doc`` and ``kafka/36`` to ``kafka/39`` (real manuals). Each page is judged by a
detector, as in a crawl. Then ``neardup.collection.mirrors`` looks for mirrors.

Sites are disjoint groups of 20 pages, out of three quarters of the manual of Kafka 3.6. Some have one copy at
another place, with a share of the pages of the site:

- host: the same paths on another host;
- prefix: below a folder of another host;
- dated: the same paths on another host, where each page says its own date and host.

Negatives are sites of the same software, with the same paths and other pages; the manual of Apache in eleven
languages, on a host each; and versions of Clang, and of the last quarter of Kafka's manual, on a host each.
Versions may be called "same paths, near content". A pair counts as found if its class is any other. For
precision all pairs count; for recall the copies of one kind and coverage.

Each run is made twice: without IP addresses, and with them. Half of the copies then share the server of the
original. All other hosts, in an order drawn by chance, share servers by fours.

``--held-out MANUAL VERSION VERSION`` makes the same of manuals on which nothing was tuned: sites of the pages
of MANUAL, and two hosts with versions of another one.

``--scale`` measures time and memory instead, on a million made pages of 10,000 hosts.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.provenance import give, header
from neardup.collection import mirrors
from neardup.collection.mirrors import Class, SitePages
from neardup.detection.detector import Detector, DetectorOptions
from neardup.fingerprint import sketch

COVERAGES = (0.2, 0.35, 0.5, 0.75, 1.0)
KINDS = ("host", "prefix", "dated")
PAGES = 20
"""Of a site."""

HELD_OUT = 90
"""Sites of the manual that is held out, at most."""

SEED = 7
HOSTS, PAGES_OF_HOST = 10_000, 100
"""Of the made pages."""


class Web:
    """Pages by URL, and the pairs of prefixes that are copies by kind and coverage."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.copies: dict[tuple[str, str], tuple[str, float]] = {}
        self.versions: set[frozenset[str]] = set()

    def add_folder(self, host: str, folder: Path, chosen: set[str] | None = None) -> None:
        for path in sorted(folder.rglob("*.html")):
            name = path.relative_to(folder).as_posix()
            if chosen is None or name in chosen:
                self.pages[f"http://{host}/{name}"] = path.read_bytes()

    def plant(self, site: str, names: list[str], bodies: list[bytes], kind: str, coverage: float) -> None:
        for name, body in zip(names, bodies, strict=True):
            self.pages[f"http://{site}/{name}"] = body
        place = f"copy-{site}/pub/{site}" if kind == "prefix" else f"copy-{site}"
        chance = random.Random(f"{SEED} {site}")
        chosen = chance.sample(range(len(names)), round(coverage * len(names)))
        for number in chosen:
            body = bodies[number]
            if kind == "dated":
                day = chance.randrange(1, 29)
                body = body.replace(
                    b"</body>", b"<p>Mirrored by %s on %d May 2024</p></body>" % (place.encode(), day)
                )
            self.pages[f"http://{place}/{names[number]}"] = body
        self.copies[tuple(sorted((f"{site}/", f"{place}/")))] = kind, coverage  # type: ignore[index]


def made(corpora: Path) -> Web:
    web = Web()
    chance = random.Random(SEED)
    kafka = corpora / "kafka"
    paths = sorted(path.relative_to(kafka / "36") for path in (kafka / "36").rglob("*.html"))
    chance.shuffle(paths)
    plant_sites(web, [kafka / "36" / path for path in paths[: 3 * len(paths) // 4]])
    versioned = {path.as_posix() for path in paths[3 * len(paths) // 4 :]}
    manual = next((corpora / "apache2-doc").rglob("manual"))
    for language in sorted(path for path in manual.iterdir() if (path / "index.html").is_file()):
        web.add_folder(f"{language.name}.apache.example", language)
    for version in ("13", "14", "15", "16"):
        web.add_folder(f"clang{version}.example", corpora / f"clang-{version}-doc")
    for version in ("36", "37", "38", "39"):
        web.add_folder(f"kafka{version}.example", kafka / version, versioned)
    return web


def plant_sites(web: Web, files: list[Path]) -> None:
    """Make the sites of pages, and their copies; the pages that are left are sites of the same software."""
    names = [f"docs/part{number % 5}/page{number:03}.html" for number in range(PAGES)]
    groups = [files[start : start + PAGES] for start in range(0, len(files) - PAGES, PAGES)]
    plans = [(kind, coverage) for coverage in COVERAGES for kind in KINDS] * 2
    for number, group in enumerate(groups):
        bodies = [path.read_bytes() for path in group]
        site = f"site{number:02}.example"
        if number < len(plans):
            web.plant(site, names, bodies, *plans[number])
        else:  # the same software: the paths of the others with pages of its own
            for name, body in zip(names, bodies, strict=True):
                web.pages[f"http://{site}/{name}"] = body


def made_held_out(manual: Path, versions: list[Path]) -> Web:
    web = Web()
    files = sorted(manual.rglob("*.html"))
    random.Random(SEED).shuffle(files)
    plant_sites(web, files[: HELD_OUT * PAGES])
    for number, folder in enumerate(versions):
        web.add_folder(f"version{number}.example", folder)
    return web


def judged(web: Web) -> tuple[SitePages, dict[int, bytes]]:
    detector = Detector(DetectorOptions())
    pages, sketches = SitePages(), {}
    for url in random.Random(SEED).sample(sorted(web.pages), len(web.pages)):
        verdict = detector.examine_html(url, web.pages[url])
        if verdict.page_id is None or verdict.sketch is None or verdict.text_digest is None:
            continue
        cluster = verdict.page_id if verdict.canonical_id is None else verdict.canonical_id
        pages.add(url, verdict.page_id, cluster, verdict.text_digest)
        sketches[verdict.page_id] = sketch.to_bytes(verdict.sketch)
    pages.finish()
    return pages, sketches


def ips(web: Web) -> dict[str, str]:
    """The IP address of each host."""
    chance = random.Random(SEED)
    hosts = sorted({url.split("/")[2] for url in web.pages})
    chance.shuffle(hosts)
    found = {host: f"192.0.2.{number // 4}" for number, host in enumerate(hosts)}
    for pair in sorted(web.copies):
        original, copy = sorted(
            (side.partition("/")[0] for side in pair), key=lambda host: host[:4] == "copy"
        )
        if chance.random() < 0.5:
            found[copy] = found[original] = f"198.51.100.{len(found)}-{original}"
    return found


def told_of(web: Web, found: list[mirrors.Mirror]) -> str:
    """Precision and recall in a cell each."""
    pairs = {(mirror.first, mirror.second) for mirror in found if mirror.kind is not Class.NEAR}
    right = pairs & set(web.copies)
    half = [pair in pairs for pair, (_, coverage) in web.copies.items() if coverage >= 0.5]
    less = [pair in pairs for pair, (_, coverage) in web.copies.items() if coverage < 0.5]
    shares = len(right) / max(1, len(pairs)), sum(half) / len(half), sum(less) / len(less)
    return "".join(f"| {share:.3f} " for share in shares) + "|"


def is_version(first: str, second: str) -> bool:
    software = [re.match(r"(clang|kafka|version)\d+\.example/", side) for side in (first, second)]
    return all(software) and len({found[1] for found in software if found}) == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpora", type=Path, nargs="?", metavar="CORPORA")
    parser.add_argument("--output", type=Path, metavar="FILE")
    parser.add_argument("--held-out", type=Path, nargs=3, metavar=("MANUAL", "VERSION", "VERSION"))
    parser.add_argument("--scale", action="store_true")
    arguments = parser.parse_args()
    if arguments.scale:
        give(_scale(), arguments.output)
        return
    if arguments.held_out:
        manual, *versions = arguments.held_out
        web = made_held_out(manual, versions)
        given = f"--held-out {' '.join(path.name for path in arguments.held_out)}"
    else:
        web, given = made(arguments.corpora), "CORPORA"
    pages, sketches = judged(web)
    started = time.process_time()
    found = mirrors.find(pages, lambda ids: {page_id: sketches[page_id] for page_id in ids})
    seconds = time.process_time() - started
    tried = len(mirrors.candidates(pages))
    for host, ip in ips(web).items():
        pages.add_ip(host, ip)
    by_ip = mirrors.find(pages, lambda ids: {page_id: sketches[page_id] for page_id in ids})
    compared = [
        "",
        "| IP addresses | candidates | precision | recall from 50 % on | recall below |",
        "|---|---|---|---|---|",
        f"| unknown | {tried:,} {told_of(web, found)}",
        f"| known | {len(mirrors.candidates(pages)):,} {told_of(web, by_ip)}",
        "",
    ]
    give(_text(web, pages, found, seconds, given) + "\n".join(compared), arguments.output)


def _scale() -> str:
    """A tenth of the hosts mirror another one, and half of the others have its paths with other pages."""
    pages = SitePages()
    started = time.process_time()
    page_id = 0
    for host in range(HOSTS):
        mirrored = host - 1 if host % 10 == 9 else host
        software = mirrored % 7 if mirrored % 4 < 2 else mirrored
        for number in range(PAGES_OF_HOST):
            page_id += 1
            cluster = mirrored * PAGES_OF_HOST + number
            path = f"s{software}/{number % 9}/p{number}.html"
            pages.add(f"http://{host:x}h.example/{path}", page_id, cluster, cluster)
    pages.finish()
    added = time.process_time()
    found = mirrors.find(pages, lambda ids: {})
    done = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lines = [
        "# Mirrored hosts at scale",
        "",
        *header(
            "python -m benchmarks.bench_mirror_hosts --scale",
            n=f"{len(pages):,} pages, {HOSTS:,} hosts, {HOSTS // 10:,} mirrors",
            recall=f"{len(found) / (HOSTS // 10):.3f}",
        ),
        "",
        (
            f"Taking the pages in took {added - started:.1f} s of processor time, finding the mirrors"
            f" {done - added:.1f} s. The process took {memory:.2f} GiB."
        ),
        "",
    ]
    return "\n".join(lines)


def _text(web: Web, pages: SitePages, found: list[mirrors.Mirror], seconds: float, given: str) -> str:
    pairs = {(mirror.first, mirror.second): mirror for mirror in found if mirror.kind is not Class.NEAR}
    right: dict[tuple[str, float], list[bool]] = defaultdict(list)
    for pair, plan in web.copies.items():
        right[plan].append(pair in pairs)
    wrong = [pair for pair in pairs if pair not in web.copies]
    versions = [mirror for mirror in found if mirror.kind is Class.NEAR]
    of_versions = sum(is_version(mirror.first, mirror.second) for mirror in versions)
    whole = [hit for (_, coverage), hits in right.items() if coverage >= 0.5 for hit in hits]
    rows = [
        f"| {coverage:.0%} | " + " | ".join(
            f"{sum(right[kind, coverage])} of {len(right[kind, coverage])}" for kind in KINDS
        ) + " |"
        for coverage in COVERAGES
    ]  # fmt: skip
    lines = [
        "# Mirrored hosts" if given == "CORPORA" else "# Mirrored hosts, on manuals that are held out",
        "",
        *header(
            f"python -m benchmarks.bench_mirror_hosts {given}",
            n=f"{len(pages):,} pages, {len(web.copies)} copies",
            recall=f"{sum(whole) / len(whole):.3f} from 50 % coverage on",
        ),
        "",
        (
            f"Of {len(pairs)} pairs called full, partial or other paths, {len(pairs) - len(wrong)} are"
            f" planted: precision {1 - len(wrong) / max(1, len(pairs)):.3f}."
        ),
        (
            f"{len(versions)} pairs are called same paths, near content; {of_versions} are"
            f" versions. Finding took {seconds:.2f} s of processor time."
        ),
        "",
        "| coverage | " + " | ".join(KINDS) + " |",
        "|---|" + "---|" * len(KINDS),
        *rows,
        "",
        "Wrong: " + ("; ".join(f"{a} and {b} ({pairs[a, b].kind.value})" for a, b in wrong) or "none") + ".",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
