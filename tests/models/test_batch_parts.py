"""What of a batch belongs to the driver, the stages and the sink."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.observation import NAN, JobSpan
from homeostat.models.batch_parts import SOURCE_PHASES, batch_parts
from support.timed_batches import batch, slow_sink, stage


def test_what_follows_the_last_stage_is_the_sinks() -> None:
    parts = batch_parts(slow_sink(6.0)[0])
    assert parts is not None
    assert parts.tail_s == pytest.approx(6.0)
    assert parts.lead_s == pytest.approx(0.0)


def test_what_lies_before_and_between_stages_is_the_drivers() -> None:
    tasks = {"read": stage([1.0, 1.0], began_s=2.0), "count": stage([1.0, 1.0], began_s=4.0)}
    parts = batch_parts(batch(tasks, seconds=5.5, phases_s={"latestOffset": 0.5, "addBatch": 5.0}))
    assert parts is not None
    assert parts.lead_s == pytest.approx(1.5 + 1.0), "from 0.5 to 2.0, and from 3.0 to 4.0"
    assert parts.tail_s == pytest.approx(0.5)
    assert parts.phases(SOURCE_PHASES) == pytest.approx(0.5)


def test_a_job_without_a_stage_of_the_query_is_the_sinks_also_between_stages() -> None:
    tasks = {"read": stage([1.0, 1.0], began_s=0.0), "count": stage([1.0, 1.0], began_s=4.0)}
    observed = batch(tasks, seconds=5.0, phases_s={"addBatch": 5.0}, other_jobs=(JobSpan(1.5, 3.5),))
    parts = batch_parts(observed)
    assert parts is not None
    assert parts.lead_s == pytest.approx(1.0)
    assert parts.tail_s == pytest.approx(2.0)


def test_without_the_times_of_stages_only_their_sum_is_known() -> None:
    observed = slow_sink(6.0)[0]
    tasks = {name: replace(sample, began_s=NAN, ended_s=NAN) for name, sample in observed.tasks.items()}
    parts = batch_parts(replace(observed, tasks=tasks))
    assert parts is not None
    assert parts.tail_s != parts.tail_s, "unknown"
    assert parts.around_s == pytest.approx(6.0)


def test_an_idle_trigger_has_no_parts() -> None:
    observed = slow_sink(6.0)[0]
    nothing = tuple(replace(flow, rows=0.0) for flow in observed.flows)
    assert batch_parts(replace(observed, flows=nothing)) is None
    assert batch_parts(replace(observed, tasks={})) is None


def test_a_stage_is_replayed_at_the_pace_at_which_it_ran() -> None:
    parts = batch_parts(slow_sink(0.0)[0])
    assert parts is not None
    (read,) = parts.stages
    assert read.seconds == pytest.approx(2.0)
    assert read.replay_s(read.task_s / 2) == pytest.approx(1.0)
    assert read.replay_s(read.task_s, slots=4) == pytest.approx(1.0)
