"""Tallies that forget, and Wilson's bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.urls.tally import DECAY, Tally, wilson_lower


def test_a_tally_forgets_so_that_at_most_two_hundred_trials_count() -> None:
    tally = Tally()
    for _ in range(5_000):
        tally.add(hit=True)

    assert tally.trials == pytest.approx(1 / (1 - DECAY))
    assert tally.hits == pytest.approx(tally.trials)

    for _ in range(200):
        tally.add(hit=False)

    assert tally.hits / tally.trials < 0.4  # 200 of 5,200 by number, but the last of all


def test_what_is_kept_of_a_tally_has_the_same_share() -> None:
    tally = Tally(100.0, 75.0)
    tally.keep(4.0)

    assert (tally.trials, tally.hits) == (4.0, 3.0)

    tally.keep(10.0)  # it has fewer

    assert (tally.trials, tally.hits) == (4.0, 3.0)


def test_few_trials_are_drawn_towards_the_prior() -> None:
    assert Tally().share(0.3, 3.0) == pytest.approx(0.3)
    assert Tally(1.0, 1.0).share(0.3, 3.0) == pytest.approx(1.9 / 4)


@given(st.integers(1, 500).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_the_bound_is_below_the_share_and_nears_it_with_trials(counts: tuple[int, int]) -> None:
    hits, trials = counts
    lower = wilson_lower(hits, trials)

    assert 0.0 <= lower <= hits / trials + 1e-12
    assert lower <= wilson_lower(100 * hits, 100 * trials) + 1e-12
