"""What SQL does not say: keys of headlines, sites of pages, and the rule on pairs, over Arrow record batches.

Each works row by row, so that neither the order of the rows nor their batches matter.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.address import Address
from neardup.detection.document_frequencies import RARE_PAGES
from neardup.detection.frequency_kernels import MOST_COUNT, whole_keys, word_keys
from neardup.detection.verification import stored_evidence
from neardup.parquet import arrow_module
from neardup.text import headline as headlines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from neardup.detection.frequency_kernels import Headlines, Keys, Site
    from neardup.detection.rule import Rule
    from neardup.detection.scope import Scope

_CELLS_PER_KEY = 64
"""Two keys share both of their cells with the chance of 1 in 4,096."""


class HeadlineKeys:
    """Makes (host, key) of (host, headline): a row for each key that the headline is counted by."""

    def schema(self) -> Any:
        arrow = _arrow()
        return arrow.schema([("host", arrow.string()), ("key", arrow.int64())])

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        arrow, schema = _arrow(), self.schema()
        for batch in map(_plain, batches):
            found = _headlines(batch["headline"])
            keys = np.concatenate((word_keys(found), whole_keys(found)), axis=1)
            keys[:, : found.shape[1]][found == 0] = 0  # no word
            keys = np.sort(keys, axis=1)
            counted = keys != 0
            counted[:, 1:] &= keys[:, 1:] != keys[:, :-1]
            rows, columns = np.nonzero(counted)
            hosts = batch["host"].take(arrow.array(rows))
            yield arrow.record_batch(
                [hosts.cast(arrow.string()), arrow.array(keys[rows, columns].view(np.int64))], schema=schema
            )


class Sites:
    """Makes (id, site) of (id, url): the site of each page, which its canonical page is of as well."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def schema(self) -> Any:
        arrow = _arrow()
        return arrow.schema([("id", arrow.int64()), ("site", arrow.string())])

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        arrow, schema = _arrow(), self.schema()
        for batch in batches:
            sites = [self._scope.site(Address(url)) for url in batch["url"].to_pylist()]
            yield arrow.record_batch([batch["id"], arrow.array(sites, arrow.string())], schema=schema)


class Templates:
    """What many headlines of a host have, by host: all of a headline's counts that the rule asks for.

    ``keys``: those of each host that stand on more of its pages than a rare one may.
    """

    def __init__(self, keys: Mapping[str, Keys]) -> None:
        self._keys = keys
        self._sites: dict[str, Site] = {}

    def site(self, host: str) -> Site:
        """See :meth:`neardup.detection.document_frequencies.DocumentFrequencies.site`."""
        keys = self._keys.get(host)
        if keys is None:
            return None, RARE_PAGES
        if host not in self._sites:
            cells = np.zeros((2, 1 << int(_CELLS_PER_KEY * keys.size - 1).bit_length()), dtype=np.uint16)
            mask = np.uint64(cells.shape[1] - 1)
            cells[0, (keys & mask).astype(np.int64)] = MOST_COUNT
            cells[1, (keys >> np.uint64(32) & mask).astype(np.int64)] = MOST_COUNT
            self._sites[host] = cells, RARE_PAGES
        return self._sites[host]


class Judgement:
    """Makes (a, b, distance, differing, evidence) of the pairs of pages that match by the rule.

    ``differing`` is the number of places in which the sketches differ. The pairs come as a, b, and for each
    of the two the value, sketch, headline and host, ``value_a`` and so on.
    """

    def __init__(self, rule: Rule, templates: Templates, places: int) -> None:
        self._rule = rule
        self._templates = templates
        self._places = places

    def schema(self) -> Any:
        arrow = _arrow()
        return arrow.schema(
            [
                ("a", arrow.int64()),
                ("b", arrow.int64()),
                ("distance", arrow.int32()),
                ("differing", arrow.int32()),
                ("evidence", arrow.string()),
            ]
        )

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        arrow, schema = _arrow(), self.schema()
        for batch in map(_plain, batches):
            distances = np.bitwise_count(_numbers(batch["value_a"]) ^ _numbers(batch["value_b"]))
            one, other = (self._sketches(batch[name]) for name in ("sketch_a", "sketch_b"))
            differing = np.bitwise_count(one ^ other).sum(axis=1, dtype=np.int32)
            wholes = np.maximum(0.0, 1.0 - 2.0 * differing / self._places)
            near = np.flatnonzero(self._rule.are_matches(distances, wholes))
            if near.size < batch.num_rows:
                batch = batch.take(arrow.array(near))  # noqa: PLW2901
                distances, differing, wholes = distances[near], differing[near], wholes[near]
            evidence = self._evidence(batch, distances, wholes)
            columns = [batch["a"], batch["b"], distances.astype(np.int32), differing, evidence]
            judged = arrow.record_batch([arrow.array(column) for column in columns], schema=schema)
            yield judged.filter(judged["evidence"].is_valid())

    def _sketches(self, column: Any) -> npt.NDArray[np.uint64]:
        return np.frombuffer(_bytes(column), dtype="<u8").reshape(-1, self._places // 64)

    def _evidence(
        self, batch: Any, distances: npt.NDArray[np.uint8], wholes: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.object_]:
        """Why each pair of a batch matches, all of which match as a whole; None: it does not.

        All that is left to tell are headlines and hosts. Near-copies have the same ones. So few pairs are
        judged, and all others like one of these.
        """
        own, other = _traits(batch, "a"), _traits(batch, "b")
        both = own * (other.max(initial=0) + 1) + other
        _, judged, like = np.unique(both, return_index=True, return_inverse=True)  # own traits rise
        few = batch.take(_arrow().array(judged))
        headlines, beside = _headlines(few["headline_a"]), _headlines(few["headline_b"])
        hosts, hosts_beside = few["host_a"].to_pylist(), few["host_b"].to_pylist()
        distances, wholes = distances[judged], wholes[judged]
        found = np.full(judged.size, None, dtype=np.object_)
        begins = np.flatnonzero(np.diff(own[judged], prepend=-1)).tolist()
        for begin, end in pairwise([*begins, judged.size]):
            found[begin:end] = stored_evidence(
                self._rule,
                self._templates,
                (headlines[begin], hosts[begin]),
                (beside[begin:end], hosts_beside[begin:end]),
                distances=distances[begin:end],
                wholes=wholes[begin:end],
            )
        return found[like]


def _traits(batch: Any, end: str) -> npt.NDArray[np.int64]:
    """A number for each headline and host of one side of pairs, from 0; equal ones have the same."""
    headline, host = (batch[f"{name}_{end}"].dictionary_encode("encode") for name in ("headline", "host"))
    numbers: npt.NDArray[np.int64] = headline.indices.to_numpy().astype(np.int64)
    numbers *= len(host.dictionary)
    numbers += host.indices.to_numpy()
    return numbers


def _arrow() -> Any:
    return arrow_module("pyarrow", Path("a collection"))


def _numbers(column: Any) -> npt.NDArray[np.uint64]:
    made: npt.NDArray[np.uint64] = column.to_numpy().view(np.uint64)
    return made


def _headlines(column: Any) -> Headlines:
    """Shape (n, 20); a page that is stored without one has that of :func:`neardup.text.headline.none`."""
    found = column.fill_null(bytes(headlines.BYTES)) if column.null_count else column
    return np.frombuffer(_bytes(found), dtype="<u4").reshape(-1, headlines.BYTES // 4)


def _plain(batch: Any) -> Any:
    """A batch with one type for all binary columns, and one for all texts.

    Sail gives views and columns of a fixed size. Most functions of Arrow do not take these.
    """
    arrow = _arrow()
    plain = {arrow.binary_view(): arrow.large_binary(), arrow.string_view(): arrow.large_string()}
    plain |= dict.fromkeys([arrow.binary(), arrow.binary(headlines.BYTES)], arrow.large_binary())
    return batch.cast(
        arrow.schema([(field.name, plain.get(field.type, field.type)) for field in batch.schema])
    )


def _bytes(values: Any) -> Any:
    """The bytes of a column of values of one length, one after another."""
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int64)[
        values.offset : values.offset + len(values) + 1
    ]
    return memoryview(values.buffers()[2] or b"")[int(offsets[0]) : int(offsets[-1])]
