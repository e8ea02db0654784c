"""Costs of tasks from measurements that are noisy, uneven or tell too little."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.core.observation import NAN, Array
from homeostat.sim.fit.cost_regression import Cost, fit_cost, robust_mean
from homeostat.sim.microbatch.stages import crowding_factor

RNG_SEED = 4


def unknown(count: int) -> Array:
    return np.full(count, NAN)


def alone(count: int) -> Array:
    return np.ones(count)


def test_a_task_and_a_row_have_their_own_cost() -> None:
    rows = np.linspace(10, 1000, 50)
    cost = fit_cost(rows, unknown(50), 0.3 + 0.002 * rows, alone(50))
    assert (cost.task_s, cost.row_s, cost.key_s) == pytest.approx((0.3, 0.002, 0.0))


def test_a_key_has_its_own_cost_where_keys_and_rows_differ() -> None:
    rng = np.random.default_rng(RNG_SEED)
    rows, keys = rng.uniform(10, 1000, 200), rng.uniform(1, 50, 200)
    cost = fit_cost(rows, keys, 0.3 + 0.002 * rows + 0.01 * keys, alone(200))
    assert (cost.task_s, cost.row_s, cost.key_s) == pytest.approx((0.3, 0.002, 0.01))
    alike = fit_cost(rows, rows / 2, 0.3 + 0.002 * rows, alone(200))
    assert alike.key_s == 0


def test_a_few_tasks_that_hang_have_little_say() -> None:
    rng = np.random.default_rng(RNG_SEED)
    rows = rng.uniform(10, 1000, 300)
    seconds = (0.3 + 0.002 * rows) * rng.lognormal(0, 0.1, 300)
    seconds[::20] *= 10
    cost = fit_cost(rows, unknown(300), seconds, alone(300))
    assert cost.task_s == pytest.approx(0.3, rel=0.2)
    assert cost.row_s == pytest.approx(0.002, rel=0.1)


def test_no_cost_is_negative() -> None:
    rows = np.linspace(10, 1000, 50)
    assert fit_cost(rows, unknown(50), 2.0 - 0.001 * rows, alone(50)).row_s == 0
    steep = fit_cost(rows, unknown(50), np.maximum(0.001, 0.002 * rows - 0.5), alone(50))
    assert steep.task_s == 0


def test_executors_that_share_cores_make_a_task_dearer_and_not_a_row() -> None:
    rng = np.random.default_rng(RNG_SEED)
    rows, busy = rng.uniform(10, 300, 300), rng.choice([1.0, 2.0, 4.0], 300)
    seconds = (0.05 * crowding_factor(0.75, busy) + 0.001 * rows) * rng.lognormal(0, 0.05, 300)
    cost = fit_cost(rows, unknown(300), seconds, busy)
    assert cost.crowding == pytest.approx(0.75, abs=0.13)
    assert cost.row_s == pytest.approx(0.001, rel=0.1)
    assert cost.seconds(np.array([100.0]), unknown(1), 4)[0] == pytest.approx(
        0.05 * crowding_factor(0.75, 4.0) + 0.1, rel=0.05
    )


def test_rows_that_grew_with_the_executors_leave_it_open_which_of_them_cost() -> None:
    busy = np.repeat([1.0, 2.0, 4.0], 50)
    rows = 75 * busy + np.tile(np.arange(50), 3) / 10
    cost = fit_cost(rows, unknown(150), 0.05 * busy + 0.001 * rows, busy)
    assert cost.crowding == 0


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], Cost(0.02, 0.0, separable=False)),
        ([0.0, 0.0], Cost(0.5, 0.0)),
        ([96.0, 100.0, 92.0], Cost(0.02, 0.005, separable=False)),
    ],
)
def test_what_cannot_be_known_is_a_guess(rows: list[float], expected: Cost) -> None:
    cost = fit_cost(np.array(rows), unknown(len(rows)), np.full(len(rows), 0.5), alone(len(rows)))
    assert (cost.task_s, cost.row_s, cost.separable) == pytest.approx(
        (expected.task_s, expected.row_s, expected.separable)
    )


def test_a_robust_mean_is_near_the_bulk() -> None:
    assert robust_mean(np.array([1.0, 1.1, 0.9, 1.0, 30.0])) == pytest.approx(1.0, abs=0.1)
