"""When two pages are near-duplicates, by each kind of evidence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.detection.headlines import Likeness
from neardup.detection.rule import OTHER_HEADLINE, SAME_HEADLINE, VERIFY, Evidence, Own, Rule
from neardup.errors import ConfigurationError

RULE = Rule(8)
SAME, DIFFERENT, UNKNOWN = Likeness.SAME, Likeness.DIFFERENT, Likeness.UNKNOWN
NAMED_APART, RENUMBERED = Likeness.NAMED_APART, Likeness.RENUMBERED
REWORDED = Likeness.REWORDED
SHARES = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("whole", "headlines", "rare", "all_rare", "wanted"),
    [
        # Nothing but the whole is known.
        (0.83, UNKNOWN, None, False, Evidence.WHOLE),
        (0.829, UNKNOWN, None, False, None),
        # What is rare decides if it is known, whatever the whole says.
        (0.99, UNKNOWN, 0.82, False, None),
        (0.5, UNKNOWN, 0.83, False, Evidence.RARE),
        # All of it is rare: the whole is what is rare.
        (0.83, UNKNOWN, None, True, Evidence.RARE),
        (0.829, UNKNOWN, None, True, None),
        # The same headline: either is enough, but next to all of what is rare must agree to be sure.
        (0.83, SAME, None, False, Evidence.WHOLE),
        (0.9, SAME, 0.69, False, Evidence.WHOLE),
        (0.89, SAME, 0.69, False, None),
        (0.83, SAME, 0.7, False, Evidence.RARE),
        (0.5, SAME, 0.7, False, Evidence.RARE),
        (0.7, SAME, None, True, Evidence.RARE),
        (0.99, SAME, 0.94, False, Evidence.RARE),
        (0.94, SAME, None, True, Evidence.RARE),
        (0.5, SAME, 0.95, False, Evidence.HEADLINE),
        (0.95, SAME, None, True, Evidence.HEADLINE),
        (0.7, SAME, None, False, None),
        (0.7, SAME, 0.69, False, None),
        (0.69, SAME, None, True, None),
        # Another headline: both are needed, and next to all of what is rare.
        (0.99, DIFFERENT, None, False, None),
        (0.99, DIFFERENT, None, True, None),
        (0.99, DIFFERENT, 0.94, False, None),
        (0.83, DIFFERENT, 0.95, False, Evidence.RARE),
        (0.82, DIFFERENT, 1.0, False, None),
        # Each headline has a common word that the other has not: as with the same headline, but never sure.
        (0.7, REWORDED, 0.7, False, Evidence.RARE),
        (1.0, REWORDED, 1.0, False, Evidence.RARE),
        (0.9, REWORDED, 0.69, False, Evidence.WHOLE),
        (0.83, REWORDED, None, False, Evidence.WHOLE),
        (0.829, REWORDED, None, False, None),
        # The names of the files differ like the headlines: as with another headline, where anything is known.
        (0.99, NAMED_APART, 0.94, False, None),
        (0.83, NAMED_APART, 0.95, False, Evidence.RARE),
        (0.82, NAMED_APART, 1.0, False, None),
        (0.94, NAMED_APART, None, True, None),
        (0.95, NAMED_APART, None, True, Evidence.RARE),
        # Another number of the chapter, and one name: what is rare may differ more, if it is known.
        (0.7, RENUMBERED, 0.7, False, Evidence.RARE),
        (0.5, RENUMBERED, 0.7, False, Evidence.RARE),
        (0.99, RENUMBERED, 0.69, False, None),
        (0.7, RENUMBERED, None, True, Evidence.RARE),
        (0.83, RENUMBERED, None, False, Evidence.WHOLE),
        (0.829, RENUMBERED, None, False, None),
        # Of an empty day of a calendar, or of a site that is not known, the whole is all there is.
        (0.83, NAMED_APART, None, False, Evidence.WHOLE),
        (0.829, NAMED_APART, None, False, None),
    ],
)
def test_evidence(
    whole: float, headlines: Likeness, rare: float | None, all_rare: bool, wanted: Evidence | None
) -> None:
    assert RULE.evidence(whole, headlines, Own(rare, rare, rare, is_all=all_rare, is_article=True)) is wanted


def test_a_sure_copy_agrees_in_the_rare_places_as_well() -> None:
    """A diff has more than the page that it is like, so that what is rare in both is reckoned too high."""
    for agreeing, wanted in ((0.95, Evidence.HEADLINE), (0.94, Evidence.RARE)):
        assert RULE.evidence(0.83, SAME, Own(1.0, 1.0, agreeing, is_all=False, is_article=True)) is wanted


@pytest.mark.parametrize("headlines", [DIFFERENT, NAMED_APART])
def test_a_page_with_little_of_its_own_is_no_article_under_two_headlines(headlines: Likeness) -> None:
    """A function and its overload differ in a symbol of the headline, and in no word."""
    for rare, is_all in ((1.0, False), (None, True)):
        short, long = (Own(rare, rare, rare, is_all=is_all, is_article=it_is) for it_is in (False, True))
        assert RULE.evidence(1.0, headlines, short) is None
        if rare is not None or headlines is NAMED_APART:
            assert RULE.evidence(1.0, headlines, long) is Evidence.RARE


@pytest.mark.parametrize("headlines", [SAME, UNKNOWN])
def test_what_only_the_cluster_has_in_common_is_no_sure_evidence(headlines: Likeness) -> None:
    """A template that stands on no other page, or one page under many addresses: nobody can tell."""
    assert RULE.evidence(0.9, headlines, Own(0.1, 0.9, 0.1, is_all=False, is_article=True)) is Evidence.WHOLE
    assert RULE.evidence(0.9, DIFFERENT, Own(0.1, 0.99, 0.1, is_all=False, is_article=True)) is None


@given(SHARES, SHARES, SHARES, st.sampled_from(Likeness), SHARES)
def test_more_likeness_never_makes_a_duplicate_a_stranger(
    verify: float, whole: float, rare: float, headlines: Likeness, more: float
) -> None:
    rule = Rule(8, verify)
    if rule.evidence(whole, headlines, Own(rare, rare, rare, is_all=False, is_article=True)) is not None:
        assert (
            rule.evidence(
                max(whole, more),
                headlines,
                Own(max(rare, more), max(rare, more), max(rare, more), is_all=False, is_article=True),
            )
            is not None
        )


@given(SHARES.filter(bool), SHARES, st.none() | SHARES, st.booleans(), st.sampled_from(Likeness))
def test_nothing_below_the_least_is_a_duplicate(
    verify: float, whole: float, rare: float | None, all_rare: bool, headlines: Likeness
) -> None:
    """The verifier leaves out what is below without asking the rule."""
    rule = Rule(8, verify)
    if max(whole, rare or 0.0) < rule.least:
        assert (
            rule.evidence(whole, headlines, Own(rare, rare, rare, is_all=all_rare, is_article=True)) is None
        )


def test_another_headline_never_makes_a_duplicate_that_the_same_would_not() -> None:
    grid = [place / 20 for place in range(21)]
    for whole, rare, all_rare in itertools.product(grid, [None, *grid], [False, True]):
        by_headline = {
            likeness: RULE.evidence(whole, likeness, Own(rare, rare, rare, is_all=all_rare, is_article=True))
            for likeness in Likeness
        }
        assert by_headline[DIFFERENT] is None or by_headline[UNKNOWN] is not None
        assert by_headline[UNKNOWN] is None or by_headline[RENUMBERED] is not None
        assert by_headline[RENUMBERED] is None or by_headline[SAME] is not None


def test_without_verification_the_distance_alone_decides() -> None:
    for headlines in Likeness:
        assert Rule(8, 0.0).evidence(0.0, headlines) is Evidence.DISTANCE


def test_the_least_of_what_is_rare_goes_with_that_of_the_whole() -> None:
    assert RULE.verify == VERIFY
    assert RULE.least_rare == pytest.approx(SAME_HEADLINE)
    assert Rule(8, 1.0).least_rare == 1.0
    assert Rule(8, 0.915).least_rare == pytest.approx(0.85)
    assert Rule(8, 0.4).least_rare == pytest.approx(0.0, abs=0.06)
    assert Rule(8, 0.1).least_rare == 0.0
    strict = Rule(8, 0.99)
    assert strict.least_rare > OTHER_HEADLINE
    assert strict.evidence(1.0, DIFFERENT, Own(0.97, 0.97, 0.97, is_all=False, is_article=True)) is None


def test_matches_of_those_who_have_nothing_else() -> None:
    distances, estimates = np.array([0, 8, 9, 8]), np.array([0.9, 0.83, 1.0, 0.82])

    assert RULE.are_matches(distances, estimates).tolist() == [True, True, False, False]
    assert Rule(8, 0.0).are_matches(distances, estimates).tolist() == [True, True, False, True]


def test_stronger_evidence_is_surer() -> None:
    confidences = [evidence.confidence for evidence in Evidence]

    assert confidences == sorted(confidences, reverse=True)
    assert confidences[0] == 1.0
    assert len(set(confidences)) == len(Evidence) - 1  # of the very text and of a decision it is 1


@pytest.mark.parametrize("verify", [-0.1, 1.1, float("nan")])
def test_a_resemblance_out_of_range_is_named(verify: float) -> None:
    with pytest.raises(ConfigurationError, match="verify must be a resemblance between 0"):
        Rule(8, verify)
