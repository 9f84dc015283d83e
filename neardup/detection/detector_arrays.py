"""All that a detector knows of pages as the arrays of a snapshot, and a detector filled with them.

What is known of sites is kept in the store only (:mod:`neardup.detection.document_frequencies`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.detection.cluster_sizes import ClusterSizes
from neardup.detection.known_bits import KnownBits
from neardup.detection.known_digests import KnownDigests
from neardup.detection.known_pages import KnownPages
from neardup.index.psm.psm_index import PSMIndex
from neardup.index.registry import PSM
from neardup.text.headline import BYTES as HEADLINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from neardup.detection.detector import Detector


def arrays_of(detector: Detector) -> dict[str, Any]:
    """All that a detector knows, for :func:`neardup.detection.snapshot.save` and :func:`restore_arrays`."""
    pages = len(detector.pages)
    arrays: dict[str, Any] = {f"pages/{name}": array for name, array in detector.pages.arrays().items()}
    if isinstance(detector.index, PSMIndex):
        arrays |= {f"index/{name}": array for name, array in detector.index.arrays().items()}
    arrays |= {f"sketches/{name}": array for name, array in detector.sketches.arrays(pages).items()}
    arrays |= {f"headlines/{name}": array for name, array in detector.headlines.arrays(pages).items()}
    arrays["digests"] = detector.digests.array(pages)
    return arrays


def restore_arrays(detector: Detector, arrays: Mapping[str, npt.NDArray[Any]]) -> int:
    """Have a detector take over the pages of earlier crawls from a snapshot; returns their number.

    The snapshot is of a detector of the same scheme, minimum of features and scope. Raises SnapshotError or
    ValueError if the arrays do not fit together; nothing is taken over then.
    """
    options = detector.options
    pages = KnownPages.from_arrays(_below("pages/", arrays))
    canonical = pages.canonical.array()
    sketches = KnownBits.from_arrays(options.sketch_size, _below("sketches/", arrays), canonical)
    headlines = KnownBits.from_arrays(8 * HEADLINE_BYTES, _below("headlines/", arrays), canonical)
    digests = KnownDigests.from_snapshot(arrays.get("digests"), canonical)
    index = None
    if options.index == PSM and (stored := _below("index/", arrays)):
        index = PSMIndex.from_arrays(
            stored, max_distance=detector.rule.max_distance, recall=options.recall, pages=len(pages)
        )
    detector.pages, detector.sketches, detector.digests = pages, sketches, digests
    detector.headlines, detector.sizes = headlines, ClusterSizes(canonical)
    if index is None:
        detector.fill_index()
    else:
        detector.index = index
    return len(pages)


def _below(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
