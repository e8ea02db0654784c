"""Executors are not changed where that cannot help."""

from __future__ import annotations

from homeostat.core.actions import RETUNE, SCALE_DOWN, SCALE_UP
from homeostat.core.causes import SLOW_INSTANCE
from homeostat.core.configuration import EXECUTORS_KNOB, PARALLELISM, SPREAD, TRIGGER_S, Knob, Patch, Value
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.guards import GuardContext
from homeostat.core.observation import Observation
from homeostat.resolvers.scaling_veto import ScalingVeto
from homeostat.testing import view_of
from support.timed_batches import batch, slow_sink, stage

TRIGGER_KNOB = Knob(TRIGGER_S, "main")


def check(observed: list[Observation], kind: str, values: dict[Knob, Value]) -> Proposal | str:
    view = view_of(observed, values={TRIGGER_KNOB: 10.0})
    proposal = Proposal(kind, (Diagnosis("some cause"),), Patch(values))
    return ScalingVeto().check(proposal, GuardContext(view))


def test_more_executors_do_not_shorten_a_sink() -> None:
    refused = check(slow_sink(12.0), SCALE_UP, {EXECUTORS_KNOB: 8})
    assert refused == "the sink takes 12 s of 14.1 s, and more executors would still leave it at 13.1 s"


def test_executors_are_not_removed_while_a_sink_makes_batches_late() -> None:
    assert check(slow_sink(12.0), SCALE_DOWN, {EXECUTORS_KNOB: 1}) == "the sink takes 12 s of 14.1 s"
    assert isinstance(check(slow_sink(0.1), SCALE_DOWN, {EXECUTORS_KNOB: 1}), Proposal)


def test_executors_are_not_removed_on_the_first_late_batch() -> None:
    observed = [*slow_sink(0.1, 5), *slow_sink(12.0, 6)[5:]]
    assert check(observed, SCALE_DOWN, {EXECUTORS_KNOB: 1}) == "the latest batch took 14.1 s, and the limit is 10 s"


def test_other_changes_of_the_same_proposal_remain() -> None:
    trimmed = check(slow_sink(12.0), RETUNE, {EXECUTORS_KNOB: 8, TRIGGER_KNOB: 20.0})
    assert isinstance(trimmed, Proposal)
    assert dict(trimmed.patch.values) == {TRIGGER_KNOB: 20.0}


def test_tasks_that_wait_for_a_slot_get_more_of_them() -> None:
    busy = [
        batch({"read": stage([2.0] * 12, began_s=0.0)}, number=n, seconds=12.0, phases_s={"addBatch": 12.0})
        for n in range(1, 7)
    ]
    assert isinstance(check(busy, SCALE_UP, {EXECUTORS_KNOB: 4}), Proposal)


def crowded(tasks: int, task_s: float) -> list[Observation]:
    tasks_s = {"read": stage([task_s] * tasks, began_s=0.0, slots=8)}
    return [batch(tasks_s, number=n, seconds=task_s + 0.1, phases_s={"addBatch": task_s}, slots=8) for n in range(1, 7)]


def test_executors_without_a_task_for_them_win_nothing() -> None:
    refused = check(crowded(4, 9.0), SCALE_UP, {EXECUTORS_KNOB: 16})
    assert isinstance(refused, str)


def test_only_the_partitions_grow_where_they_are_enough() -> None:
    partitions = Knob(PARALLELISM, "read")
    trimmed = check(crowded(2, 12.0), SCALE_UP, {EXECUTORS_KNOB: 16, partitions: 32})
    assert isinstance(trimmed, Proposal)
    assert dict(trimmed.patch.values) == {partitions: 32}


def test_executors_grow_with_the_partitions_where_these_are_not_enough() -> None:
    both: dict[Knob, Value] = {EXECUTORS_KNOB: 16, Knob(PARALLELISM, "read"): 32}
    granted = check(crowded(8, 12.0), SCALE_UP, both)
    assert isinstance(granted, Proposal)
    assert dict(granted.patch.values) == both


def test_a_task_with_the_rows_of_one_key_is_not_divided_by_more_partitions() -> None:
    rows = [2000.0, *[100.0] * 11]
    tasks = {"read": stage([0.01 * each for each in rows], rows=rows, began_s=0.0)}
    hot = [batch(tasks, number=n, seconds=20.0, phases_s={"addBatch": 20.0}) for n in range(1, 7)]
    both: dict[Knob, Value] = {EXECUTORS_KNOB: 16, Knob(PARALLELISM, "read"): 32}
    trimmed = check(hot, SCALE_UP, both)
    assert isinstance(trimmed, Proposal)
    assert EXECUTORS_KNOB not in trimmed.patch.values
    spread = {**both, Knob(SPREAD, "read"): 8}
    granted = check(hot, SCALE_UP, spread)
    assert isinstance(granted, Proposal)
    assert dict(granted.patch.values) == spread


def test_a_slow_worker_that_is_replaced_does_not_hide_the_gain_of_more_executors() -> None:
    """The slow worker keeps its slot for as long as everything else takes together."""
    run_s = [9.0, *[1.5] * 11]
    busy = [
        batch({"read": stage(run_s, began_s=0.0)}, number=n, seconds=16.5, phases_s={"addBatch": 16.5})
        for n in range(1, 7)
    ]
    for each in busy:
        each.tasks["read"].worker[:] = [0, *[1] * 11]
        each.tasks["read"].finish_s[:] = [9.0, *[1.5 * n for n in range(1, 12)]]
    view = view_of(busy, values={TRIGGER_KNOB: 10.0})
    grow = Proposal(SCALE_UP, (Diagnosis("some cause"),), Patch({EXECUTORS_KNOB: 12}))
    uneven = GuardContext(view, standing_since_s={(SLOW_INSTANCE, "read"): 0.0})
    assert isinstance(ScalingVeto(least_gain=0.6).check(grow, GuardContext(view)), str)
    assert isinstance(ScalingVeto(least_gain=0.6).check(grow, uneven), Proposal)
