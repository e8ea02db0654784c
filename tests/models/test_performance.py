"""Duration, throughput, latency and catching up of a micro-batch application at a rate."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from homeostat.models.performance import catch_up_s, predict, rows_within
from homeostat.models.task_cost_model import Slowing, TaskCost
from support.batch_models import SETUP, model, stage


def test_the_rate_at_which_a_batch_fills_its_trigger() -> None:
    # 3 slots take 3,000 rows/s, for 9.5 of 10 s.
    prediction = predict(model(), 2_000.0, SETUP)
    assert prediction.saturation_per_s.middle == pytest.approx(2_850.0, rel=0.01)
    assert prediction.most_per_s == pytest.approx(3_000.0, rel=0.01)
    assert prediction.stable
    assert prediction.in_time
    assert prediction.throughput_per_s == 2_000.0
    assert predict(model(driver_s=11.0), 2_000.0, SETUP).saturation_per_s.middle == 0.0


def test_a_row_waits_for_the_next_batch_and_then_for_its_end() -> None:
    prediction = predict(model(), 1_500.0, SETUP)
    assert prediction.batch_s.middle == pytest.approx(5.5)
    assert prediction.latency_s["p50"] == pytest.approx(5.0 + 5.5, abs=0.2)
    assert prediction.latency_s["p95"] == pytest.approx(9.5 + 5.5, abs=0.2)
    assert prediction.lag_s == pytest.approx(5.5)


def test_between_the_two_rates_batches_grow_until_they_follow_each_other() -> None:
    prediction = predict(model(), 2_900.0, SETUP)
    assert prediction.stable
    assert not prediction.in_time
    assert prediction.period_s == pytest.approx(prediction.batch_s.middle, rel=0.05)
    assert prediction.batch_s.middle > 10.0


def test_too_much_is_said_to_have_no_end() -> None:
    prediction = predict(model(), 4_000.0, SETUP)
    assert not prediction.stable
    assert prediction.throughput_per_s == pytest.approx(3_000.0, rel=0.01)
    assert math.isinf(prediction.latency_s["p95"])
    assert math.isinf(prediction.lag_s)


def test_rows_that_seem_to_cost_nothing_are_no_endless_search() -> None:
    free = model(stage(row_s=0.0, task_s=0.1))
    assert predict(free, 2_000.0, SETUP).stable


def test_the_rows_that_fill_a_time() -> None:
    # 3 slots take 3,000 rows/s, after half a second of the driver.
    assert rows_within(model(), SETUP, 4.5) == pytest.approx(12_000.0, rel=0.01)
    assert rows_within(model(), SETUP, 0.4) == 0.0


def test_a_bound_on_rows_caps_the_rate_while_batches_look_healthy() -> None:
    prediction = predict(model(), 2_000.0, replace(SETUP, rows_bound=10_000))
    assert not prediction.stable
    assert prediction.throughput_per_s == pytest.approx(1_000.0)


def test_a_backlog_is_worked_off_batch_by_batch() -> None:
    # 1,000 rows/s, half a second and a third of a millisecond a row: 30,000 rows wait, one batch of 10.5 s takes them
    # all and leaves 10,500, which is little more than always.
    assert catch_up_s(model(), 1_000.0, SETUP, 20_000.0) == pytest.approx(10.2, abs=0.1)
    # At most 15,000 a trigger of 10 s: 5,000 fewer wait after each.
    bound = replace(SETUP, rows_bound=15_000)
    assert catch_up_s(model(), 1_000.0, bound, 20_000.0) == pytest.approx(38.0, abs=0.1)
    assert catch_up_s(model(), 1_000.0, bound, 120_000.0) == pytest.approx(238.0, abs=0.1)
    assert catch_up_s(model(), 1_000.0, SETUP, 0.0) == 0.0
    assert math.isinf(catch_up_s(model(), 1_600.0, bound, 1_000.0))


def test_a_backlog_that_dwindles_slowly_takes_its_time() -> None:
    """At 2,900 of 3,000 rows/s each batch leaves almost as much as it took; 43,500 rows always wait in the end."""
    waiting, spent_s = 1_000_000.0 + 29_000.0, 0.0
    while waiting > 1.1 * 43_500.0:
        took_s = 0.5 + waiting / 3_000.0
        spent_s, waiting = spent_s + took_s, 2_900.0 * took_s
    assert catch_up_s(model(), 2_900.0, SETUP, 1_000_000.0) == pytest.approx(spent_s, rel=0.01)


def test_what_was_never_seen_is_said() -> None:
    blind = model(replace(stage(), cost=TaskCost(0.0, 0.001)))
    assert predict(blind, 1_000.0, SETUP).unknown == ()
    assert "never changed" in predict(blind, 1_000.0, replace(SETUP, executors=6)).unknown[0]
    model_of_few = model(replace(stage(), cost=TaskCost(0.0, 0.001, slowing=Slowing(0.2, 0.2), up_to_executors=4.0)))
    assert predict(model_of_few, 1_000.0, replace(SETUP, executors=4)).unknown == ()
    assert predict(model_of_few, 1_000.0, replace(SETUP, executors=6)).unknown == (
        "count never ran on more than 4 executors: the trend up to there is assumed to continue",
    )
    model_of_rows = replace(model(), rows_seen=(1_000.0, 2_000.0))
    assert "far from" in predict(model_of_rows, 2_000.0, SETUP).unknown[-1]
