"""How the outcomes of an application's own actions correct the probabilities of causes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.calibration import (
    LARGEST_SHIFT,
    OUTCOMES_KEPT,
    JudgedCause,
    JudgedCauses,
    corrected,
    shift,
    stated_probability,
    with_verdict,
)
from homeostat.core.findings import Diagnosis

probabilities = st.floats(0.01, 0.99)
outcomes = st.lists(st.builds(JudgedCause, probabilities, st.booleans()), max_size=OUTCOMES_KEPT).map(tuple)


def log_odds(probability: float) -> float:
    return math.log(probability / (1.0 - probability))


@given(outcomes, probabilities)
def test_no_history_moves_a_probability_by_more_than_the_bound(
    history: tuple[JudgedCause, ...], probability: float
) -> None:
    again = corrected(Diagnosis("cause", probability=probability), {"cause": history}).probability
    assert 0.0 < again < 1.0
    assert abs(log_odds(again) - log_odds(probability)) <= LARGEST_SHIFT + 1e-9


@given(outcomes, probabilities)
def test_a_further_success_never_lowers_a_probability_and_a_further_failure_never_raises_it(
    history: tuple[JudgedCause, ...], probability: float
) -> None:
    before = shift(history)
    assert shift((*history, JudgedCause(probability, True))) >= before - 1e-12
    assert shift((*history, JudgedCause(probability, False))) <= before + 1e-12


@given(outcomes, st.randoms())
def test_the_order_of_the_outcomes_does_not_matter(history: tuple[JudgedCause, ...], random: st.DataObject) -> None:
    mixed = list(history)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert shift(tuple(mixed)) == pytest.approx(shift(history))


@pytest.mark.parametrize(("failures", "least"), [(1, 0.87), (2, 0.85), (3, 0.82)])
def test_a_few_unlucky_outcomes_do_no_harm(failures: int, least: float) -> None:
    judged: JudgedCauses = {}
    for _ in range(failures):
        judged = with_verdict(judged, "cause", 0.9, "failed")
    again = corrected(Diagnosis("cause", probability=0.9), judged)
    assert least < again.probability < 0.9
    assert stated_probability(again) == again.before_outcomes == 0.9


def test_outcomes_that_bear_out_the_probability_do_not_move_it() -> None:
    history = (*[JudgedCause(0.8, True)] * 8, *[JudgedCause(0.8, False)] * 2)
    assert shift(history) == pytest.approx(0.0)


def test_a_cause_that_is_always_wrong_here_ends_at_the_bound() -> None:
    assert shift((JudgedCause(0.9, False),) * OUTCOMES_KEPT) == -LARGEST_SHIFT


def test_other_causes_and_certain_ones_are_left_as_they_are() -> None:
    judged = {"cause": (JudgedCause(0.9, False),) * 9}
    for diagnosis in (Diagnosis("other", probability=0.9), Diagnosis("cause", probability=1.0)):
        assert corrected(diagnosis, judged) is diagnosis
        assert stated_probability(diagnosis) == diagnosis.probability


@pytest.mark.parametrize("verdict", ["confounded", "unclear", "untestable", "superseded", "right"])
def test_a_verdict_that_proves_nothing_does_not_count(verdict: str) -> None:
    assert with_verdict({}, "cause", 0.9, verdict) == {}
    assert with_verdict({}, "cause", 1.0, "failed") == with_verdict({}, "", 0.9, "failed") == {}


def test_the_latest_outcomes_are_kept() -> None:
    judged: JudgedCauses = {}
    for number in range(OUTCOMES_KEPT + 5):
        judged = with_verdict(judged, "cause", 0.5, "helped" if number >= 5 else "failed")
    assert judged["cause"] == (JudgedCause(0.5, True),) * OUTCOMES_KEPT
