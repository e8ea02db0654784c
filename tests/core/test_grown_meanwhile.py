"""A batch during which executors came, as it would have been with all of them."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.core.configuration import EXECUTORS_KNOB, SPREAD, Knob, Patch
from homeostat.core.grown_meanwhile import only_adds_executors, with_present_slots
from support.timed_batches import batch, stage


def test_stages_are_replayed_on_the_slots_that_are_there_now() -> None:
    """Eight tasks of two seconds ran on two slots; there are four now. The sink took a second."""
    tasks = {"read": stage([2.0] * 8, began_s=0.0)}
    observation = batch(tasks, seconds=9.5, phases_s={"queryPlanning": 0.5, "addBatch": 9.0}, slots=4)
    now = with_present_slots(observation)
    assert float(np.nanmax(now.tasks["read"].finish_s)) == pytest.approx(4.0)
    assert now.flows[0].seconds == pytest.approx(5.5)
    assert now.flows[0].phases_s == pytest.approx({"queryPlanning": 0.5, "addBatch": 5.0})
    assert (now.flows[0].rows, now.at_s, now.span_s) == (
        observation.flows[0].rows,
        observation.at_s,
        observation.span_s,
    )


def test_one_long_task_stays_as_long_as_it_is() -> None:
    tasks = {"read": stage([9.0, 1.0, 1.0], began_s=0.0)}
    observation = batch(tasks, seconds=9.5, phases_s={"queryPlanning": 0.5, "addBatch": 9.0}, slots=8)
    assert with_present_slots(observation).flows[0].seconds == pytest.approx(9.5)


def test_only_more_executors_leave_tasks_as_they_are() -> None:
    assert only_adds_executors(Patch({EXECUTORS_KNOB: 8}))
    assert not only_adds_executors(Patch({EXECUTORS_KNOB: 8}, frozenset({"e-1"})))
    assert not only_adds_executors(Patch({EXECUTORS_KNOB: 8, Knob(SPREAD, "count"): 8}))
