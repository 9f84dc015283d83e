"""PageRank (Brin & Page 1998, The Anatomy of a Large-Scale Hypertextual Web Search Engine, section 2.1).

The rank of a node is the share of time that a random surfer spends there. The surfer follows a link of the
page with the probability ``damping``, and else goes anywhere. From a page without links the surfer goes
anywhere, too (Page et al. 1999, The PageRank Citation Ranking, section 2.7).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from neardup.collection.link_graph import LinkGraph

DAMPING = 0.85
"""That of the paper."""

MOST_DAMPING = 0.99
"""With more, iterations are tens of thousands, and in the end the rounding alone is more than ``ERROR``."""

ERROR = 1e-9
"""Most by which the ranks differ from the exact ones, in all (L1)."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """``values``, shape (nodes,), dtype float64, sum to 1. ``error``: a bound on their L1 distance from the
    exact ranks.
    """

    values: npt.NDArray[np.float64]
    iterations: int
    error: float


def check_damping(damping: float) -> None:
    """ConfigurationError unless a damping factor is above 0 and at most ``MOST_DAMPING``."""
    if not 0.0 < damping <= MOST_DAMPING:
        raise ConfigurationError(
            f"the damping is above 0 and at most {MOST_DAMPING}, such as {DAMPING}, not {damping}"
        )


def pagerank(
    graph: LinkGraph,
    *,
    damping: float = DAMPING,
    begun: Ranks | None = None,
    on_iteration: Callable[[Ranks], None] = lambda ranks: None,
) -> Ranks:
    """The ranks of a graph that has a node; ``on_iteration`` is told the ranks after each iteration.

    ``begun``: the ranks after some iterations on the same graph with the same damping, to go on from.

    Each iteration brings the ranks nearer to the exact ones by the factor ``damping``, in the L1 norm. So a
    change c bounds the distance by c × damping / (1 - damping). Memory has 12 bytes for each link and 40 for
    each node.
    """
    check_damping(damping)
    matrix = _matrix(graph)
    nodes = graph.nodes
    dangling = np.flatnonzero(graph.degrees == 0)
    shares = damping / np.maximum(graph.degrees, 1)
    ranks = begun or Ranks(np.full(nodes, 1.0 / nodes), 0, float("inf"))
    while ranks.error >= ERROR:
        values = ranks.values
        spread = damping * float(values[dangling].sum()) + 1.0 - damping
        after = matrix @ (values * shares)
        after += spread / nodes
        change = float(np.abs(after - values).sum())
        ranks = Ranks(after, ranks.iterations + 1, change * damping / (1.0 - damping))
        on_iteration(ranks)
    return ranks


def _matrix(graph: LinkGraph) -> Any:
    try:
        sparse = importlib.import_module("scipy.sparse")
    except ImportError as exc:
        raise ConfigurationError("PageRank needs scipy: pip install 'neardup[graph]'") from exc
    few = graph.links < 1 << 31
    starts = graph.starts.astype(np.int32) if few else graph.starts
    matrix = sparse.csr_array((graph.nodes, graph.nodes))
    # Given to the constructor, the arrays would be copied or checked at length.
    matrix.data, matrix.indices, matrix.indptr = np.ones(graph.links), graph.sources, starts
    return matrix
