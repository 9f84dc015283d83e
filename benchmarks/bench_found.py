"""What crawls find, against the exact answer from the same fingerprints.

Run as ``python -m benchmarks.bench_found FOLDER START…``. FOLDER is crawled as a folder and, served on
loopback, along its links from the START paths. Both crawls run twice over one database.

The exact answer takes the stored fingerprints in the order in which the pages were judged. Each fingerprint
is compared with all canonical pages before it, by the rule and the stored sketches.
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

from benchmarks.bench_crawl import served
from neardup.detection.detector import DetectorOptions
from neardup.fingerprint import hamming, sketch
from neardup.fingerprint.scheme import Scheme
from neardup.store.schema import duplicate_values, simhash_values
from neardup.store.store import Store
from tests.support.places import ROOT

OPTIONS = DetectorOptions()
RULE = OPTIONS.make_rule(OPTIONS.make_reader().features)


def crawl(url: str, database: str) -> str:
    """Summary of one crawl by the ready project."""
    command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"url={url}"]
    environment = {**os.environ, "NEARDUP_DATABASE_URL": database}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    start = done.stderr.index("neardup: summary")
    return "\n".join(done.stderr[start:].splitlines()[:6])


def compare(database: str) -> str:
    """The stored relations against the exact ones."""
    with Store.open(database, scheme=str(Scheme())) as store, store.reading() as connection:
        page = simhash_values.c
        columns = sa.select(page.id, page.hash_value, page.sketch, page.features).order_by(page.id)
        stored = connection.execute(columns).all()
        relations = dict(
            connection.execute(
                sa.select(duplicate_values.c.duplicate_hash_id, duplicate_values.c.hamming_distance)
            ).all()
        )
    pages = [row for row in stored if row.hash_value is not None and row.features >= OPTIONS.min_features]
    values = np.array([row.hash_value for row in pages], dtype=np.uint64)
    sketches = np.stack([sketch.from_bytes(row.sketch) for row in pages])
    canonical: list[int] = []
    exact: dict[int, int] = {}
    for place, row in enumerate(pages):
        distances = hamming.distances(values[canonical], row.hash_value)
        matches = RULE.are_matches(distances, sketch.compact_estimates(sketches[canonical], sketches[place]))
        if matches.any():
            exact[row.id] = int(distances[matches].min())
        else:
            canonical.append(place)
    assert len(pages) > 0
    assert max(relations.values(), default=0) <= RULE.max_distance
    found_twins = sum(distance == 0 for distance in relations.values())
    exact_twins = sum(distance == 0 for distance in exact.values())
    return (
        f"  stored: {len(stored)} pages, {len(relations)} duplicates, {found_twins} of them at distance 0\n"
        f"  exact:  {len(exact)} duplicates (nearest canonical page that matches at distance 0:"
        f" {exact_twins})\n"
        f"  found of the exact ones {len(relations.keys() & exact.keys())}, missed"
        f" {len(exact.keys() - relations.keys())},"
        f" not among them {len(relations.keys() - exact.keys())}"
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
