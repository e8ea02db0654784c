"""What several batches lost to each cause."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from homeostat.core.causes import EXTERNAL, SLOW_INSTANCE
from homeostat.core.observation import HostSample, Observation
from homeostat.core.time_causes import (
    CHECKPOINT_BOUND,
    COSTLY_KEYS,
    GC_BOUND,
    HOST_CONTENTION,
    RISING_COST,
    SINK_BOUND,
    SLOW_HOST,
    TINY_TASKS,
    TOO_FEW_PARTITIONS,
)
from homeostat.core.view import Window
from homeostat.models.loss_series import LossSeries
from homeostat.models.time_losses import time_losses
from homeostat.testing import instances, observations, view_of
from support.timed_batches import batch, slow_sink, stage


def series(observed: list[Observation]) -> dict[str, LossSeries]:
    return {each.cause: each for each in time_losses(view_of(observed))}


def test_the_share_is_of_the_trigger_interval_and_the_usual_loss_is_known() -> None:
    quiet, slow = slow_sink(0.5, 12), slow_sink(6.0, 18)[12:]
    loss = series([*quiet, *slow])[SINK_BOUND]
    assert loss.share[-1] == pytest.approx(0.6)
    assert loss.usual_s == pytest.approx(0.5)
    assert not loss.guessed


def test_what_is_usual_is_known_from_before_the_window() -> None:
    quiet, slow = slow_sink(0.5, 12), slow_sink(6.0, 40)[12:]
    window = replace(view_of([*quiet, *slow]), window=Window(tuple(slow)))
    assert {each.cause: each for each in time_losses(window)}[SINK_BOUND].usual_s == pytest.approx(6.0)
    remembering = replace(window, earlier=(*quiet, *slow[:3]))
    assert {each.cause: each for each in time_losses(remembering)}[SINK_BOUND].usual_s == pytest.approx(0.5)


def test_a_cause_that_stands_never_becomes_usual() -> None:
    quiet, slow = slow_sink(0.5, 6), slow_sink(6.0, 120)[6:]
    view = replace(view_of([*quiet, *slow]), earlier=(*quiet, *slow[:40]))
    assert {each.cause: each for each in time_losses(view)}[SINK_BOUND].usual_s == pytest.approx(6.0)
    named = replace(view, standing_since_s={(SINK_BOUND, ""): slow[4].at_s})
    assert {each.cause: each for each in time_losses(named)}[SINK_BOUND].usual_s == pytest.approx(0.5)


def test_what_was_usual_is_known_even_if_batches_are_much_longer_since() -> None:
    quiet = slow_sink(0.5, 6)
    slow = [replace(o, at_s=60.0 + 1000.0 * n, span_s=1000.0) for n, o in enumerate(slow_sink(6.0, 12)[6:], start=1)]
    view = replace(view_of([*quiet, *slow]), standing_since_s={(SINK_BOUND, ""): slow[3].at_s})
    assert {each.cause: each for each in time_losses(view)}[SINK_BOUND].usual_s == pytest.approx(0.5)


def one_slow(hosts: tuple[str, ...], slow: set[int]) -> list[Observation]:
    count = len(hosts)
    result = []
    for number in range(1, 7):
        workers = np.arange(2 * count) % count
        sample = stage([3.0 if int(w) in slow else 1.0 for w in workers], slots=count, began_s=0.0)
        observed = batch(
            {"read": replace(sample, worker=workers)}, number=number, seconds=6.0, phases_s={"addBatch": 6.0},
            slots=count,
        )  # fmt: skip
        result.append(replace(observed, workers=replace(observed.workers, hosts=hosts)))
    return result


def test_a_slow_worker_costs_what_its_tasks_take_beyond_those_of_its_peers() -> None:
    losses = series(one_slow(("a", "b", "c", "d"), {2}))
    assert losses[SLOW_INSTANCE].workers == ("2",)
    assert losses[SLOW_INSTANCE].lost_s[-1] == pytest.approx(2.0)
    assert SLOW_HOST not in losses


def test_all_workers_of_one_host_are_a_slow_host() -> None:
    losses = series(one_slow(("a", "a", "b", "b", "c", "c"), {2, 3}))
    assert losses[SLOW_HOST].workers == ("2", "3")
    assert SLOW_INSTANCE not in losses


def test_one_of_two_hosts_can_be_slow() -> None:
    losses = series(one_slow(("a", "a", "b", "b"), {2, 3}))
    assert losses[SLOW_HOST].workers == ("2", "3")
    assert SLOW_INSTANCE not in losses


def few_tasks(task_s: float, numbers: range, **others: Any) -> list[Observation]:
    """Two tasks on four slots."""
    tasks = {"read": stage([task_s] * 2, slots=4, began_s=0.0)}
    phases_s = {"addBatch": task_s}
    return [batch(tasks, number=n, seconds=task_s, phases_s=phases_s, slots=4, **others) for n in numbers]


def test_a_layout_costs_as_usual_when_tasks_are_longer_for_another_reason() -> None:
    loss = series([*few_tasks(1.0, range(1, 13)), *few_tasks(8.0, range(13, 17))])[TOO_FEW_PARTITIONS]
    assert loss.lost_s[-1] == pytest.approx(8.0 * loss.lost_s[0], rel=0.1)
    assert loss.usual_s == pytest.approx(loss.lost_s[-1], rel=0.1)


def short_tasks(rows_of_batches: Sequence[float]) -> list[Observation]:
    """Tasks that take 10 ms and 0.1 ms for each row, many of them for each slot."""
    observed = []
    for number, rows in enumerate(rows_of_batches, start=1):
        task_s = 0.01 + 0.0001 * rows
        sample = stage([task_s] * 40, rows=[rows] * 40, slots=4, began_s=0.0)
        seconds = 10.0 * task_s
        each = batch(
            {"read": sample}, number=number, seconds=seconds, phases_s={"addBatch": seconds}, slots=4, trigger_s=0.5
        )
        observed.append(replace(each, flows=tuple(replace(flow, rows=40.0 * rows) for flow in each.flows)))
    return observed


def test_what_the_start_of_a_task_takes_is_read_from_batches_of_different_sizes() -> None:
    same = series(short_tasks([700.0] * 20))[TINY_TASKS]
    assert same.lost_s[-1] > 0.6, "all of a short task may be its start"
    different = series(short_tasks([300.0, 900.0, 500.0, 700.0] * 5))[TINY_TASKS]
    assert different.lost_s[-1] == pytest.approx(9 * 0.01, rel=0.3), "nine starts in each slot are saved"


def test_longer_tasks_have_more_garbage_as_usual() -> None:
    def observed(times: float, numbers: range) -> list[Observation]:
        tasks = {"read": stage([times] * 4, began_s=0.0, gc_s=0.1 * times)}
        seconds = 2.0 * times
        return [batch(tasks, number=n, seconds=seconds, phases_s={"addBatch": seconds}) for n in numbers]

    loss = series([*observed(1.0, range(1, 13)), *observed(9.0, range(13, 17))])[GC_BOUND]
    assert loss.usual_s == pytest.approx(loss.lost_s[-1], rel=0.1)


def test_one_batch_that_lacks_a_measurement_makes_no_cause_a_guess() -> None:
    observed = slow_sink(6.0, 6)
    unmeasured = {name: replace(sample, began_s=math.nan) for name, sample in observed[1].tasks.items()}
    observed[1] = replace(observed[1], tasks=unmeasured)
    assert not series(observed)[SINK_BOUND].guessed


def with_a_costly_partition(times: float, numbers: range) -> list[Observation]:
    result = []
    for number in numbers:
        workers = (np.arange(8) + number) % 4
        sample = replace(stage([times if p == 5 else 1.0 for p in range(8)], slots=4, began_s=0.0), worker=workers)
        result.append(batch({"read": sample}, number=number, seconds=5.0, phases_s={"addBatch": 5.0}, slots=4))
    return result


def test_a_costly_partition_is_reported_with_its_number() -> None:
    loss = series(with_a_costly_partition(4.0, range(1, 7)))[COSTLY_KEYS]
    assert (loss.component, loss.instances) == ("read", (5,))
    assert loss.lost_s[-1] > 1.0


@pytest.mark.parametrize("before", [1.0, 1.3])
def test_a_partition_that_was_like_the_others_before_usually_costs_nothing(before: float) -> None:
    costly = with_a_costly_partition(4.0, range(13, 19))
    assert series([*with_a_costly_partition(before, range(1, 13)), *costly])[COSTLY_KEYS].usual_s == 0.0
    always = with_a_costly_partition(4.0, range(1, 19))
    assert math.isnan(series(always)[COSTLY_KEYS].usual_s), "whether it was ever ordinary is not known"


def waiting(hosts: tuple[HostSample, ...]) -> list[Observation]:
    """Tasks that first compute all the time, and then wait for as long again."""
    usual = [
        batch(
            {"read": stage([1.0] * 4, began_s=0.0, cpu_s=1.0)}, number=n, seconds=2.0, phases_s={"addBatch": 2.0},
            hosts=hosts,
        )
        for n in range(1, 13)
    ]  # fmt: skip
    slow = [
        batch(
            {"read": stage([3.0] * 4, began_s=0.0, cpu_s=1.0)}, number=n, seconds=6.0, phases_s={"addBatch": 6.0},
            hosts=hosts,
        )
        for n in range(13, 19)
    ]  # fmt: skip
    return [*usual, *slow]


def test_tasks_that_wait_longer_than_before_wait_for_something_outside() -> None:
    loss = series(waiting((HostSample("a", 4.0, 0.5, 0.05),)))[EXTERNAL]
    assert loss.lost_s[-1] == pytest.approx(4.0)
    assert not loss.guessed


def test_on_a_full_host_they_wait_for_the_cpu() -> None:
    losses = series(waiting((HostSample("a", 4.0, 0.98, 0.5),)))
    assert losses[HOST_CONTENTION].lost_s[-1] == pytest.approx(4.0)
    assert EXTERNAL not in losses


def test_a_host_that_idles_while_the_driver_works_is_full_while_tasks_run() -> None:
    """Of 16 s of each batch, tasks run for 6; for all 16, the host is busy for two fifths."""
    observed = [
        replace(each, flows=tuple(replace(flow, seconds=flow.seconds + 10.0) for flow in each.flows))
        for each in waiting((HostSample("a", 4.0, 0.45, 0.15), HostSample("b", 4.0, 0.1, 0.01)))
    ]
    assert HOST_CONTENTION in series(observed)


def test_tasks_that_waited_in_three_batches_only_are_compared_with_these() -> None:
    assert series(waiting((HostSample("a", 4.0, 0.5, 0.05),))[9:])[EXTERNAL].lost_s[-1] == pytest.approx(4.0)


def test_what_tasks_always_wait_is_distinguished_from_how_waits_vary() -> None:
    loss = series(waiting((HostSample("a", 4.0, 0.5, 0.05),)))[EXTERNAL]
    assert loss.usual_s == pytest.approx(0.0, abs=1e-6)


def test_without_a_look_at_the_hosts_it_is_a_guess() -> None:
    assert series(waiting(()))[EXTERNAL].guessed


def test_rows_that_cost_more_and_more_are_reported() -> None:
    dearer = [
        batch(
            {"read": stage([1.0 + 0.02 * n] * 4, began_s=0.0)}, number=n, seconds=2.0 + 0.04 * n,
            phases_s={"addBatch": 2.0 + 0.04 * n},
        )
        for n in range(1, 60)
    ]  # fmt: skip
    assert series(dearer)[RISING_COST].component == "read"
    assert RISING_COST not in series(dearer[:12]), "less than a third"


def test_rows_that_cost_more_from_one_batch_on_are_no_rising_cost() -> None:
    stepped = [
        batch(
            {"read": stage([(1.0 if n < 30 else 2.0) + 0.001 * n] * 4, began_s=0.0)}, number=n, seconds=4.0,
            phases_s={"addBatch": 4.0},
        )
        for n in range(1, 60)
    ]  # fmt: skip
    assert RISING_COST not in series(stepped)


def slowed(planning_s: float, commit_s: float) -> list[Observation]:
    """After twelve quiet batches, six in which planning and the commit of the offsets take so long."""
    tasks = {"read": stage([1.0, 1.0, 1.0, 1.0], began_s=0.1)}
    times = [(0.1, 0.1)] * 12 + [(planning_s, commit_s)] * 6
    return [
        batch(
            tasks,
            number=number,
            seconds=2.0 + planning + commit,
            phases_s={"queryPlanning": planning, "addBatch": 2.0, "commitOffsets": commit},
        )
        for number, (planning, commit) in enumerate(times, start=1)
    ]


def test_planning_and_the_offset_log_that_both_slow_down_show_a_busy_host() -> None:
    losses = series(slowed(0.3, 0.4))
    assert losses[HOST_CONTENTION].lost_s[-1] == pytest.approx(0.5)
    assert losses[HOST_CONTENTION].guessed
    assert losses[CHECKPOINT_BOUND].lost_s[-1] == pytest.approx(0.1)


@pytest.mark.parametrize(("planning_s", "commit_s"), [(0.1, 0.4), (0.3, 0.1), (0.2, 2.0)])
def test_one_of_them_alone_is_a_cause_of_its_own(planning_s: float, commit_s: float) -> None:
    assert HOST_CONTENTION not in series(slowed(planning_s, commit_s))


def test_a_dataflow_loses_no_time_in_batches() -> None:
    assert time_losses(view_of(observations(6, {"work": instances(100.0, 1.0)}))) == ()


def test_a_stage_whose_waits_only_vary_does_not_make_the_wait_of_another_usual() -> None:
    observed = [
        replace(each, tasks={**each.tasks, "count": stage([1.0 + 0.01 * (each.batch % 3)] * 4, began_s=6.0, cpu_s=0.5)})
        for each in waiting((HostSample("a", 4.0, 0.5, 0.05),))
    ]
    loss = series(observed)[EXTERNAL]
    assert loss.usual_s < 0.2 * loss.lost_s[-1]
