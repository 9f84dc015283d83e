"""Collections whose fingerprints, sketches and ranks are told by a test."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.address import Address
from neardup.collection.dataset import Collection, PartWriter, part_name, write_state
from neardup.detection.detector import DetectorOptions
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Made(NamedTuple):
    """A page at ``http://HOST/NAME``. Two pages differ in as many places of their sketches as their
    ``turned`` differ, of 1,024.
    """

    name: str
    value: int | None
    rank: float = 1.0
    turned: int = 0
    host: str = "a.example"
    features: int = 50

    @property
    def url(self) -> str:
        return f"http://{self.host}/{self.name}"


def make_collection(folder: Path, pages: Sequence[Made], *, parts: int = 1) -> Path:
    """A complete collection with PageRank; the ids of the pages rise in their order."""
    collection = Collection(folder, str(DetectorOptions().make_reader().scheme))
    for below in (collection.pages, collection.links):
        below.mkdir(parents=True)
    size = -(-len(pages) // parts)
    for part in range(parts):
        some = range(part * size, min((part + 1) * size, len(pages)))
        writer = PartWriter(collection, part_name(0, part))
        for number in some:
            page = pages[number]
            bits = np.arange(1024) < page.turned
            drawn = sketch.to_bytes(np.packbits(bits).view(np.uint64))
            address = Address.of(page.url)
            known = page.value is not None
            writer.page(
                (
                    number, address.url, address.host, None, None, page.value, bytes(48) if known else None,
                    drawn if known else None, page.features, 1 if known else None, None, "made", number,
                )
            )  # fmt: skip
        writer.finish(
            {"first": 0, "next": len(pages), "pages": len(some), "links": 0, "skipped": {}, "examples": []}
        )
    state = {
        "scheme": collection.scheme,
        "options": {},
        "inputs": [{"name": "made", "identity": {}}],
        "complete": True,
    }
    write_state(folder, state)
    ranks = {"id": np.arange(len(pages)), "pagerank": np.array([page.rank for page in pages])}
    pq.write_table(pa.table(ranks), folder / "pagerank.parquet")
    return folder


def run_of(path: Path, results: dict[str, list[str]]) -> Path:
    """A TREC run: the URLs of each query, the best first."""
    lines = [
        f"{query} Q0 {url} {rank} {1 / (rank + 1):.4f} made\n"
        for query, urls in results.items()
        for rank, url in enumerate(urls)
    ]
    path.write_text("".join(lines))
    return path


def article_and_diff() -> list[str]:
    """Pages of a wiki: ten with a banner, then an article, then a diff of the article.

    The diff has the banner and four other words of 250. What is rare in both is reckoned as all alike.
    """
    chosen = random.Random(9)

    def text(number: int) -> str:
        return " ".join("".join(chosen.choices("aeioulmnrst", k=5)) for _ in range(number))

    def page(title: str, body: str, beside: str = "") -> str:
        return f"<title>{title}</title><h1>{title}</h1><p>{menu}<p>{beside}<p>{body}"

    banner, menu = text(120), text(60)
    others = [page(text(2), text(250), banner) for _ in range(10)]
    article = text(250).split()
    changed = list(article)
    for place in chosen.sample(range(5, 245), 4):
        changed[place] = text(1)
    diff = page("moby word", " ".join(changed), banner)
    return [*others, page("moby word", " ".join(article)), diff]
