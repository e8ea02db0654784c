"""What a task costs, told from measured tasks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from homeostat.core.observation import Array
from homeostat.models.task_cost_model import Samples, Slowing, TaskCost, fit, residuals


def samples(rows: Array, keys: Array, seconds: Array, executors: float | Array = 4.0) -> Samples:
    each = np.broadcast_to(np.asarray(executors, dtype=np.float64), rows.shape).copy()
    return Samples(rows, keys, seconds, each, np.ones(len(rows)))


def spread_rows(count: int = 200) -> Array:
    return np.random.default_rng(3).uniform(500.0, 3000.0, count)


def test_the_cost_of_a_task_of_a_row_and_of_a_key_are_are_distinguishable() -> None:
    rows = spread_rows()
    keys = np.random.default_rng(4).uniform(100.0, 900.0, len(rows))
    noise = np.exp(np.random.default_rng(5).normal(0.0, 0.05, len(rows)))
    cost = fit(samples(rows, keys, (0.2 + 0.001 * rows + 0.002 * keys) * noise))
    assert cost is not None
    assert (cost.task_s, cost.row_s, cost.key_s) == pytest.approx((0.2, 0.001, 0.002), rel=0.25)
    assert cost.separable
    assert 0 < cost.error < 0.02


def test_a_few_wild_tasks_have_little_say() -> None:
    rows = spread_rows()
    seconds = 0.1 + 0.001 * rows
    seconds[::20] *= 10.0
    cost = fit(samples(rows, np.zeros(len(rows)), seconds))
    assert cost is not None
    assert cost.row_s == pytest.approx(0.001, rel=0.05)


def test_where_rows_hardly_vary_only_the_whole_is_known_and_that_is_said() -> None:
    rows = np.full(30, 1000.0)
    cost = fit(samples(rows, np.zeros(30), np.full(30, 1.5)))
    assert cost is not None
    assert not cost.separable
    assert cost.seconds(rows[:1], np.zeros(1), 4.0)[0] == pytest.approx(1.5)


@pytest.mark.parametrize(
    "slowing",
    [
        pytest.param(Slowing(0.0, 0.0), id="it waits"),
        pytest.param(Slowing(0.5, 0.5), id="it shares some of what there is"),
        pytest.param(Slowing(1.0, 1.0), id="it burns CPU"),
        pytest.param(Slowing(1.0, 0.0), id="it burns CPU to start and waits for its rows"),
        pytest.param(Slowing(0.0, 0.7), id="only its rows share"),
    ],
)
def test_what_executors_do_to_each_part_of_a_task_is_read_from_a_change_of_them(slowing: Slowing) -> None:
    rows = spread_rows()
    executors = np.where(np.arange(len(rows)) < 100, 2.0, 6.0)
    real = TaskCost(0.8, 0.001, at_executors=6.0, slowing=slowing)
    noise = np.exp(np.random.default_rng(6).normal(0.0, 0.05, len(rows)))
    cost = fit(samples(rows, np.zeros(len(rows)), noise * real.seconds(rows, 0.0, executors), executors))
    assert cost is not None
    assert cost.slowing is not None
    assert (cost.slowing.starting, cost.slowing.taking) == pytest.approx((slowing.starting, slowing.taking), abs=0.15)
    far = np.array([1_000.0, 10_000.0])
    assert cost.seconds(far, 0.0, 12.0) == pytest.approx(real.seconds(far, 0.0, 12.0), rel=0.1)


def test_it_is_unknown_as_long_as_the_executors_stay_the_same() -> None:
    rows = spread_rows()
    cost = fit(samples(rows, np.zeros(len(rows)), 0.1 + 0.001 * rows))
    assert cost is not None
    assert cost.slowing is None
    assert cost.seconds(rows, 0.0, 100.0) == pytest.approx(cost.seconds(rows, 0.0, 4.0))


def test_where_rows_hardly_vary_the_whole_task_is_slowed() -> None:
    executors = np.repeat((2.0, 6.0), 20)
    cost = fit(samples(np.full(40, 1000.0), np.zeros(40), 1.5 * (executors / 6.0) ** 0.5, executors))
    assert cost is not None
    assert cost.slowing is not None
    assert cost.slowing.starting == cost.slowing.taking == pytest.approx(0.5, abs=0.05)


def test_nothing_measured_is_no_cost_and_unknown_tasks_do_not_count() -> None:
    nothing = np.empty(0)
    assert fit(samples(nothing, nothing, nothing)) is None
    rows = np.array([1000.0, math.nan, 2000.0, 1500.0])
    cost = fit(samples(rows, np.zeros(4), 0.001 * np.nan_to_num(rows)))
    assert cost is not None
    off = residuals(TaskCost(0.0, 0.001), rows, np.zeros(4), 0.002 * rows, 4.0)
    assert off[[0, 2, 3]] == pytest.approx(math.log(2.0))
    assert math.isnan(off[1])


@pytest.mark.parametrize("executors", [4.0, np.repeat((2.0, 6.0), 50)])
def test_tasks_that_hardly_ever_have_rows_cost_what_they_cost_without(executors: float | Array) -> None:
    rows = np.where(np.arange(100) == 7, 500.0, 0.0)
    cost = fit(samples(rows, np.zeros(100), np.full(100, 0.1), executors))
    assert cost is not None
    assert (cost.task_s, cost.row_s) == pytest.approx((0.1, 0.0))


def test_executors_that_only_changed_together_with_the_rows_tell_nothing() -> None:
    rows = np.repeat((150.0, 75.0), 20)
    cost = fit(samples(rows, np.zeros(40), 0.05 + 0.001 * rows, np.repeat((2.0, 3.0), 20)))
    assert cost is not None
    assert cost.slowing is None
