"""The work of a stage: every row in one partition, every wave of tasks on its executors."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.sim.microbatch.stages import Routing, busy_executors, crowding_factor, stage_rows, updated_keys, work
from homeostat.sim.scenario.spec import ComponentSpec

LINES = ComponentSpec("lines", "source", parallelism=2, selectivity=3.0)
COUNT = ComponentSpec("count", inputs=("lines",), parallelism=4, keyed=True, keys=100, key_s=0.01)


def test_no_row_is_lost_between_partitions() -> None:
    done = work(COUNT, 1003, Routing(4), busy_executors(2, 4, 1))
    assert done.rows.sum() == 1003
    assert (done.keys <= done.rows).all()


def test_selectivity_multiplies_the_rows_of_the_next_stage() -> None:
    assert stage_rows((LINES, COUNT), {"lines": 10}, {"lines": 2, "count": 4}) == {"lines": 10, "count": 30}


def test_a_last_wave_with_few_tasks_keeps_few_executors_busy() -> None:
    assert busy_executors(3, 7, 2).tolist() == [3.0] * 6 + [1.0]


def test_each_other_executor_adds_its_share_of_the_cost() -> None:
    assert crowding_factor(0.5, np.array([1.0, 3.0])).tolist() == [1.0, 2.0]  # type: ignore[union-attr]


def test_a_spread_key_counts_once_per_part() -> None:
    once, twice = (updated_keys(COUNT, 1e6, Routing(4, spread)) for spread in (1, 2))
    assert once == pytest.approx(100.0)
    assert twice == pytest.approx(200.0)
