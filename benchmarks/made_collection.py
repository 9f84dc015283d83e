"""Collections of any size, made of the sketches of real pages.

``rows(n, folders)`` makes n pages. Every second page is a page of its own: a real page of which all but a
share q of the sketch is drawn anew, q being even from 0.1 to 0.75. So pages of one manual share as much as
they share by its template. Every other page is a near-copy of an earlier page, of a resemblance r even from
0.8 to 1. One in ten of the near-copies is an exact copy. Of the fingerprint, a near-copy has each bit turned
with the chance 0.2 · (1 − r). Real pages have 2.3 bits turned at r = 0.83, made ones 2.2.

``template``: the share of the pages that are near-copies, by ``likeness``, of one page.

A near-copy has the headline of its page. Another page has a headline of its own, with the words of the real
page that most pages of its host have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.collection import dataset
from neardup.detection.detector import DetectorOptions
from neardup.text.folders import html_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    Bits = npt.NDArray[np.uint64]

_HOSTS = 2_000
_AT_ONCE = 50_000
_COPIES = 0.1


@dataclass(frozen=True, slots=True)
class Made:
    """The made pages as arrays: ``sketches`` (n, 16), ``values``, ``digests``, ``of`` and ``hosts`` (n,),
    ``headlines`` (n, 20).

    ``of`` is the page that a page is a near-copy of, or the page itself.
    """

    sketches: Bits
    values: Bits
    digests: Bits
    of: npt.NDArray[np.int64]
    hosts: npt.NDArray[np.int64]
    headlines: npt.NDArray[np.uint32]


def rows(count: int, folders: Sequence[Path], *, template: float = 0.0, likeness: float = 0.95) -> Made:
    rng = np.random.default_rng(20)
    sketches, values, headlines = _real(folders)
    base = rng.integers(0, len(values), count)
    of = np.arange(count)
    near = (np.arange(count) % 2 == 1) & (rng.random(count) >= template)
    # The earlier pages that have near-copies are few, or many: cluster sizes fall as a power law.
    of[near] = 2 * (np.flatnonzero(near) // 2 * rng.random(np.count_nonzero(near)) ** 0.5).astype(np.int64)
    of_template = rng.random(count) < template
    of[of_template] = 0
    of[0] = 0
    of = of[of]  # nothing is a near-copy of a near-copy
    own = of == np.arange(count)
    base[~own] = base[of[~own]]
    shares = np.where(own, rng.uniform(0.1, 0.75, count), rng.uniform(0.8, 1.0, count))
    shares[~own & (rng.random(count) < _COPIES)] = 1.0
    shares[of_template & ~own] = likeness
    turned = np.where(own, 0.35, 0.2) * (1.0 - shares)
    made = Made(
        sketches[base],
        values[base],
        rng.integers(1, 2**63, count, dtype=np.uint64),
        of,
        rng.integers(0, _HOSTS, count),
        headlines[base].copy(),
    )
    made.headlines[own, 3] = rng.integers(1, 2**31, np.count_nonzero(own), dtype=np.uint32) * np.uint32(2)
    for is_own in (True, False):  # a near-copy is one of a page that is made
        some = np.flatnonzero(own if is_own else ~own)
        for start in range(0, some.size, _AT_ONCE):
            part = some[start : start + _AT_ONCE]
            source = part if is_own else made.of[part]
            made.sketches[part] = _redrawn(made.sketches[source], shares[part], rng)
            made.values[part] = made.values[source] ^ _mask(turned[part], 64, rng)[:, 0]
            made.headlines[part] = made.headlines[source]
    same = ~own & (shares == 1.0)
    made.digests[same] = made.digests[of[same]]
    made.hosts[~own] = made.hosts[of[~own]]
    return made


def write(made: Made, folder: Path) -> None:
    """The made pages as a collection."""
    pages = folder / "pages"
    pages.mkdir(parents=True)
    count = len(made.values)
    with pq.ParquetWriter(pages / "000000-0000.parquet", dataset.PAGES()) as writer:
        for start in range(0, count, _AT_ONCE):
            some = range(start, min(start + _AT_ONCE, count))
            writer.write_table(pa.table(_columns(made, some), schema=dataset.PAGES()))
    scheme = str(DetectorOptions().make_reader().scheme)
    dataset.write_state(folder, {"scheme": scheme, "options": {}, "inputs": [], "complete": True})


def _columns(made: Made, some: range) -> dict[str, Any]:
    part = slice(some.start, some.stop)
    none = [None] * len(some)
    return {
        "id": list(some),
        "url": [f"https://host{made.hosts[row]}.example/page-{row}.html" for row in some],
        "host": [f"host{host}.example" for host in made.hosts[part].tolist()],
        "date": none,
        "ip": none,
        "hash_value": made.values[part],
        "weak_bits": none,
        "sketch": [one.astype("<u8").tobytes() for one in made.sketches[part]],
        "features": [100] * len(some),
        "text_digest": made.digests[part],
        "headline": [one.astype("<u4").tobytes() for one in made.headlines[part]],
        "file": none,
        "place": none,
    }


def _real(folders: Sequence[Path]) -> tuple[Bits, Bits, npt.NDArray[np.uint32]]:
    reader = DetectorOptions().make_reader()
    found = [reader.read_html(path.as_uri(), path.read_bytes()) for path in html_files(folders)]
    kept = [
        (one.sketch, one.fingerprint.value, one.headline)
        for one in found
        if one.sketch is not None and one.fingerprint is not None
    ]
    sketches, values, headlines = zip(*kept, strict=True)
    return np.array(sketches), np.array(values, dtype=np.uint64), np.array(headlines)


def _mask(chances: npt.NDArray[np.float64], bits: int, rng: np.random.Generator) -> Bits:
    """Masks of so many bits, shape (n, bits // 64), each bit set with the chance of its row."""
    drawn = rng.random((chances.size, bits), dtype=np.float32) < chances[:, None]
    return np.packbits(drawn, axis=1).view(np.uint64)


def _redrawn(sketches: Bits, shares: npt.NDArray[np.float64], rng: np.random.Generator) -> Bits:
    """Sketches of which each place keeps its element with the chance of its row; half of the others keep
    their bit.
    """
    return np.asarray(sketches ^ _mask((1.0 - shares) / 2.0, 64 * sketches.shape[1], rng))
