"""What a task costs besides its rows is told apart from its rows, where they vary enough to tell."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.observation import TaskSample
from homeostat.core.view import View
from homeostat.models.capacity import loads
from homeostat.models.model_fitting import batch_model
from homeostat.models.task_times import task_costs
from homeostat.testing import instances, observations, view_of

TASK_S, ROW_S, DRIVER_S, TRIGGER_S = 0.08, 0.001, 0.5, 4.0
PARTITIONS, SLOTS = 16, 4


def batches(rows: list[float], noise: float = 0.0, seed: int = 1) -> View:
    """Stages of sixteen tasks on four slots, each of which takes 80 ms and a millisecond a row."""
    chance = np.random.default_rng(seed)
    task_s = [(TASK_S + ROW_S * n / PARTITIONS) * math.exp(noise * chance.standard_normal()) for n in rows]
    span_s = [PARTITIONS / SLOTS * each for each in task_s]

    def tasks(number: int) -> dict[str, TaskSample]:
        each = rows[number] / PARTITIONS
        return {"lines": instances([each] * PARTITIONS, task_s[number], finish_s=span_s[number])}

    return view_of(
        observations(
            len(rows),
            tasks,
            executors=SLOTS,
            rows=rows,
            arrival_per_s=[n / TRIGGER_S for n in rows],
            seconds=[DRIVER_S + each for each in span_s],
            trigger_s=TRIGGER_S,
        )
    )


@given(st.lists(st.floats(100.0, 20_000.0), min_size=8, max_size=30).filter(lambda r: max(r) > 3 * min(r)))
def test_no_cost_is_negative_or_more_than_the_task(rows: list[float]) -> None:
    cost = task_costs(batches(rows, noise=0.1))["lines"]

    assert 0.0 <= cost <= TASK_S + ROW_S * max(rows) / PARTITIONS


def test_where_rows_vary_the_cost_of_a_task_is_found() -> None:
    view = batches([800.0, 1_600.0, 2_400.0, 900.0, 1_800.0, 3_000.0, 1_000.0, 2_000.0], noise=0.03)

    assert task_costs(view)["lines"] == pytest.approx(TASK_S, rel=0.25)


def test_where_rows_do_not_vary_all_time_is_that_of_the_rows() -> None:
    assert task_costs(batches([1_600.0] * 12, noise=0.1))["lines"] == 0.0


def test_small_batches_no_longer_hide_what_the_executors_can_take() -> None:
    """3.18 of 4 s are left for rows, of which four slots take 4,000 a second."""
    rows = [400.0, 800.0, 600.0, 500.0, 700.0, 400.0, 800.0, 600.0]
    expected = (TRIGGER_S - DRIVER_S - PARTITIONS / SLOTS * TASK_S) / TRIGGER_S * SLOTS / ROW_S

    assert loads(batches(rows))["lines"].capacity_per_s == pytest.approx(expected, rel=0.02)


def test_finer_partitions_pay_for_their_tasks() -> None:
    model = batch_model(batches([400.0, 800.0, 600.0, 500.0, 700.0, 400.0, 800.0, 600.0]))
    assert model is not None

    twice = model.plain_s(600.0, replace(model.setup, partitions={"lines": 2 * PARTITIONS}))

    assert twice - model.plain_s(600.0, model.setup) == pytest.approx(PARTITIONS / SLOTS * TASK_S, rel=0.05)
