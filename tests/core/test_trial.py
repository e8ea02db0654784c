"""How an action turned out, against its own prediction and the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.digest import Digest
from homeostat.core.findings import Prediction
from homeostat.core.trial import LoadNormalisedJudge, Trial
from homeostat.testing import instances, observations, view_of

HALF = math.log(2.0)
JUDGE = LoadNormalisedJudge()


def dataflow(row_s: Sequence[float], *, count_row_s: float = 0.001, rows: float = 1000.0) -> tuple[Digest, ...]:
    """Measurements of a dataflow whose bottleneck, split, needs so long for a row."""
    observed = observations(
        len(row_s),
        lambda n: {
            "lines": instances(rows, 0.0001 * rows),
            "split": instances([rows / 2.0] * 2, rows / 2.0 * row_s[n]),
            "count": instances([rows / 2.0] * 2, rows / 2.0 * count_row_s),
        },
        arrival_per_s=rows / 10.0,
    )
    return view_of(observed).history


def batches(rows: Sequence[float], seconds: Sequence[float]) -> tuple[Digest, ...]:
    observed = observations(len(rows), {}, rows=rows, seconds=seconds, trigger_s=10.0, arrival_per_s=1.0)
    return view_of(observed).history


def trial(before: tuple[Digest, ...], after: tuple[Digest, ...], gain: float = HALF, **changes: object) -> Trial:
    split_trial = Trial("split", Prediction(gain, ("split",)), before, after, False, elapsed_s=60.0, settle_s=60.0)
    return replace(split_trial, **changes)  # type: ignore[arg-type]


def verdict(tried: Trial) -> str:
    outcome = JUDGE.judge(tried)
    return outcome.verdict if outcome is not None else "too early"


SLOW, FAST = dataflow([0.01] * 8), dataflow([0.005] * 8)
LATE = 180.0


def test_half_the_time_as_promised_helped() -> None:
    outcome = JUDGE.judge(trial(SLOW, FAST))
    assert outcome is not None
    assert outcome.verdict == "helped"
    assert outcome.observed_gain == pytest.approx(HALF)
    assert (outcome.before, outcome.after) == (8, 8)


def test_slower_than_before_is_harmful_whatever_was_promised() -> None:
    assert verdict(trial(FAST, SLOW)) == "harmful"
    assert verdict(trial(FAST, SLOW, gain=0.01)) == "harmful"


def test_no_change_where_half_the_time_was_promised_failed() -> None:
    assert verdict(trial(SLOW, SLOW)) == "failed"


def test_a_promise_within_the_noise_is_untestable() -> None:
    assert verdict(trial(SLOW, SLOW, gain=0.02)) == "untestable"
    noisy = dataflow([0.01 * math.exp(0.5 * (-1) ** n) for n in range(8)])
    assert verdict(trial(noisy, FAST, gain=0.2)) == "untestable"
    assert verdict(trial(SLOW[:2], FAST)) == "untestable", "two measurements before are too few"


def test_half_of_what_was_promised_is_unclear_at_first_and_for_good_after_a_long_wait() -> None:
    between = dataflow([0.01 / math.exp(0.45 * HALF)] * 8)
    assert verdict(trial(SLOW, between)) == "too early"
    assert verdict(trial(SLOW, between, elapsed_s=LATE)) == "unclear"


def test_too_few_measurements_after_are_too_early_and_in_the_end_unclear() -> None:
    assert verdict(trial(SLOW, FAST[:4])) == "too early"
    assert verdict(trial(SLOW, FAST[:4], elapsed_s=LATE)) == "unclear"
    assert verdict(trial(SLOW, (), elapsed_s=LATE)) == "unclear"


def test_shrinking_succeeds_if_the_objective_held_and_time_grew_as_promised() -> None:
    assert verdict(trial(FAST, SLOW, gain=-HALF, shrinking=True)) == "shrunk"
    assert verdict(trial(FAST, SLOW, gain=-HALF, shrinking=True, elapsed_s=59.0)) == "too early"
    assert verdict(trial(FAST, SLOW, gain=-HALF, shrinking=True, unhealthy="pressure")) == "harmful"
    much_slower = dataflow([0.02] * 8)
    assert verdict(trial(FAST, much_slower, gain=-HALF, shrinking=True)) == "too early"
    assert verdict(trial(FAST, much_slower, gain=-HALF, shrinking=True, elapsed_s=LATE)) == "unclear"


def test_whatever_else_happened_meanwhile_confounds() -> None:
    outcome = JUDGE.judge(trial(SLOW, FAST, disturbed="a worker was lost"))
    assert outcome is not None
    assert (outcome.verdict, outcome.reason) == ("confounded", "a worker was lost")


def test_a_stage_that_was_not_touched_and_changed_its_speed_confounds() -> None:
    shifted = dataflow([0.005] * 8, count_row_s=0.002)
    outcome = JUDGE.judge(trial(SLOW, shifted))
    assert outcome is not None
    assert outcome.verdict == "confounded"
    assert outcome.reason == "the speed of count, which the action did not touch, changed by -50%"
    touched = trial(SLOW, shifted)
    assert verdict(replace(touched, prediction=Prediction(HALF, ("split", "count")))) == "helped"


def test_a_load_that_doubled_meanwhile_changes_nothing() -> None:
    assert verdict(trial(SLOW, dataflow([0.005] * 8, rows=2000.0))) == "helped"
    assert verdict(trial(SLOW, dataflow([0.01] * 8, rows=500.0))) == "failed"


def test_batches_are_compared_at_equal_rows() -> None:
    before = batches([800, 1000, 1200, 900, 1100], [9.0, 11.0, 13.0, 10.0, 12.0])
    drained = batches([1600, 1800, 2000, 2200, 2400], [9.0, 10.0, 11.0, 12.0, 13.0])
    assert verdict(trial(before, drained, micro_batch=True)) == "helped", "as long as before, with twice the rows"
    more = batches([1600, 1800, 2000, 2200, 2400], [17.0, 19.0, 21.0, 23.0, 25.0])
    assert verdict(trial(before, more, micro_batch=True)) == "failed", "longer only because there was more to do"


def test_batches_of_another_size_than_any_before_cannot_be_compared() -> None:
    before = batches([1000] * 5, [10.0] * 5)
    for rows in (2100, 450):
        after = batches([rows] * 5, [10.0] * 5)
        assert verdict(trial(before, after, micro_batch=True)) == "too early", "they may become comparable"
        assert verdict(trial(before, batches([rows] * 10, [10.0] * 10), micro_batch=True)) == "confounded"
        assert verdict(trial(before, after, micro_batch=True, elapsed_s=LATE)) == "confounded"


def test_batches_that_drain_a_backlog_do_not_keep_the_others_from_being_compared() -> None:
    before = batches([1000] * 5, [10.0] * 5)
    after = batches([9000, 7000, 5000, 1000, 1000, 1000, 1000, 1000], [50.0, 40.0, 30.0, 5.0, 5.0, 5.0, 5.0, 5.0])
    assert verdict(trial(before, after, micro_batch=True)) == "helped"


@pytest.mark.slow
@pytest.mark.parametrize("phi", [0.0, 0.7])
def test_noise_alone_is_hardly_ever_a_success_or_harm(phi: float) -> None:
    """Noise of 15 %, correlated or not; nothing was changed half-way through any of 20 stretches."""
    rng = np.random.default_rng(5)
    walk = [float(rng.normal())]
    for _ in range(419):
        walk.append(phi * walk[-1] + math.sqrt(1.0 - phi**2) * float(rng.normal()))
    series = dataflow([0.01 * math.exp(0.15 * value) for value in walk])
    starts = range(0, 400, 20)
    verdicts = [verdict(trial(series[n : n + 20], series[n + 20 : n + 40], elapsed_s=LATE)) for n in starts]
    assert sum(each in ("helped", "harmful") for each in verdicts) <= 2


@settings(max_examples=30)
@given(st.floats(0.3, 3.0), st.floats(-1.0, 1.0))
def test_the_observed_gain_is_that_of_time_per_row(promised: float, gain: float) -> None:
    outcome = JUDGE.judge(trial(SLOW, dataflow([0.01 / math.exp(gain)] * 8), gain=promised, elapsed_s=LATE))
    assert outcome is not None
    bottleneck_gain = min(gain, math.log(0.01 / 0.001))
    assert outcome.observed_gain == pytest.approx(bottleneck_gain, abs=1e-9)
    assert outcome.verdict in ("helped", "harmful", "failed", "unclear", "untestable")
    if outcome.verdict == "helped":
        assert gain >= promised / 2.0
