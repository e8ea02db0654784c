"""Time that batches would not need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.causes import DATA_SKEW, SLOW_INSTANCE
from homeostat.core.configuration import EXECUTORS_KNOB
from homeostat.core.evidence import LostTime
from homeostat.core.findings import Symptom
from homeostat.core.observation import Observation
from homeostat.core.symptoms import LOST_TIME
from homeostat.core.time_causes import CHECKPOINT_BOUND, COSTLY_KEYS, DRIVER_BOUND, GC_BOUND, SINK_BOUND, SKEWED_JOIN
from homeostat.core.topology import Component, Topology
from homeostat.detectors.lost_time import LostTimeDetector
from homeostat.testing import check_detector, view_of
from support.timed_batches import batch, slow_sink, stage


def symptoms(sink_s: float, count: int = 6, **others: float) -> list[Symptom]:
    return list(LostTimeDetector().detect(view_of(slow_sink(sink_s, count, **others))))


def late_with_a_slow_planner(number: int, rows: float, planning_s: float) -> Observation:
    """Each 1,000 rows take 4 s on the slots."""
    tasks = {"read": stage([2.0 * rows / 1000.0] * 4, began_s=planning_s)}
    seconds = planning_s + 4.0 * rows / 1000.0
    observed = batch(
        tasks, number=number, seconds=seconds, phases_s={"queryPlanning": planning_s, "addBatch": seconds - planning_s}
    )
    return replace(observed, flows=tuple(replace(flow, rows=rows) for flow in observed.flows))


def test_what_a_slow_worker_takes_does_not_hide_the_driver() -> None:
    """2 s of planning are little for a batch of 22 s, but most of what is left without the slow worker."""

    def observed(number: int, times: float, planning_s: float) -> Observation:
        sample = stage([times if worker == 3 else 1.0 for worker in [0, 1, 2, 3] * 2], began_s=planning_s, slots=4)
        seconds = planning_s + 2.0 * times
        phases_s = {"queryPlanning": planning_s, "addBatch": 2.0 * times}
        return batch(
            {"read": replace(sample, worker=np.arange(8) % 4)},
            number=number,
            seconds=seconds,
            phases_s=phases_s,
            slots=4,
        )

    batches = [*(observed(n, 1.0, 0.2) for n in range(1, 10)), *(observed(n, 12.0, 2.0) for n in range(10, 14))]
    lost = [s.evidence for s in LostTimeDetector().detect(view_of(batches))]
    causes = {each.cause for each in lost if isinstance(each, LostTime)}
    assert DRIVER_BOUND in causes
    assert SLOW_INSTANCE not in causes, "a detector of its own reports it"


def test_rows_that_wait_do_not_hide_what_the_driver_takes() -> None:
    """3 s of planning are much for a batch of the 1,000 rows that arrive, and little for one with rows that waited."""
    usual = [late_with_a_slow_planner(number, 1000.0, 0.3) for number in range(1, 10)]
    late = [late_with_a_slow_planner(number, 5000.0, 3.0) for number in range(10, 14)]
    lost = [s.evidence for s in LostTimeDetector().detect(view_of([*usual, *late]))]
    assert DRIVER_BOUND in {each.cause for each in lost if isinstance(each, LostTime)}


def test_a_slow_sink_is_reported_with_what_it_takes_and_what_more_executors_would_win() -> None:
    (symptom,) = symptoms(6.0)
    assert symptom.kind == LOST_TIME
    evidence = symptom.evidence
    assert isinstance(evidence, LostTime)
    assert evidence.cause == SINK_BOUND
    assert evidence.without_s == pytest.approx(2.1)
    assert not evidence.scaling_helps
    assert evidence.summary() == (
        "the sink takes 6 s of 8.1 s; without it the batch would take 2.1 s; twice as many executors would save 1 s"
    )


def test_what_costs_less_than_a_tenth_of_the_trigger_interval_is_no_symptom() -> None:
    assert symptoms(0.9, trigger_s=3.5) != []
    assert symptoms(0.9, trigger_s=10.0) == []


def test_what_batches_that_end_in_time_have_always_cost_is_no_symptom() -> None:
    assert symptoms(4.0, count=20) == [], "six seconds of ten"


def test_a_loss_that_has_risen_is_one_also_if_batches_end_in_time() -> None:
    observed = [*slow_sink(0.5, 12), *slow_sink(4.0, 18)[12:]]
    (symptom,) = LostTimeDetector().detect(view_of(observed))
    assert isinstance(symptom.evidence, LostTime)
    assert symptom.evidence.usual_s == pytest.approx(0.5)


def slow_sink_and_commit(commit_s: float, count: int = 18, usual_s: float = 0.1) -> list[Observation]:
    """A sink of twenty seconds beside a commit of the offsets, both from the thirteenth batch on."""
    quiet, slow = slow_sink(0.5, count), slow_sink(20.0, count)
    return [
        replace(each, flows=(replace(each.flows[0], phases_s={**each.flows[0].phases_s, "commitOffsets": s}),))
        for each, s in [*((q, usual_s) for q in quiet[:12]), *((s, commit_s) for s in slow[12:])]
    ]


def causes(observed: list[Observation]) -> list[str]:
    return [s.evidence.cause for s in LostTimeDetector().detect(view_of(observed)) if isinstance(s.evidence, LostTime)]


def test_a_cause_beside_a_larger_one_counts_by_what_it_takes_of_the_rest() -> None:
    """Two seconds are a tenth of the batch, but half of what it would take without the sink."""
    assert causes(slow_sink_and_commit(2.0)) == [SINK_BOUND, CHECKPOINT_BOUND]


def test_what_costs_as_much_as_ever_is_not_named_beside_a_larger_cause() -> None:
    assert causes(slow_sink_and_commit(2.0, usual_s=2.0)) == [SINK_BOUND]


def test_a_batch_that_was_not_measured_does_not_hide_the_others() -> None:
    observed = slow_sink(6.0, 7)
    unmeasured = replace(observed[-2], flows=(replace(observed[-2].flows[0], seconds=math.nan),))
    assert causes([*observed[:-2], unmeasured, observed[-1]]) == [SINK_BOUND]


def test_two_batches_are_not_enough() -> None:
    assert symptoms(6.0, count=2) == []


def test_a_single_slow_batch_is_no_symptom() -> None:
    observed = [*slow_sink(0.1, 5), *slow_sink(6.0, 6)[5:]]
    assert list(LostTimeDetector().detect(view_of(observed))) == []


def test_it_keeps_its_contract() -> None:
    check_detector(LostTimeDetector())


def uneven_batches(rows: Sequence[float], name: str) -> list[Observation]:
    """One task takes nearly all of a batch, on one worker and then on the other."""
    scan, long = stage([0.1, 0.1], began_s=0.1), stage([11.0, 1.0, 1.0, 1.0], rows=rows, began_s=0.3)
    phases_s = {"queryPlanning": 0.1, "addBatch": 11.3}
    stages = [{"read": scan, name: replace(long, worker=worker)} for worker in (long.worker, 1 - long.worker)]
    return [batch(stages[number % 2], number=number, seconds=11.4, phases_s=phases_s) for number in range(1, 7)]


@pytest.mark.parametrize("rows", [(1_100.0, 100.0, 100.0, 100.0), (100.0, 100.0, 100.0, 100.0)])
@pytest.mark.parametrize("joins", [True, False])
def test_uneven_or_costly_rows_of_a_join_are_a_skewed_join(rows: tuple[float, ...], joins: bool) -> None:
    operator = Component("both", "operator", EXECUTORS_KNOB, ("read",), keyed=True, joins=joins)
    topology = Topology((Component("read", "source", EXECUTORS_KNOB), operator))
    detected = LostTimeDetector().detect(view_of(uneven_batches(rows, "both"), topology=topology))
    named = {s.evidence.cause for s in detected if s.component == "both" and isinstance(s.evidence, LostTime)}
    assert (SKEWED_JOIN in named) == joins
    assert named.isdisjoint({DATA_SKEW, COSTLY_KEYS}) == joins


@pytest.mark.parametrize(("gc_s", "causes"), [(0.9, [GC_BOUND]), (0.1, [])])
def test_what_no_healthy_batch_loses_is_one_also_if_it_was_always_there_and_batches_end_in_time(
    gc_s: float, causes: list[str]
) -> None:
    tasks = {"read": stage([2.0] * 4, began_s=0.0, gc_s=gc_s)}
    observed = [batch(tasks, number=n, seconds=4.0, phases_s={"addBatch": 4.0}) for n in range(1, 20)]
    assert [s.evidence.cause for s in LostTimeDetector().detect(view_of(observed))] == causes  # type: ignore[attr-defined]
