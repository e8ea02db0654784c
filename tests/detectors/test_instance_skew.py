"""Instances apart from their peers: in rows given, rows waiting, time per row; and workers that are lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.configuration import SPREAD, Knob
from homeostat.core.events import Observed as ObservedEvent
from homeostat.core.findings import Symptom
from homeostat.core.observation import NAN, Observation, TaskSample
from homeostat.core.symptoms import PENDING_SKEW, RATE_SKEW, SPEED_SKEW, UNKNOWN
from homeostat.detectors.instance_skew import PendingSkewDetector, RateSkewDetector, SpeedSkewDetector
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.testing import blanked, instances, observations, view_of

Detector = RateSkewDetector | PendingSkewDetector | SpeedSkewDetector
Observed = Callable[..., tuple[Observation, ...]]
RATE, PENDING, SPEED = RateSkewDetector(), PendingSkewDetector(), SpeedSkewDetector()


def dataflow(split: TaskSample, count: int = 8, sources: int = 1) -> tuple[Observation, ...]:
    tasks = {"lines": instances([1000.0 / sources] * sources, 0.5), "split": split}
    return observations(count, tasks, arrival_per_s=100.0)


def symptoms_of(detector: Detector, observed: Sequence[Observation], spread: int = 1) -> list[Symptom]:
    return list(detector.detect(view_of(observed, values={Knob(SPREAD, "split"): spread})))


def with_rows(*rows: float) -> tuple[Observation, ...]:
    """Instances of the same speed that were given so many rows."""
    return dataflow(instances(rows, [each / 200.0 for each in rows]))


def waiting(*pending_rows: float) -> tuple[Observation, ...]:
    return dataflow(instances([500.0] * len(pending_rows), 5.0, pending_rows=pending_rows))


def taking(*ms_per_row: float, sources: int = 1) -> tuple[Observation, ...]:
    rows = [500.0] * len(ms_per_row)
    return dataflow(instances(rows, [0.5 * ms for ms in ms_per_row]), sources=sources)


CASES = [(RATE, with_rows, RATE_SKEW), (PENDING, waiting, PENDING_SKEW), (SPEED, taking, SPEED_SKEW)]


@pytest.mark.parametrize(("detector", "observed", "kind"), CASES)
@pytest.mark.parametrize("peers", [1, 3, 7, 20])
def test_an_instance_with_three_times_as_much_as_its_peers_is_named(
    detector: Detector, observed: Observed, kind: str, peers: int
) -> None:
    (symptom,) = symptoms_of(detector, observed(6.0, *[2.0] * peers))

    assert (symptom.kind, symptom.component, symptom.instances, symptom.workers) == (kind, "split", (0,), ("split-0",))
    assert symptom.severity == pytest.approx(1.0 - 1.0 / 3.0)


@pytest.mark.parametrize(("detector", "observed", "kind"), CASES)
@pytest.mark.parametrize("values", [(2.0,), (2.0, 2.0), (2.6, 2.0), (2.6, 2.0, 2.0, 2.0, 2.2), (2.0, 2.5, 3.0, 3.5)])
def test_peers_that_differ_a_little_are_no_skew(
    detector: Detector, observed: Observed, kind: str, values: tuple[float, ...]
) -> None:
    assert symptoms_of(detector, observed(*values)) == []


@pytest.mark.parametrize(("detector", "observed", "kind"), CASES)
@pytest.mark.parametrize("busy", [2, 3, 4, 12])
def test_one_idle_instance_is_no_skew(detector: Detector, observed: Observed, kind: str, busy: int) -> None:
    assert symptoms_of(detector, observed(0.0, *[200.0] * busy)) == []


@pytest.mark.parametrize(("detector", "observed", "kind"), CASES)
def test_several_can_be_apart_at_once(detector: Detector, observed: Observed, kind: str) -> None:
    (symptom,) = symptoms_of(detector, observed(8.0, 6.0, *[2.0] * 10))

    assert symptom.instances == (0, 1)
    assert symptom.severity == pytest.approx(0.75)


@pytest.mark.parametrize(("detector", "observed", "kind"), CASES)
def test_a_moment_is_no_skew(detector: Detector, observed: Observed, kind: str) -> None:
    calm, skewed = observed(2.0, 2.0, 2.0), observed(8.0, 2.0, 2.0)

    assert symptoms_of(detector, calm[:-1] + skewed[-1:]) == []
    assert symptoms_of(detector, skewed[:2]) == []


@pytest.mark.parametrize(
    ("detector", "observed", "columns"),
    [(RATE, with_rows, ("rows",)), (PENDING, waiting, ("pending_rows",)), (SPEED, taking, ("run_s",))],
)
def test_skew_is_unknown_without_its_metric(detector: Detector, observed: Observed, columns: tuple[str, ...]) -> None:
    (symptom,) = symptoms_of(detector, blanked(observed(8.0, 2.0, 2.0), *columns, component="split"))

    assert (symptom.kind, symptom.component) == (UNKNOWN, "split")
    assert symptom.evidence.figures()["detector"] == detector.name


def test_an_instance_that_was_not_measured_hides_nobody_else() -> None:
    (symptom,) = symptoms_of(RATE, with_rows(600.0, 200.0, NAN, 200.0))

    assert symptom.instances == (0,)


def test_rows_left_in_its_queue_were_given_to_an_instance_too() -> None:
    def tasks(number: int) -> dict[str, TaskSample]:
        queues = [1000.0 * (number + 1), 0.0, 0.0]
        split = instances([1000.0, 800.0, 800.0], [10.0, 8.0, 8.0], pending_rows=queues)
        return {"lines": instances(3600.0, 0.5), "split": split}

    (symptom,) = symptoms_of(RATE, observations(8, tasks, arrival_per_s=360.0))

    assert symptom.instances == (0,)
    assert symptom.evidence.figures()["times_peers"] == pytest.approx(2000.0 / 800.0)


def test_instances_among_which_hot_keys_are_spread_are_not_each_others_peers() -> None:
    """With four of six sharing the hot keys these would be the typical ones."""
    observed = with_rows(800.0, 800.0, 800.0, 800.0, 200.0, 200.0)

    assert symptoms_of(RATE, observed) == []
    (symptom,) = symptoms_of(RATE, observed, spread=4)
    assert symptom.instances == (0, 1, 2, 3)
    assert symptom.severity == pytest.approx(0.75)


def test_rows_spread_over_all_instances_are_even() -> None:
    assert symptoms_of(RATE, with_rows(500.0, 500.0, 500.0), spread=3) == []


def test_where_only_one_instance_has_anything_waiting_that_is_skew() -> None:
    (symptom,) = symptoms_of(PENDING, waiting(300.0, 0.0))

    assert symptom.instances == (0,)
    assert symptom.severity == pytest.approx(0.99)


def test_in_a_batch_the_late_task_is_the_one_that_waits() -> None:
    tasks = {
        "lines": instances([500.0] * 2, 0.5, finish_s=0.5),
        "split": instances([250.0] * 4, 1.0, finish_s=[6, 2, 2, 2]),
    }
    flow = {"arrival_per_s": 100.0, "rows": 1000.0, "seconds": 8.0, "trigger_s": 10.0}

    (symptom,) = symptoms_of(PENDING, observations(8, tasks, executors=4, **flow))

    assert (symptom.kind, symptom.instances, symptom.workers) == (PENDING_SKEW, (0,), ("exec-0",))


def test_a_slow_executor_is_named_with_all_its_tasks() -> None:
    run_s = [3.0 if i % 4 == 1 else 1.0 for i in range(12)]
    tasks = {
        "lines": instances([500.0] * 2, 0.5, finish_s=0.5),
        "split": instances([100.0] * 12, run_s, finish_s=run_s),
    }
    flow = {"arrival_per_s": 120.0, "rows": 1200.0, "seconds": 9.5, "trigger_s": 10.0}

    (symptom,) = symptoms_of(SPEED, observations(8, tasks, executors=4, **flow))

    assert (symptom.instances, symptom.workers) == ((1, 5, 9), ("exec-1",))
    assert symptom.evidence.figures()["times_peers"] == pytest.approx(3.0)


def test_the_slower_of_two_is_found_however_many_workers_do_something_else() -> None:
    (symptom,) = symptoms_of(SPEED, taking(5.0, 2.0, sources=10))

    assert symptom.workers == ("split-0",)
    assert symptom.evidence.figures()["times_peers"] == pytest.approx(2.5)


def test_being_given_more_rows_is_not_being_slow() -> None:
    assert symptoms_of(SPEED, with_rows(900.0, 200.0, 200.0)) == []


def test_being_slow_is_not_being_given_more_rows() -> None:
    assert symptoms_of(RATE, taking(9.0, 2.0, 2.0)) == []


def test_a_worker_that_is_gone_is_found_at_once() -> None:
    observed = taking(2.0, 2.0, 2.0)
    ids = observed[-1].workers.ids
    alive = np.array([name != "split-2" for name in ids])
    lost = replace(observed[-1], workers=replace(observed[-1].workers, alive=alive))

    (symptom,) = symptoms_of(SPEED, (*observed[:-1], lost))

    assert (symptom.kind, symptom.component, symptom.instances) == (SPEED_SKEW, "split", (2,))
    assert symptom.workers == ("split-2",)
    assert symptom.evidence.figures()["lost_workers"] == 1.0


BATCHES = {"arrival_per_s": 120.0, "rows": 1200.0, "seconds": 9.5, "trigger_s": 10.0}


def batches(run_s: Callable[[int], Sequence[float]], executors: int = 4, count: int = 8) -> tuple[Observation, ...]:
    """Two stages with the same tasks of 100 rows, the second of which takes twice as long; `run_s` by batch."""

    def tasks(number: int) -> dict[str, TaskSample]:
        first = np.asarray(run_s(number))
        rows = np.full(len(first), 100.0)
        return {
            "lines": instances(rows, first, finish_s=first),
            "split": instances(rows, 2.0 * first, finish_s=2.0 * first),
        }

    return observations(count, tasks, executors=executors, **BATCHES)


@pytest.mark.parametrize("tasks_each", [1, 2, 3, 5])
def test_an_executor_with_a_straggling_task_in_every_batch_is_not_slow(tasks_each: int) -> None:
    def run_s(number: int) -> list[float]:
        return [5.0 if i == 4 * (number % tasks_each) else 1.0 for i in range(4 * tasks_each)]

    def only_lines(observation: Observation) -> Observation:
        split = observation.tasks["split"]
        healthy = replace(split, run_s=np.full(split.instances, 2.0))
        return replace(observation, tasks={**observation.tasks, "split": healthy})

    assert symptoms_of(SPEED, [only_lines(o) for o in batches(run_s)]) == []


@pytest.mark.parametrize("times", [2.0, 4.0])
@pytest.mark.parametrize("executors", [2, 3, 8, 20])
def test_an_executor_slow_in_all_stages_is_reported_once_where_it_costs_most(times: float, executors: int) -> None:
    slow_tasks = [i for i in range(3 * executors) if i % executors == 1]

    (symptom,) = symptoms_of(
        SPEED, batches(lambda _: [times if i in slow_tasks else 1.0 for i in range(3 * executors)], executors)
    )

    assert (symptom.component, symptom.workers) == ("split", ("exec-1",))
    assert symptom.instances == tuple(slow_tasks)
    assert symptom.evidence.figures()["times_peers"] == pytest.approx(times)


@pytest.mark.parametrize(("times", "enough"), [(2.0, 3), (2.4, 3), (2.6, 2), (4.0, 2)])
def test_an_executor_must_be_slow_in_each_of_the_last_batches(times: float, enough: int) -> None:
    """In three of them, or in two if nobody can mistake it."""

    def run_s(slow: Sequence[int]) -> Callable[[int], list[float]]:
        return lambda number: [times if i % 4 == 1 and number in slow else 1.0 for i in range(12)]

    assert symptoms_of(SPEED, batches(run_s(range(9 - enough, 8)))) == []
    assert symptoms_of(SPEED, batches(run_s([3, 4, 5, 7]))) == []
    (symptom,) = symptoms_of(SPEED, batches(run_s(range(8 - enough, 8))))
    assert symptom.evidence.figures()["observations_in_a_row"] == enough


def test_short_tasks_do_not_hide_that_the_long_ones_are_slow() -> None:
    """An executor turned four times slower: its long tasks show it, of the short ones most is not its doing."""
    tasks = {
        "lines": instances([100.0] * 8, [4.0 if i % 4 == 1 else 1.0 for i in range(8)], finish_s=8.0),
        "count": instances([5.0] * 12, [0.12 if i % 4 == 1 else 0.1 for i in range(12)], finish_s=0.3),
    }

    (symptom,) = symptoms_of(SPEED, observations(8, tasks, executors=4, **BATCHES))
    assert symptom.evidence.figures()["times_peers"] == pytest.approx(4.0)


def test_one_weaker_batch_among_slow_ones_does_not_hide_them() -> None:
    def run_s(number: int) -> list[float]:
        return [(1.4 if number == 6 else 1.9) if i % 4 == 1 else 1.0 for i in range(12)]

    (symptom,) = symptoms_of(SPEED, batches(run_s))
    assert symptom.evidence.figures()["times_peers"] == pytest.approx(1.9)


def test_an_executor_apart_by_no_more_than_its_tasks_vary_is_not_slow() -> None:
    """Among the tasks of each, some take a third and others three times as long."""

    def run_s(number: int) -> list[float]:
        return [(1.7 if i % 4 == 1 else 1.0) * (0.35, 1.0, 3.0)[(i + number) % 3] for i in range(12)]

    assert symptoms_of(SPEED, batches(run_s)) == []


def test_an_executor_given_the_small_partitions_is_not_slow() -> None:
    """Starting a task takes as long for ten rows as for a hundred."""
    rows = [10.0 if i % 4 == 1 else 100.0 for i in range(12)]
    run_s = [0.5 + each / 200.0 for each in rows]
    tasks = {
        "lines": instances(rows, run_s, finish_s=run_s),
        "split": instances(rows, run_s, finish_s=run_s),
    }

    assert symptoms_of(SPEED, observations(8, tasks, executors=4, **BATCHES)) == []


@pytest.mark.parametrize(("scan_s", "workers"), [(1.0, []), (4.0, [("exec-1",)])])
def test_an_executor_is_not_slow_if_only_its_crowded_task_is(scan_s: float, workers: list[tuple[str, ...]]) -> None:
    """The rows of a hot key in a join match many others. Whether the executor is slow as well, its other tasks tell."""
    scans = [scan_s if i == 1 else 1.0 for i in range(4)]
    tasks = {
        "lines": instances([100.0] * 4, scans, finish_s=scans),
        "join": instances([50.0, 450.0, 50.0, 50.0], [0.5, 27.0, 0.5, 0.5], finish_s=27.0),
    }

    symptoms = symptoms_of(SPEED, observations(8, tasks, executors=4, **BATCHES))
    assert [symptom.workers for symptom in symptoms] == workers


@pytest.mark.parametrize(("scan_s", "is_named"), [(1.0, False), (3.0, True)])
def test_an_executor_is_not_slow_if_only_its_partition_of_one_stage_is(scan_s: float, is_named: bool) -> None:
    """Each executor has one partition of each stage. That rows of one cost more, the other stage tells."""
    scans = [scan_s if i == 1 else 1.0 for i in range(4)]
    counts = [12.0 if i == 1 else 3.0 for i in range(4)]
    tasks = {
        "lines": instances([100.0] * 4, scans, finish_s=scans),
        "count": instances([100.0] * 4, counts, finish_s=counts),
    }
    named = symptoms_of(SPEED, observations(8, tasks, executors=4, **BATCHES))
    assert [symptom.workers for symptom in named] == ([("exec-1",)] if is_named else [])


STRAGGLING = Scenario(
    name="stragglers",
    title="",
    engine=MicrobatchSpec(executors=8, slots=2, straggler_share=0.02, straggler_factor=5.0),
    duration_s=3600.0,
    components=(
        ComponentSpec("lines", kind="source", parallelism=40, rate_per_s=50_000.0),
        ComponentSpec("split", inputs=("lines",), parallelism=40, rate_per_s=1000.0),
    ),
    workload=WorkloadSpec(rate_per_s=4000.0),
    service_noise=Noise(0.15, 0.7),
)


def named_in(scenario: Scenario, seed: int) -> list[tuple[float, tuple[str, ...]]]:
    """When, and which executors, among the batches of the scenario."""
    events = Microbatch(scenario, seed).wait(scenario.duration_s)
    observed = [event.observation for event in events if isinstance(event, ObservedEvent)]
    moments = [(observed[end - 1].at_s, symptoms_of(SPEED, observed[end - 5 : end])) for end in range(5, len(observed))]
    return [(at_s, symptom.workers) for at_s, symptoms in moments for symptom in symptoms]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [201, 202, 203])
def test_stragglers_by_chance_make_no_executor_slow(seed: int) -> None:
    assert named_in(STRAGGLING, seed) == []


@pytest.mark.parametrize("factor", [2.0, 4.0])
@pytest.mark.parametrize("seed", [201, 202, 203])
def test_a_slow_executor_is_found_among_stragglers_within_five_batches(seed: int, factor: float) -> None:
    fault = FaultSpec("slow-instance", at_s=100.0, component="app", instance=3, factor=factor)

    named = named_in(replace(STRAGGLING, duration_s=200.0, faults=(fault,)), seed)

    assert {workers for _, workers in named} == {("exec-3",)}
    assert 100.0 < named[0][0] <= 170.0


@pytest.mark.parametrize(("later_s", "count"), [(0.3, 0), (3.0, 1)])
def test_tasks_that_finish_later_are_reported_only_if_that_costs_the_batch_time(later_s: float, count: int) -> None:
    tasks = {"split": instances([100.0] * 8, 0.1, finish_s=[0.1] * 7 + [0.1 + later_s])}
    observed = observations(6, tasks, executors=4, rows=800.0, seconds=4.0, trigger_s=10.0)
    assert len([s for s in PENDING.detect(view_of(observed)) if s.kind == PENDING_SKEW]) == count


def turning_slow(times: float, with_history: bool = True) -> list[Symptom]:
    """The last batch is late, and the tasks of one executor took so many times longer in it."""
    observed = batches(lambda number: [times if i % 4 == 1 and number == 7 else 1.0 for i in range(12)])
    last = replace(observed[7], flows=(replace(observed[7].flows[0], seconds=28.0),))
    return symptoms_of(SPEED, [*observed[:7], last] if with_history else [last])


def test_one_late_batch_is_enough_for_an_executor_that_was_as_fast_as_others_before() -> None:
    (symptom,) = turning_slow(4.0)
    assert symptom.workers == ("exec-1",)
    assert turning_slow(2.0) == [], "it could be chance"
    assert turning_slow(4.0, with_history=False) == [], "it could be cold"


def test_late_batches_show_uneven_rows_without_those_before_them() -> None:
    def tasks(number: int) -> dict[str, TaskSample]:
        rows = [1000.0, 100.0, 100.0, 100.0] if number == 7 else [100.0] * 4
        return {"lines": instances([100.0] * 4, 0.1), "split": instances(rows, [row / 50.0 for row in rows])}

    in_time = observations(8, tasks, executors=4, **BATCHES)
    late = replace(in_time[-1], flows=(replace(in_time[-1].flows[0], seconds=20.5),))
    (symptom,) = symptoms_of(RATE, (*in_time[:-1], late))
    assert (symptom.component, symptom.instances) == ("split", (0,))
    assert symptoms_of(RATE, in_time) == []
