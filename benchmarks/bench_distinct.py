"""Near-duplicates out of the results of a query: time of a call, and of a request over loopback.

``python -m benchmarks.bench_distinct FOLDER… [--out FILE]``. Results are pages of the folders (``*.html``),
50 a query: file names are drawn at random, and all pages of a name are results, as versions of a manual are
when somebody searches for one page. By the call, sketches are given, and processor time is measured.

Over HTTP ``neardup serve --results`` is asked by one client that keeps its connection. The time until the
answer is read is wall time, because somebody waits for it. On a machine with other work, the quietest round
tells most. The processor time of the server stands beside it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.bench_web import processor_seconds
from benchmarks.provenance import give, header
from neardup.collection import distinct
from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.rule import VERIFY
from neardup.fingerprint import sketch
from neardup.store.store import Store
from tests.support.stores import upgraded, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.fingerprint.sketch import Compact

_RESULTS, _KEEP = 50, 10
_QUERIES = 200
_ROUNDS = 20
_REQUESTS_OF_ROUND, _REQUEST_ROUNDS = 200, 10
_MOST_PAGES = 2_000


def read(folders: list[Path], url: str) -> tuple[list[str], list[Compact], list[str]]:
    """URLs, sketches and texts of some pages of the folders, which are stored as well."""
    files = sorted(path for folder in folders for path in folder.rglob("*.html") if path.is_file())
    files = random.Random(0).sample(files, min(_MOST_PAGES, len(files)))
    options = DetectorOptions()
    reader = options.make_reader()
    reader.keeps_text = True
    detector = Detector(options)
    urls, sketches, texts, verdicts = [], [], [], []
    for path in files:
        reading = reader.read_html(path.as_uri(), path.read_bytes())
        if reading.sketch is not None and reading.text is not None:
            urls.append(path.as_uri())
            sketches.append(reading.sketch)
            texts.append(reading.text.decode("utf-8", "replace"))
            verdicts.append(detector.examine_html(path.as_uri(), path.read_bytes()))
    with Store.open(upgraded(url), scheme=str(reader.scheme)) as store:
        write(store, *verdicts)
    return urls, sketches, texts


def by_call(queries: list[list[int]], sketches: list[Compact]) -> Iterator[tuple[str, str]]:
    """Microseconds of a call in the best of the rounds, and what was found."""
    results = [[(number, sketches[number]) for number in query] for query in queries]
    rounds = []
    for _ in range(_ROUNDS):
        started = time.process_time()
        for one in results:
            distinct(one, _KEEP)
        rounds.append((time.process_time() - started) / len(results))
    found = [distinct(one, _KEEP) for one in results]
    for one, kept in zip(results, found, strict=True):
        of = dict(one)
        stacked = np.array([of[result.id] for result in kept])
        for place, result in enumerate(kept):
            others = np.delete(sketch.compact_estimates(stacked, of[result.id]), place)
            assert (others < VERIFY).all()
    hidden = sum(len(result.hides) for kept in found for result in kept) / len(found)
    yield f"call, best round of {_ROUNDS}, µs of CPU", f"{1e6 * min(rounds):.0f}"
    yield "call, median round, µs of CPU", f"{1e6 * float(np.median(rounds)):.0f}"
    yield "hidden in a query, mean", f"{hidden:.1f}"


def over_http(what: str, options: list[str], bodies: list[bytes]) -> Iterator[tuple[str, str]]:
    """Milliseconds of a request."""
    server = subprocess.Popen(
        [sys.executable, "-m", "neardup", "serve", "--results", "--port", "0", *options],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    server.stdout.readline()
    port = int(server.stdout.readline().rpartition(":")[2].partition("/")[0])
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for body in bodies[:50]:
            _asked(connection, body)
        before = processor_seconds(server.pid)
        times = np.array(
            [
                [_asked(connection, bodies[number % len(bodies)]) for number in range(_REQUESTS_OF_ROUND)]
                for _ in range(_REQUEST_ROUNDS)
            ]
        )
        cpu = (processor_seconds(server.pid) - before) / times.size
        connection.close()
    finally:
        server.terminate()
        server.wait()
    yield f"{what}, kB a request", f"{sum(map(len, bodies)) / len(bodies) / 1000:.0f}"
    for share in (50, 99):
        of_rounds = 1000 * np.percentile(times, share, axis=1)
        yield f"{what}, p{share} of all, ms", f"{1000 * float(np.percentile(times, share)):.1f}"
        yield f"{what}, p{share} of the quietest round, ms", f"{of_rounds.min():.1f}"
    yield f"{what}, CPU of the server, ms", f"{1000 * cpu:.1f}"


def _asked(connection: http.client.HTTPConnection, body: bytes) -> float:
    started = time.perf_counter()
    connection.request("POST", "/results", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    sent: Any = json.loads(answer.read())
    seconds = time.perf_counter() - started
    assert answer.status == 200, sent
    assert sent["neardup"]["unknown"] == 0
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/n.db"
        urls, sketches, texts = read(arguments.folders, url)
        draw = random.Random(1)
        queries = [_query(urls, draw) for _ in range(_QUERIES)]
        rows += by_call(queries, sketches)
        stored = [_answer(query, "url", urls) for query in queries]
        rows += over_http("request, sketches of the store", ["--database", url], stored)
        given = [_answer(query, "body", texts) for query in queries]
        rows += over_http("request, texts in the answer", ["--text-field", "body"], given)
    lines = [
        "# Near-duplicates out of the results of a query",
        "",
        *header(
            "python -m benchmarks.bench_distinct FOLDER…",
            n=f"{len(urls):,} pages; {_QUERIES} queries of {_RESULTS} results, {_KEEP} kept;"
            f" {_REQUEST_ROUNDS} rounds of {_REQUESTS_OF_ROUND} requests",
            recall="exact: by the sketches of all",
        ),
        f"- load of the machine when done: {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows),
        "",
    ]
    give("\n".join(lines), arguments.out)


def _query(urls: list[str], draw: random.Random) -> list[int]:
    """Places of the results, in random order."""
    by_name: dict[str, list[int]] = {}
    for place, url in enumerate(urls):
        by_name.setdefault(url.rpartition("/")[2], []).append(place)
    names = draw.sample(sorted(by_name), min(_RESULTS, len(by_name)))
    query = [place for name in names for place in by_name[name]][:_RESULTS]
    draw.shuffle(query)
    return query


def _answer(query: list[int], field: str, values: list[str]) -> bytes:
    """As Elasticsearch gives it."""
    hits = [
        {"_id": str(number), "_score": 1.0, "_source": {field: values[number], "title": f"result {number}"}}
        for number in query
    ]
    return json.dumps({"took": 3, "hits": {"total": {"value": 1000}, "hits": hits}}).encode()


if __name__ == "__main__":
    main()
