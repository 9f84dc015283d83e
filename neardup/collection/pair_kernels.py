"""What SQL does not say: keys of headlines, sites of pages, and the rule on pairs, over Arrow record batches.

Each works row by row, so that neither the order of the rows nor their batches matter.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.address import Address
from neardup.collection.rare_places import BESIDE
from neardup.detection import own_text
from neardup.detection.document_frequencies import RARE_PAGES
from neardup.detection.frequency_kernels import MOST_COUNT, whole_keys, word_keys
from neardup.detection.headlines import Likeness, are_named_apart, are_renumbered, compare_many
from neardup.detection.rule import Own
from neardup.parquet import arrow_module
from neardup.text import headline as headlines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from neardup.detection.frequency_kernels import Headlines, Keys, Site
    from neardup.detection.rule import Rule
    from neardup.detection.scope import Scope
    from neardup.text.headline import Headline

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


_AFTERWARDS = [
    "a",
    "b",
    *(f"{name}_{end}" for name in ("headline", "url", "host") for end in "ab"),
    "rare_limit",
    "is_all_rare",
    "is_article",
]
"""Columns of pairs that are asked for after sketches have been compared."""

EVIDENCE = tuple(f"evidence_{plane}" for plane in range(len(BESIDE) + 1))
"""Columns of :class:`Judgement`, one for each of :func:`neardup.collection.rare_places.plane_of`."""


class _Alike(NamedTuple):
    """How alike n pairs are: as wholes, shape (n,), and in what is rare, see :meth:`Judgement._rares`."""

    wholes: npt.NDArray[np.float64]
    rares: npt.NDArray[np.float64]
    agreeing: npt.NDArray[np.float64]

    def of(self, rows: npt.NDArray[np.int64]) -> _Alike:
        return _Alike(*(one[rows] for one in self))


class Judgement:
    """Makes (a, b, distance, differing, rare_limit, is_whole, evidence_0, …) of pairs that the rule may take.

    ``differing`` is the number of places in which the sketches differ. ``is_whole``: the pair matches by
    whole texts and headlines. ``evidence_N`` is why the pair matches if plane N of rare places is the one for
    the cluster. Null: the pair does not match.

    The pairs come as a, b, and for each of the two the value, sketch, headline, URL and host, ``value_a`` and
    so on. The columns of :func:`neardup.collection.dataset.RARE` are those of b, the page in hand.
    """

    def __init__(self, rule: Rule, templates: Templates, places: int) -> None:
        self._rule = rule
        self._cuts = np.array(rule.cuts)
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
                ("rare_limit", arrow.int32()),
                ("is_whole", arrow.bool_()),
                *((name, arrow.string()) for name in EVIDENCE),
            ]
        )

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        arrow, schema = _arrow(), self.schema()
        for batch in map(_plain, batches):
            distances = np.bitwise_count(_numbers(batch["value_a"]) ^ _numbers(batch["value_b"]))
            one, other = (self._sketches(batch[name]) for name in ("sketch_a", "sketch_b"))
            unlike = one ^ other
            differing = _bits_of_rows(unlike)
            wholes = np.maximum(0.0, 1.0 - 2.0 * differing / self._places)
            alike = _Alike(wholes, *self._rares(batch["rare_places"], unlike, wholes))
            resembling = np.fmax(wholes, np.fmax.reduce(alike.rares, axis=1)) >= self._rule.least
            near = np.flatnonzero((distances <= self._rule.max_distance) & resembling)
            batch = batch.select(_AFTERWARDS).take(arrow.array(near))  # noqa: PLW2901
            is_whole, evidence = self._evidence(batch, alike.of(near))
            told = (distances[near].astype(np.int32), differing[near])
            columns = (batch["a"], batch["b"], *told, batch["rare_limit"], is_whole, *evidence)
            judged = arrow.record_batch([arrow.array(column) for column in columns], schema=schema)
            taken = is_whole | np.logical_or.reduce([one != np.array(None) for one in evidence])
            yield judged.filter(arrow.array(taken))

    def _sketches(self, column: Any) -> npt.NDArray[np.uint64]:
        return np.frombuffer(_bytes(column), dtype="<u8").reshape(-1, self._places // 64)

    def _rares(
        self, column: Any, unlike: npt.NDArray[np.uint64], wholes: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The resemblances of what is rare by plane, shape (n, planes + 1). With them the shares of the rare
        places that agree in the first plane, shape (n,).

        NaN: too little is rare, or all is, as beyond the last plane.
        """
        rares = np.full((len(wholes), len(BESIDE) + 1), np.nan)
        agreed = np.full(len(wholes), np.nan)
        known = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        packed = _bytes(column.drop_null() if column.null_count else column)
        planes = np.frombuffer(packed, dtype="<u8").reshape(known.size, len(BESIDE), self._places // 64)
        unlike = unlike[known] if column.null_count else unlike
        rare = np.zeros_like(unlike)
        for plane in range(len(BESIDE)):
            if plane:
                rares[known, plane] = rares[known, plane - 1]
            more = np.flatnonzero(planes[:, plane].any(axis=1))  # later planes of most pages are empty
            reached = rare[more] | planes[more, plane]
            rare[more] = reached
            numbers = _bits_of_rows(reached)
            differing = _bits_of_rows(reached & unlike[more])
            told = (numbers >= own_text.FEWEST_PLACES) & (numbers < self._places)
            agreeing = own_text.agreement(differing[told], numbers[told])
            rows = known[more]
            rares[rows, plane] = np.nan
            rares[rows[told], plane] = own_text.of_agreements(agreeing, numbers[told], wholes[rows[told]])
            if not plane:
                agreed[rows[told]] = agreeing
        return rares, agreed

    def _evidence(
        self, batch: Any, alike: _Alike
    ) -> tuple[npt.NDArray[np.bool_], list[npt.NDArray[np.object_]]]:
        """``is_whole`` and the columns ``EVIDENCE`` of pairs of pages."""
        kinds = np.stack([_flags(batch["is_all_rare"]), _flags(batch["is_article"])], axis=1)
        likenesses = self._likenesses(batch)
        unknown = np.flatnonzero(likenesses == Likeness.UNKNOWN.value)
        likenesses[_rows_of(batch, unknown, are_renumbered)] = Likeness.RENUMBERED.value
        found = self._columns(likenesses, alike, kinds)
        matched = np.logical_or.reduce([one != np.array(None) for one in found])
        apart = _rows_of(batch, np.flatnonzero(matched), are_named_apart)
        named = np.full(apart.size, Likeness.NAMED_APART.value, dtype=np.int8)
        for one, other in zip(found, self._columns(named, alike.of(apart), kinds[apart]), strict=True):
            changed = one[apart] != np.array(None)
            one[apart[changed]] = other[changed]
        return found[-1] != np.array(None), found[:-1]

    def _columns(
        self, likenesses: npt.NDArray[np.int8], alike: _Alike, kinds: npt.NDArray[np.bool_]
    ) -> list[npt.NDArray[np.object_]]:
        """The columns ``EVIDENCE``, and what the rule says if nothing is known of the hosts.

        ``kinds`` are ``is_all`` and ``is_article`` of :class:`neardup.detection.rule.Own`, shape (n, 2).
        """
        wholes, rares, agreeing = alike
        found: list[npt.NDArray[np.object_]] = []
        for plane, beside in enumerate(rares.T):
            if plane and np.array_equal(beside, rares[:, plane - 1], equal_nan=True):
                found.append(found[-1].copy())
            else:
                own = np.stack([rares[:, 0], beside, agreeing], axis=1)
                found.append(self._judged(likenesses, wholes, own, kinds))
        nothing = np.full((len(wholes), 3), np.nan)
        return [*found, self._judged(likenesses, wholes, nothing, np.zeros_like(kinds))]

    def _judged(
        self,
        likenesses: npt.NDArray[np.int8],
        wholes: npt.NDArray[np.float64],
        own: npt.NDArray[np.float64],
        kinds: npt.NDArray[np.bool_],
    ) -> npt.NDArray[np.object_]:
        """What the rule says of each pair. It compares with a few cuts only, so few pairs need be judged.

        ``own`` are the first fields of :class:`neardup.detection.rule.Own`, shape (n, 3), NaN for None.
        """
        codes = likenesses.astype(np.int64)
        for column in (wholes, *own.T):
            classes = np.digitize(column, self._cuts)
            codes = codes * (self._cuts.size + 2) + np.where(np.isnan(column), self._cuts.size + 1, classes)
        for flags in kinds.T:
            codes = codes * 2 + flags
        _, judged, like = np.unique(codes, return_index=True, return_inverse=True)
        found = np.full(judged.size, None, dtype=np.object_)
        for place, row in enumerate(judged.tolist()):
            rare, beside, agreeing = (None if np.isnan(one) else one for one in own[row].tolist())
            known = Own(rare, beside, agreeing, *kinds[row].tolist())
            found[place] = self._rule.evidence(float(wholes[row]), Likeness(likenesses[row]), known)
        return found[like]

    def _likenesses(self, batch: Any) -> npt.NDArray[np.int8]:
        """The values of ``Likeness`` of the headlines of each pair.

        Near-copies have the same headlines. So few pairs are compared, and all others are like one of these.
        """
        own, other = _traits(batch, "a"), _traits(batch, "b")
        both = own * (other.max(initial=0) + 1) + other
        _, compared, like = np.unique(both, return_index=True, return_inverse=True)  # own traits rise
        few = batch.take(_arrow().array(compared))
        headlines, beside = _headlines(few["headline_a"]), _headlines(few["headline_b"])
        hosts, hosts_beside = few["host_a"].to_pylist(), few["host_b"].to_pylist()
        found = np.empty(compared.size, dtype=np.int8)
        begins = np.flatnonzero(np.diff(own[compared], prepend=-1)).tolist()
        for begin, end in pairwise([*begins, compared.size]):
            likenesses = compare_many(
                headlines[begin], hosts[begin], beside[begin:end], hosts_beside[begin:end], self._templates
            )
            found[begin:end] = [likeness.value for likeness in likenesses]
        return found[like]


def _rows_of(
    batch: Any, rows: npt.NDArray[np.int64], are: Callable[[Headline, str, Headline, str], bool]
) -> npt.NDArray[np.int64]:
    """Those of some rows whose pages are what ``are`` says by headlines and URLs; none of one headline."""
    one, other = (_headlines(batch[f"headline_{end}"]) for end in "ab")
    rows = rows[(one[rows] != other[rows]).any(axis=1)]
    urls = [batch[f"url_{end}"].take(_arrow().array(rows)).to_pylist() for end in "ab"]
    taken = [are(one[row], a, other[row], b) for row, a, b in zip(rows.tolist(), *urls, strict=True)]
    return rows[np.array(taken, dtype=np.bool_)]


def _traits(batch: Any, end: str) -> npt.NDArray[np.int64]:
    """A number for each headline and host of one side of pairs, from 0; equal ones have the same."""
    headline, host = (batch[f"{name}_{end}"].dictionary_encode("encode") for name in ("headline", "host"))
    numbers: npt.NDArray[np.int64] = headline.indices.to_numpy().astype(np.int64)
    numbers *= len(host.dictionary)
    numbers += host.indices.to_numpy()
    return numbers


def _arrow() -> Any:
    return arrow_module("pyarrow", Path("a collection"))


def _flags(column: Any) -> npt.NDArray[np.bool_]:
    """Of a page without a row of ``rare/``, nothing is known."""
    made: npt.NDArray[np.bool_] = column.fill_null(False).to_numpy(zero_copy_only=False)
    return made


def _numbers(column: Any) -> npt.NDArray[np.uint64]:
    made: npt.NDArray[np.uint64] = column.to_numpy().view(np.uint64)
    return made


def _bits_of_rows(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    """Bits that are set in each row of words; by ``sum`` it takes three times as long."""
    return np.asarray(np.einsum("ij->i", np.bitwise_count(words), dtype=np.int32))


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
