"""How long a batch would have taken without a cause."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.causes import UNDER_PROVISIONED
from homeostat.core.observation import Observation, TaskSample
from homeostat.core.time_causes import (
    CHECKPOINT_BOUND,
    DRIVER_BOUND,
    FAILING_TASKS,
    GC_BOUND,
    SHUFFLE_BOUND,
    SINK_BOUND,
    SOURCE_BOUND,
    SPILLING,
    TINY_TASKS,
    TOO_FEW_PARTITIONS,
)
from homeostat.models.recoverable import UNEVEN_ROWS, BatchLosses, batch_losses
from support.timed_batches import batch, slow_sink, stage


def losses_of(observed: Observation) -> BatchLosses:
    losses = batch_losses(observed)
    assert losses is not None
    return losses


def one_stage(sample: TaskSample, slots: int = 2, **phases_s: float) -> BatchLosses:
    stage_s = float(np.nanmax(sample.finish_s))
    seconds = stage_s + sum(phases_s.values())
    return losses_of(batch({"read": sample}, seconds=seconds, phases_s={**phases_s, "addBatch": stage_s}, slots=slots))


def test_a_sink_costs_what_it_takes_and_more_executors_would_not_shorten_it() -> None:
    losses = losses_of(slow_sink(6.0)[0])
    assert losses.seconds(SINK_BOUND) == pytest.approx(6.0)
    assert losses.seconds(UNDER_PROVISIONED) == pytest.approx(1.0), "two seconds of tasks on twice the slots"


def test_each_phase_of_the_driver_has_its_cause() -> None:
    losses = one_stage(stage([1.0, 1.0], began_s=6.5), queryPlanning=2.0, latestOffset=1.0, getBatch=0.5, walCommit=3.0)
    assert losses.seconds(DRIVER_BOUND) == pytest.approx(2.0)
    assert losses.seconds(SOURCE_BOUND) == pytest.approx(1.5)
    assert losses.seconds(CHECKPOINT_BOUND) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("cause", "costs"),
    [
        (GC_BOUND, {"gc_s": 1.5}),
        (FAILING_TASKS, {"failed_s": 1.5}),
        (SHUFFLE_BOUND, {"shuffle_write_s": 1.5}),
        (SPILLING, {"spilled_disk_bytes": 90e6, "cpu_s": 2.0}),
    ],
)
def test_time_inside_the_tasks_is_taken_from_each_of_them(cause: str, costs: dict[str, Any]) -> None:
    losses = one_stage(stage([2.0, 2.0, 2.0, 2.0], began_s=0.0, **costs))
    whole_s = 2.0 + costs.get("failed_s", 0.0)
    assert losses.seconds(cause, "read") == pytest.approx(4.0 * 1.5 / whole_s, rel=0.01)


def test_uneven_rows_cost_what_the_longest_task_takes_beyond_an_even_share() -> None:
    losses = one_stage(stage([4.0, 1.0, 1.0, 1.0], rows=[400, 100, 100, 100], began_s=0.0, slots=4), slots=4)
    assert losses.seconds(UNEVEN_ROWS, "read") == pytest.approx(4.0 - 1.75, abs=0.2)


def test_two_causes_that_hide_each_other_are_both_seen() -> None:
    """One task is long by its rows and another by garbage collection: removing one alone gains nothing."""
    sample = stage([4.0, 4.0, 1.0, 1.0], rows=[400, 100, 100, 100], began_s=0.0, slots=4)
    assert sample.costs is not None
    sample.costs.gc_s[:] = [0.0, 3.0, 0.0, 0.0]
    losses = one_stage(sample, slots=4)
    assert losses.seconds(GC_BOUND, "read") > 1.0
    assert losses.seconds(UNEVEN_ROWS, "read") > 1.0


def test_many_tiny_tasks_cost_their_starts() -> None:
    losses = one_stage(stage([0.05] * 100, began_s=0.0))
    assert losses.seconds(TINY_TASKS, "read") == pytest.approx(2.45, rel=0.05), "2.5 s of starts instead of one"
    assert one_stage(stage([2.0] * 4, began_s=0.0)).seconds(TINY_TASKS, "read") < 0.3


def test_short_tasks_that_follow_their_rows_do_not_cost_their_starts() -> None:
    rows = [20, 25, 15, 30, 22, 18, 27, 23] * 3
    by_rows = one_stage(stage([0.02 + 0.012 * each for each in rows], rows=rows, began_s=0.0, slots=1), slots=1)
    assert by_rows.seconds(TINY_TASKS, "read") == pytest.approx(23 * 0.02, rel=0.05)
    by_start = one_stage(stage([0.08 + 1e-6 * each for each in rows], rows=rows, began_s=0.0, slots=1), slots=1)
    assert by_start.seconds(TINY_TASKS, "read") == pytest.approx(23 * 0.08, rel=0.05)


def test_fewer_tasks_than_slots_cost_the_slots_that_stay_empty() -> None:
    losses = one_stage(stage([4.0, 4.0], began_s=0.0), slots=8)
    assert losses.seconds(TOO_FEW_PARTITIONS, "read") == pytest.approx(3.0, abs=0.2)
    assert losses.seconds(UNDER_PROVISIONED) == 0.0


def test_what_was_not_measured_costs_nothing() -> None:
    losses = one_stage(stage([2.0, 2.0], began_s=0.0))
    assert not any(losses.seconds(cause, "read") for cause in (GC_BOUND, SHUFFLE_BOUND, SPILLING, FAILING_TASKS))


@given(
    st.lists(st.floats(0.01, 100.0), min_size=1, max_size=12),
    st.floats(0.0, 50.0),
    st.floats(0.0, 20.0),
    st.integers(1, 6),
)
def test_no_cause_costs_more_than_the_batch_took(run_s: list[float], gc_s: float, sink_s: float, slots: int) -> None:
    sample = stage(run_s, began_s=0.0, slots=slots, gc_s=gc_s)
    stage_s = float(sample.finish_s.max())
    seconds = stage_s + sink_s
    losses = losses_of(batch({"read": sample}, seconds=seconds, phases_s={"addBatch": seconds}, slots=slots))
    for loss in losses.losses.values():
        assert math.isfinite(loss.seconds)
        assert 0.0 < loss.seconds <= seconds * (1 + 1e-6)
