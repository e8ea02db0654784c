"""Each kind of fault changes what happens in a batch; times and measurements follow from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.configuration import Knob, Patch
from homeostat.core.events import Apply, Observed
from homeostat.core.observation import Observation
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.microbatch.layout import ASYNC_KNOB, CHANGELOG_KNOB
from homeostat.sim.scenario.spec import FaultSpec, Scenario
from support.troubled_runs import ENGINE, costs, last, observe, run_s, seconds, with_faults

CALM = last()


@pytest.mark.parametrize(
    ("fault", "phase"),
    [
        (FaultSpec("slow-sink"), "addBatch"),
        (FaultSpec("slow-planning"), "queryPlanning"),
        (FaultSpec("slow-source"), "latestOffset"),
        (FaultSpec("collecting", row_s=0.001), "addBatch"),
    ],
)
def test_what_the_driver_waits_for_shows_in_its_phase_and_executors_do_not_shorten_it(
    fault: FaultSpec, phase: str
) -> None:
    troubled, scaled = last(fault), last(fault, executors=8)
    more_s = seconds(troubled) - seconds(CALM)
    assert more_s > 3.0
    assert troubled.flows[0].phases_s[phase] - CALM.flows[0].phases_s[phase] == pytest.approx(more_s)
    assert seconds(scaled) - seconds(last(executors=8)) == pytest.approx(more_s, rel=0.05)
    assert run_s(troubled) == pytest.approx(run_s(CALM))


def test_a_slow_commit_is_divided_between_the_two_logs() -> None:
    phases_s = last(FaultSpec("slow-commit", seconds=4.0)).flows[0].phases_s
    assert phases_s["walCommit"] - CALM.flows[0].phases_s["walCommit"] == pytest.approx(2.0)
    assert phases_s["commitOffsets"] - CALM.flows[0].phases_s["commitOffsets"] == pytest.approx(2.0)


def test_a_sink_that_runs_a_job_shows_it() -> None:
    (job,) = last(FaultSpec("slow-sink", seconds=3.0, job=True)).other_jobs
    assert job.ended_s - job.began_s == pytest.approx(3.0)
    assert CALM.other_jobs == last(FaultSpec("slow-sink")).other_jobs == ()


def test_a_sink_can_take_time_for_each_row() -> None:
    troubled = last(FaultSpec("slow-sink", seconds=0.0, row_s=0.001))
    assert seconds(troubled) - seconds(CALM) == pytest.approx(0.001 * 4000, rel=0.01)


def test_a_growing_fault_grows() -> None:
    samples = observe(with_faults(FaultSpec("slow-planning", seconds=1.0, growth=36.0)))
    planning = [sample.flows[0].phases_s["queryPlanning"] for sample in samples]
    assert planning[8] - planning[0] == pytest.approx(0.8, abs=0.01)


def test_a_slow_scheduler_delays_tasks_and_more_executors_do_not_help() -> None:
    fault = FaultSpec("slow-scheduling", task_s=0.2)
    troubled, scaled = last(fault), last(fault, executors=16)
    assert costs(troubled).delay_s.mean() > 0.3 > costs(CALM).delay_s.mean()
    assert run_s(troubled) == pytest.approx(run_s(CALM))
    assert seconds(troubled) >= 24 * 0.2
    assert seconds(scaled) > 0.95 * seconds(troubled)


def test_a_driver_short_of_memory_collects_garbage() -> None:
    troubled = last(FaultSpec("driver-memory", share=0.95))
    assert troubled.driver.gc_s == pytest.approx(seconds(troubled) - seconds(CALM), rel=0.05)
    assert troubled.driver.heap_bytes / troubled.driver.heap_limit_bytes == pytest.approx(0.95)


def test_small_files_cost_the_driver_and_the_tasks() -> None:
    troubled = last(FaultSpec("small-files", rows=10.0, file_s=0.02))
    assert troubled.files.read == 400
    assert troubled.flows[0].phases_s["latestOffset"] > 2.0
    assert run_s(troubled, "lines") - run_s(CALM, "lines") == pytest.approx(400 * 0.02)
    assert np.isnan(CALM.files.read)


@pytest.mark.parametrize(
    ("fault", "component"),
    [
        (FaultSpec("slow-fetch", row_s=0.001), "lines"),
        (FaultSpec("outside-system", component="count", task_s=0.4), "count"),
        (FaultSpec("state-store", task_s=0.4), "count"),
        (FaultSpec("spill", component="count", rows=100.0, row_s=0.002), "count"),
        (FaultSpec("contention", share=0.5), "count"),
    ],
)
def test_waiting_and_contention_raise_the_running_time_but_not_the_cpu_time(fault: FaultSpec, component: str) -> None:
    troubled = last(fault)
    assert run_s(troubled, component) > 1.4 * run_s(CALM, component)
    assert costs(troubled, component).cpu_s.sum() == pytest.approx(costs(CALM, component).cpu_s.sum(), rel=0.02)


def test_contention_on_one_host_slows_only_its_executors() -> None:
    troubled = last(FaultSpec("contention", host="host-1", share=0.6))
    tasks, hosts = troubled.tasks["count"], np.array(troubled.workers.hosts)
    per_row = tasks.run_s / tasks.rows
    crowded = hosts[tasks.worker] == "host-1"
    assert np.median(per_row[crowded]) > 2.0 * np.median(per_row[~crowded])
    assert {host.host: host.others > 0.5 for host in troubled.hosts} == {"host-0": False, "host-1": True}


def test_a_slow_network_makes_tasks_wait_beside_their_running_time() -> None:
    fault = FaultSpec("slow-network", row_s=0.002)
    troubled = last(fault)
    assert costs(troubled).fetch_wait_s.sum() > 5.0 > costs(CALM).fetch_wait_s.sum()
    assert run_s(troubled) == pytest.approx(run_s(CALM))
    assert seconds(troubled) > seconds(CALM) + 0.5
    assert costs(last(fault, executors=1)).fetch_wait_s.sum() < 1.0


def test_garbage_collection_falls_when_partitions_double_and_rises_with_the_slots() -> None:
    fault = FaultSpec("memory", component="count", rows=700.0)

    def share(partitions: int, slots: int) -> float:
        sample = last(fault, partitions=partitions, slots=slots)
        return float(costs(sample).gc_s.sum()) / run_s(sample)

    assert share(16, 2) > 0.15 > 2 * share(32, 2)
    assert share(16, 1) < 0.5 * share(16, 2)
    assert last(fault).workers.heap_bytes.max() > CALM.workers.heap_bytes.max()


def test_rows_beyond_the_memory_of_a_task_spill() -> None:
    fault = FaultSpec("spill", component="count", rows=150.0, row_s=0.002)
    assert costs(last(fault)).spilled_disk_bytes.sum() > 0
    assert costs(last(fault, partitions=64)).spilled_disk_bytes.sum() == 0
    assert costs(CALM).spilled_memory_bytes.sum() == 0


def test_the_commits_of_a_slow_state_store_grow_with_the_state() -> None:
    troubled = last(FaultSpec("state-store", row_s=0.0001))
    more_s = troubled.states["count"].commit_s - CALM.states["count"].commit_s
    assert more_s == pytest.approx(0.0001 * 100_000, rel=0.05)


def test_a_stalled_watermark_lets_the_state_grow() -> None:
    first, *_, final = observe(with_faults(FaultSpec("stalled-watermark", at_s=20.0)), until_s=600.0)
    assert final.flows[0].watermark_s - first.flows[0].watermark_s == pytest.approx(10.0)
    assert final.flows[0].event_time_s - first.flows[0].event_time_s == pytest.approx(580.0)
    assert final.states["count"].rows > 1.9 * first.states["count"].rows
    assert (first.states["count"].removed_rows > 0, final.states["count"].removed_rows) == (True, 0.0)


def test_a_growing_state_makes_rows_dearer() -> None:
    first, *_, final = observe(with_faults(FaultSpec("growing-state", growth=36.0)), until_s=600.0)
    assert final.states["count"].rows > 6 * first.states["count"].rows
    assert costs(final).cpu_s.sum() > 2.0 * costs(first).cpu_s.sum()
    assert run_s(final, "lines") == pytest.approx(run_s(CALM, "lines"))


def test_a_rising_cost_concerns_the_cpu() -> None:
    troubled = last(FaultSpec("rising-cost", component="count", growth=36.0))
    assert costs(troubled).cpu_s.sum() > 1.7 * costs(CALM).cpu_s.sum()


def test_costly_keys_stay_with_their_partition() -> None:
    samples = observe(with_faults(FaultSpec("costly-keys", component="count", instance=3, factor=5.0)))
    for sample in samples[1:]:
        tasks = sample.tasks["count"]
        per_row = tasks.run_s / tasks.rows
        assert np.argmax(per_row) == 3
        assert per_row[3] > 4 * np.median(per_row)


def test_a_skewed_join_sends_more_rows() -> None:
    troubled = last(FaultSpec("skewed-join", component="lines", instance=2, factor=9.0))
    rows_out = troubled.tasks["lines"].rows_out
    assert rows_out[2] == pytest.approx(9 * np.median(rows_out))
    assert troubled.tasks["count"].rows.sum() == pytest.approx(rows_out.sum(), abs=1)
    assert np.argmax(troubled.tasks["lines"].run_s) == 2


def test_failed_attempts_are_repeated() -> None:
    samples = observe(with_faults(FaultSpec("task-failures", component="count", share=0.2)), until_s=300.0)
    failures = [failure for sample in samples for failure in sample.failures]
    share = sum(failure.count for failure in failures) / (16 * len(samples))
    assert share == pytest.approx(0.25, abs=0.08)
    hit = [sample for sample in samples if sample.failures]
    assert all(costs(sample).attempts.max() > 1 and costs(sample).failed_s.sum() > 0 for sample in hit)
    assert run_s(hit[0]) == pytest.approx(run_s(CALM), rel=0.02)


def test_a_poisoned_partition_fails_in_every_batch() -> None:
    samples = observe(with_faults(FaultSpec("poison-row", component="count", instance=5)))
    assert {(failure.partition, failure.count) for sample in samples for failure in sample.failures} == {(5, 3)}
    assert all(len(sample.failures) == 1 for sample in samples)


def test_a_row_that_always_fails_stops_the_query_until_it_is_gone() -> None:
    fault = FaultSpec("poison-row", at_s=35.0, until_s=100.0, component="count", attempts=4)
    samples = observe(with_faults(fault), until_s=200.0)
    assert not [sample.at_s for sample in samples if 40.0 < sample.at_s < 100.0]
    after = next(sample for sample in samples if sample.at_s > 100.0)
    assert sum(failure.count for failure in after.failures) >= 12
    assert after.run != samples[0].run


def test_a_stuck_task_holds_its_batch_until_the_fault_ends() -> None:
    samples = observe(with_faults(FaultSpec("stuck-task", at_s=45.0, until_s=95.0, component="count")), until_s=200.0)
    longest = max(samples, key=seconds)
    assert longest.at_s == pytest.approx(95.0, abs=1.5)
    assert seconds(longest) == pytest.approx(45.0, abs=2.0)
    assert costs(longest).cpu_s.max() < 1.0


def test_executors_die_again_and_again() -> None:
    samples = observe(with_faults(FaultSpec("dying-executors", at_s=5.0, every_s=30.0, reason="OOM")), until_s=200.0)
    losses = [loss for sample in samples for loss in sample.losses]
    assert [loss.reason for loss in losses] == ["OOM"] * 7
    assert len({loss.worker for loss in losses}) == 7


def test_late_rows_are_counted() -> None:
    assert last(FaultSpec("late-rows", share=0.1)).states["count"].late_rows == pytest.approx(400, abs=1)
    assert CALM.states["count"].late_rows == 0


def test_a_driver_that_needs_time_for_each_task_is_slower_with_more_tasks() -> None:
    few, many = (
        observe(replace(with_faults(partitions=partitions), engine=replace(ENGINE, dispatch_s=0.02)))[-1]
        for partitions in (16, 200)
    )
    assert seconds(many) > seconds(few) + 2.0
    assert costs(many).delay_s.mean() > 0.02


def switched(scenario: Scenario, knob: Knob, **engine: object) -> Observation:
    """The last batch of a run in which this knob is on from the start."""
    simulated = Microbatch(replace(scenario, engine=replace(scenario.engine, **engine)))  # type: ignore[arg-type]
    desired = simulated.describe().configuration.patched(Patch({knob: 1}))
    simulated.apply(Apply("a-1", 0.0, desired, (), 60.0))
    events = [event for event in simulated.wait(150.0) if isinstance(event, Observed)]
    return events[-1].observation


@pytest.mark.parametrize("commit", [0.25, 1.0])
def test_with_changelogs_a_commit_costs_a_part_of_what_it_did(commit: float) -> None:
    scenario = with_faults(FaultSpec("state-store", task_s=2.0))
    with_changelog = switched(scenario, CHANGELOG_KNOB, changelog_commit=commit)
    saved_s = run_s(observe(scenario)[-1]) - run_s(with_changelog)
    assert saved_s == pytest.approx(16 * 2.0 * (1.0 - commit), rel=0.05, abs=0.1)


def test_with_changelogs_the_size_of_the_state_does_not_matter() -> None:
    scenario = with_faults(FaultSpec("state-store", row_s=0.0005))
    snapshots, changelogs = observe(scenario)[-1], switched(scenario, CHANGELOG_KNOB, changelog_commit=1.0)
    assert run_s(snapshots) - run_s(CALM) == pytest.approx(100_000 * 0.0005, rel=0.05)
    updated = changelogs.flows[0].updated_keys
    assert run_s(changelogs) - run_s(CALM) == pytest.approx(updated * 0.0005, rel=0.1)


@pytest.mark.parametrize(("slow_s", "waits"), [(4.0, False), (16.0, True)])
def test_logs_beside_the_batch_hold_it_up_only_if_they_take_longer_than_it_does(slow_s: float, waits: bool) -> None:
    stateful = with_faults(FaultSpec("slow-commit", seconds=slow_s))
    scenario = replace(stateful, components=tuple(replace(each, stateful=False) for each in stateful.components))
    phases_s = switched(scenario, ASYNC_KNOB, async_progress=True).flows[0].phases_s
    assert (phases_s["walCommit"] + phases_s["commitOffsets"] > 1.0) is waits
