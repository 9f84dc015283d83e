"""What crawls find, against the exact answer from the same fingerprints.

Run as ``python -m tests.benchmarks.bench_found FOLDER START…``: FOLDER is crawled as a folder and, served on loopback, along
its links from the START paths; each twice over one database. The exact answer: the stored fingerprints in the order in which
the pages were judged, each compared with all canonical pages before it by a linear scan.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from neardup import hamming
from neardup.index.scan import LinearScan
from neardup.scheme import Scheme
from neardup.simhash import Fingerprint
from neardup.store.schema import duplicate_values, simhash_values
from neardup.store.store import Store
from tests.benchmarks.bench_crawl import ROOT, served

MAX_DISTANCE = 3
MIN_FEATURES = 10


def crawl(url: str, database: str) -> str:
    """Summary of one crawl by the ready project."""
    command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"url={url}"]
    environment = {**os.environ, "NEARDUP_DATABASE_URL": database}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    start = done.stderr.index("neardup: summary")
    return "\n".join(done.stderr[start:].splitlines()[:5])


def compare(database: str) -> str:
    """The stored relations against the exact ones."""
    with Store.open(database, scheme=str(Scheme())) as store, store.reading() as connection:
        pages = connection.execute(
            sa.select(simhash_values.c.id, simhash_values.c.hash_value, simhash_values.c.features).order_by(
                simhash_values.c.id
            )
        ).all()
        relations = dict(
            connection.execute(
                sa.select(duplicate_values.c.duplicate_hash_id, duplicate_values.c.hamming_distance)
            ).all()
        )
    scan = LinearScan(max_distance=MAX_DISTANCE)
    nearest: dict[int, int] = {}
    values = []
    for page_id, value, features in pages:
        if value is None or features < MIN_FEATURES:
            continue
        values.append(value)
        match = scan.find_first(Fingerprint(value, np.zeros(64)))
        if match is None:
            scan.add(value, page_id)
        else:
            nearest[page_id] = match.distance
    assert len(pages) > 0
    assert max(relations.values(), default=0) <= MAX_DISTANCE
    array = np.array(values, dtype=np.uint64)
    pairs = sum(
        int(np.count_nonzero(hamming.distances(array[i + 1 :], int(array[i])) <= MAX_DISTANCE))
        for i in range(len(array))
    )
    found_exact = sum(distance == 0 for distance in relations.values())
    wanted_exact = sum(distance == 0 for distance in nearest.values())
    return (
        f"  stored: {len(pages)} pages, {len(relations)} duplicates, {found_exact} of them at distance 0\n"
        f"  exact:  {len(nearest)} duplicates (nearest canonical page at distance 0: {wanted_exact}),"
        f" {pairs} pairs of pages within {MAX_DISTANCE}\n"
        f"  found of the exact ones {len(relations.keys() & nearest.keys())}, missed {len(nearest.keys() - relations.keys())},"
        f" not among them {len(relations.keys() - nearest.keys())}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("starts", nargs="+")
    arguments = parser.parse_args()
    with served(arguments.folder, arguments.starts) as http:
        for name, url in (("folder", str(arguments.folder)), ("HTTP", http)):
            with tempfile.TemporaryDirectory() as folder:
                database = f"sqlite:///{folder}/n.db"
                for number in ("first", "second"):
                    print(f"{name}, {number} crawl: {crawl(url, database)}")
                    print(compare(database))


if __name__ == "__main__":
    main()
