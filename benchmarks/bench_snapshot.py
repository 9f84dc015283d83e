"""Known pages and their snapshot: bytes a page, adding and looking up, the longest pause, saving and loading.

Run as ``python -m benchmarks.bench_snapshot --n 10000000``. URLs are made up, some 80 characters long. Each
number is shown only after what was loaded, in a new process, has been compared with what was made.
"""

from __future__ import annotations

import argparse
import gc
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from neardup.address import Address
from neardup.detection import snapshot
from neardup.detection.known_pages import KnownPages

BATCH = 10_000
SAMPLE = 200_000
MILLION = 1e6
WORDS = ("guide", "reference", "release", "notes", "install", "download", "archive", "index", "user", "api")


def url_of(number: int) -> str:
    mixed = number * 0x9E3779B97F4A7C15 & (1 << 64) - 1
    words = f"{WORDS[number % 10]}/{WORDS[mixed >> 33 & 7]}/{WORDS[mixed >> 40 & 7]}"
    return f"https://www{mixed % 50}.example.org/{words}/page-{number}.html?session={mixed:x}"


def value_of(number: int) -> int:
    return number * 0xD1B54A32D192ED03 & (1 << 64) - 1


def canonical_of(number: int) -> int:
    return (number, number // 2, -1)[number % 3]


def resident() -> int:
    """Bytes of this process in memory that no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


def sample(n: int) -> list[int]:
    numbers: list[int] = np.random.default_rng(1).integers(0, n, min(n, SAMPLE)).tolist()
    return numbers


def check(pages: KnownPages, n: int) -> None:
    """Compare a sample of the pages, and all numbers, with what was made."""
    assert len(pages) == n
    for number in sample(n):
        url = url_of(number)
        assert pages.row(Address(url)) == number
        assert pages.row(Address(url + "?")) == -1
        assert pages.urls[number] == url
        assert pages.values[number] == value_of(number)
        assert pages.canonical[number] == canonical_of(number)
    numbers = np.arange(n, dtype=np.int64)
    assert np.array_equal(pages.ids.array(), numbers + 7)
    assert np.array_equal(pages.values.array(), numbers.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03))


def fill(n: int) -> KnownPages:
    """Add n pages one by one, timing each call, by the clock and by the CPU: others may be running."""
    gc.collect()
    before = resident()
    pages = KnownPages()
    total = longest = longest_cpu = 0.0
    slow = 0
    for start in range(0, n, BATCH):
        made = [(url_of(i), i + 7, value_of(i), canonical_of(i)) for i in range(start, min(start + BATCH, n))]
        for url, page_id, value, canonical in made:
            began_cpu, began = time.thread_time(), time.perf_counter()
            pages.add(Address(url), page_id=page_id, value=value, canonical=canonical)
            took = time.perf_counter() - began
            total += took
            longest = max(longest, took)
            longest_cpu = max(longest_cpu, time.thread_time() - began_cpu)
            slow += took > 0.001
    gc.collect()
    in_memory = (resident() - before) / n
    text = sum(part.nbytes for part in pages.arrays()["urls"]) / n
    print(f"  add           {n / total:12,.0f} /s, {MILLION * total / n:.2f} µs each,", end=" ")
    print(f"{1e3 * longest:.2f} ms the longest ({1e3 * longest_cpu:.2f} of CPU), {slow} above 1 ms")
    print(f"  in memory     {in_memory:12.1f} bytes a page, {text:.1f} of them its URL's", flush=True)
    return pages


def look_up(pages: KnownPages, n: int) -> None:
    urls = [url_of(number) for number in sample(n)]
    began = time.perf_counter()
    for url in urls:
        pages.row(Address(url))
    took = (time.perf_counter() - began) / len(urls)
    began = time.perf_counter()
    [Address(url).key for url in urls]
    hashing = (time.perf_counter() - began) / len(urls)
    unknown = [f"{url}&new" for url in urls]
    began = time.perf_counter()
    for url in unknown:
        pages.row(Address(url))
    missing = (time.perf_counter() - began) / len(urls)
    print(
        f"  row           {1 / took:12,.0f} /s, {MILLION * took:.2f} µs known, {MILLION * missing:.2f} µs"
        " not",
        end="",
    )
    print(f", {MILLION * hashing:.2f} µs of it BLAKE2b", flush=True)


def extend(n: int) -> None:
    pages = KnownPages()
    total = 0.0
    for start in range(0, n, BATCH):
        numbers = range(start, min(start + BATCH, n))
        urls = [url_of(number) for number in numbers]
        values = [value_of(number) for number in numbers]
        canonical = [canonical_of(number) for number in numbers]
        began = time.perf_counter()
        pages.extend(urls, ids=[number + 7 for number in numbers], values=values, canonical=canonical)
        total += time.perf_counter() - began
    check(pages, n)
    print(f"  extend        {n / total:12,.0f} /s, {MILLION * total / n:.2f} µs a page", flush=True)


def load(path: Path, n: int) -> None:
    """In a process of its own: load, check, go on adding."""
    before = resident()
    began = time.perf_counter()
    loaded = snapshot.load(path, kind="bench")
    mapped = time.perf_counter()
    pages = KnownPages.from_arrays(loaded.arrays)
    done = time.perf_counter()
    print(
        f"  load          {done - began:12.2f} s, {mapped - began:.2f} of them mapping and checksums;",
        end=" ",
    )
    print(f"{(resident() - before) / n:.1f} bytes a page not backed by the file", flush=True)
    check(pages, n)
    longest = total = 0.0
    for number in range(n, n + SAMPLE):
        url = url_of(number)
        began = time.perf_counter()
        row = pages.add(
            Address(url), page_id=number + 7, value=value_of(number), canonical=canonical_of(number)
        )
        took = time.perf_counter() - began
        assert row == number
        longest, total = max(longest, took), total + took
    check(pages, n + SAMPLE)
    print(f"  add, loaded   {SAMPLE / total:12,.0f} /s, {1e3 * longest:.2f} ms the longest")


def run(n: int, folder: Path) -> None:
    print(f"{n:,} pages", flush=True)
    pages = fill(n)
    look_up(pages, n)
    check(pages, n)
    path = folder / "known.snapshot"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    snapshot.save(path, kind="bench", meta={"pages": n}, arrays=pages.arrays())
    took = time.perf_counter() - began
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"  save          {took:12.2f} s, {path.stat().st_size / n:.1f} bytes a page,", end=" ")
    print(f"{more / 1024:.0f} MB more memory", flush=True)
    command = [sys.executable, "-m", "benchmarks.bench_snapshot", "--n", str(n), "--load", str(path)]
    subprocess.run(command, check=True)
    del pages
    extend(min(n, 1_000_000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument(
        "--load", type=Path, help="only load this snapshot (what the benchmark starts itself)"
    )
    arguments = parser.parse_args()
    if arguments.load:
        load(arguments.load, arguments.n)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(arguments.n, Path(folder))


if __name__ == "__main__":
    main()
