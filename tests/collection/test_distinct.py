"""Near-duplicates left out of ranked results, held to a comparison of all pairs."""

from __future__ import annotations

import random
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from neardup.collection import distinct
from neardup.detection.rule import VERIFY
from neardup.errors import ConfigurationError
from neardup.fingerprint import sketch
from tests.support.readings import readings
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from neardup.fingerprint.sketch import Compact

MODULE = import_module("neardup.collection.distinct")  # the package has the function by this name
TWIN = python_twin(MODULE)

Results = list[tuple[int, Any]]


def by_pairs(results: Results, keep: int, verify: float) -> list[tuple[int, list[int]]]:
    """The definition, a pair at a time."""

    def alike(a: Compact | None, b: Compact | None) -> bool:
        return a is not None and b is not None and sketch.compact_estimates(a[np.newaxis], b)[0] >= verify

    kept: list[tuple[int, Any, list[int]]] = []
    for name, one in results:
        head = next((hides for _, other, hides in kept if alike(other, one)), None)
        if head is not None:
            head.append(name)
        elif len(kept) < keep:
            kept.append((name, one, []))
    return [(name, hides) for name, _, hides in kept]


def ranked(seed: int) -> Results:
    """Sketches of real pages in random order, some of them unknown."""
    sketches = [reading.sketch for reading in readings()]
    order = random.Random(seed).sample(range(len(sketches)), 50)
    return [(number, None if number % 9 == 0 else sketches[number]) for number in order]


@pytest.mark.parametrize("module", [MODULE, TWIN], ids=["native", "twin"])
@pytest.mark.parametrize("keep", [1, 3, 10, 50])
@pytest.mark.parametrize("verify", [0.3, VERIFY, 1.0])
def test_as_by_pairs(module: ModuleType, keep: int, verify: float) -> None:
    for seed in range(5):
        results = ranked(seed)

        assert module.distinct(results, keep, verify=verify) == by_pairs(results, keep, verify)


@pytest.mark.parametrize("shown", [MODULE.shown, TWIN.shown], ids=["native", "twin"])
def test_sketches_of_any_size(shown: Callable[..., object]) -> None:
    drawn = np.random.default_rng(0)
    for words in (1, 3, 8, 21):
        originals = drawn.integers(0, 1 << 64, (9, words), dtype=np.uint64)
        flips = np.uint64(1) << drawn.integers(0, 64, (60, words), dtype=np.uint64)
        sketches = originals[drawn.integers(0, 9, 60)] ^ flips
        results: Results = list(enumerate(sketches))
        most = sketch.most_differing(64 * words, 0.9)

        assert shown([*range(60)], [True] * 60, sketches, 20, most) == by_pairs(results, 20, 0.9)


@pytest.mark.parametrize("shown", [MODULE.shown, TWIN.shown], ids=["native", "twin"])
@pytest.mark.parametrize(("ids", "known"), [("ab", [True]), ("ab", [True, True]), ("ab", [False, False])])
def test_sketches_that_are_not_those_of_the_results(
    shown: Callable[..., object], ids: str, known: list[bool]
) -> None:
    with pytest.raises(ValueError, match=rf"^1 sketches of {sum(known)} of 2 results$"):
        shown([*ids], known, np.zeros((1, 16), np.uint64), 10, 0)


def test_copies_are_hidden_and_ranks_kept() -> None:
    found = distinct(ranked(0), 50)

    assert sum(len(kept.hides) for kept in found) >= 15
    order = [number for number, _ in ranked(0)]
    places = [order.index(kept.id) for kept in found]
    assert places == sorted(places)
    assert sorted(order) == sorted(number for kept in found for number in (kept.id, *kept.hides))


def test_texts() -> None:
    text = "the quick brown fox jumps over a lazy dog near the old river bank"
    results = [("a", text), ("b", f"{text} and {text[::-1]}"), ("c", text.upper()), ("d", "too short")]

    assert distinct([*results, ("e", "too short")]) == [("a", ["c"]), ("b", []), ("d", []), ("e", [])]
    assert distinct([]) == []


def test_most_differing_is_what_the_estimates_say() -> None:
    for size in (64, 192, 1024):
        estimates = 1.0 - 2.0 * np.arange(size + 1) / size
        for least in (*np.linspace(0.001, 1.0, 300), *estimates[: size // 2]):
            assert sketch.most_differing(size, least) == np.count_nonzero(estimates >= least) - 1


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        ([], {"keep": 0}, "keep must be 1 or more, not 0"),
        ([], {"verify": 0.0}, "verify must be a resemblance above 0, at most 1, not 0.0"),
        ([], {"verify": float("nan")}, "not nan"),
        (
            [(1, np.zeros(16, np.uint64)), (2, np.zeros(8, np.uint64))],
            {},
            r"sketches of \[512, 1024\] places",
        ),
    ],
)
def test_what_cannot_be_compared(results: Results, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        distinct(results, **options)
