"""What the sensors of a healthy simulated application show."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from homeostat.core.observation import TaskCosts
from homeostat.sim.scenario.spec import FaultSpec
from support.troubled_runs import SCENARIO, costs, last, observe, run_s, with_faults

CALM = last()


@pytest.mark.parametrize("component", ["lines", "count"])
def test_every_cost_of_a_task_is_measured(component: str) -> None:
    for column in fields(TaskCosts):
        values = getattr(costs(CALM, component), column.name)
        assert values.shape == (CALM.tasks[component].instances,)
        assert (values >= 0).all(), column.name


def test_a_healthy_task_computes() -> None:
    columns = costs(CALM)
    assert 0.85 < columns.cpu_s.sum() / run_s(CALM) < 1.0
    assert columns.gc_s.sum() / run_s(CALM) < 0.05
    assert columns.fetch_wait_s.sum() / run_s(CALM) < 0.02
    assert (columns.cpu_s + columns.gc_s <= CALM.tasks["count"].run_s).all()
    assert columns.attempts.tolist() == [1.0] * 16


def test_bytes_follow_the_rows() -> None:
    source, count = costs(CALM, "lines"), costs(CALM)
    assert source.input_bytes.sum() == source.shuffle_write_bytes.sum() == count.shuffle_read_bytes.sum()
    assert (source.shuffle_read_bytes.sum(), count.input_bytes.sum()) == (0.0, 0.0)
    assert count.output_bytes.sum() > 0


def test_stages_follow_each_other_within_the_batch() -> None:
    source, count = CALM.tasks["lines"], CALM.tasks["count"]
    phases_s = CALM.flows[0].phases_s
    assert source.began_s == pytest.approx(phases_s["latestOffset"] + phases_s["queryPlanning"] + phases_s["walCommit"])
    assert source.ended_s == pytest.approx(count.began_s)
    assert count.ended_s - source.began_s == pytest.approx(phases_s["addBatch"])


def test_a_task_with_state_prefers_its_executor() -> None:
    assert set(costs(CALM).locality.tolist()) == {0.0}
    assert set(costs(CALM, "lines").locality.tolist()) == {2.0}


def test_state_memory_driver_and_hosts_are_measured() -> None:
    state = CALM.states["count"]
    assert (state.rows, state.partitions) == (100_000.0, 16.0)
    assert 0 < state.commit_s < state.update_s < run_s(CALM)
    assert state.removed_rows > 0
    assert (CALM.workers.heap_bytes < CALM.workers.heap_limit_bytes).all()
    assert 0 < CALM.driver.gc_s < 0.1
    assert [host.host for host in CALM.hosts] == ["host-0", "host-1"]
    assert all(0 < host.others < 0.05 < host.busy < 1 for host in CALM.hosts)


def test_event_time_and_watermark_go_on() -> None:
    first, second = (sample.flows[0] for sample in observe(SCENARIO, 31.0)[:2])
    assert second.event_time_s - first.event_time_s == pytest.approx(10.0)
    assert second.watermark_s - first.watermark_s == pytest.approx(10.0)
    assert second.watermark_s < second.event_time_s


def test_the_same_seed_gives_the_same_measurements() -> None:
    assert costs(last()).cpu_s.tolist() == costs(CALM).cpu_s.tolist()


def test_a_crash_is_reported_once_with_its_reason() -> None:
    samples = observe(with_faults(FaultSpec("crash", at_s=25.0, instance=1)), 100.0)
    losses = [loss for sample in samples for loss in sample.losses]
    assert [(loss.worker, loss.host, loss.reason) for loss in losses] == [("exec-1", "host-1", "exited with code 137")]


def test_lost_measurements_include_the_new_ones() -> None:
    observation = last(FaultSpec("metric-gap", share=1.0))
    assert np.isnan(costs(observation).cpu_s).all()
    assert np.isnan([observation.driver.gc_s, observation.hosts[0].others, observation.states["count"].rows]).all()
    assert np.isnan(observation.workers.heap_bytes).all()


def test_attempts_on_a_lost_executor_failed() -> None:
    samples = observe(with_faults(FaultSpec("crash", at_s=31.0, instance=1)))
    hit = next(sample for sample in samples if sample.failures)
    assert all(failure.reason.startswith("ExecutorLostFailure") for failure in hit.failures)
    repeated = np.concatenate([costs(hit, name).attempts for name in ("lines", "count")])
    assert repeated.sum() - len(repeated) == sum(failure.count for failure in hit.failures) == 2


def test_a_driver_that_collects_holds_the_results() -> None:
    assert last(FaultSpec("collecting", row_s=0.001)).driver.heap_bytes > CALM.driver.heap_bytes
