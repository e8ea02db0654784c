"""What is left of an observation: nonsense becomes unknown, and what is unknown stays so in every sum."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from homeostat.core.digest import ComponentDigest, clean, digest
from homeostat.core.observation import NAN, Observation, TaskSample
from homeostat.testing import blanked, instances, observations, view_of
from homeostat.testing.strategies import garbage

INF = math.inf


def digest_of(sample: TaskSample, before: TaskSample | None = None, span_s: float = 10.0) -> ComponentDigest:
    observed = observations(
        2, lambda number: {"x": before if before is not None and number == 0 else sample}, span_s=span_s
    )
    first, second = (clean(observation) for observation in observed)
    return digest(second, 1, first if before is not None else None).components["x"]


@pytest.mark.parametrize("nonsense", [-1.0, INF, -INF, 1e300, NAN])
def test_what_cannot_be_is_unknown(nonsense: float) -> None:
    sample = digest_of(instances([nonsense, 100.0], [5.0, nonsense], pending_rows=[0.0, nonsense]))
    assert sample.known_share == 0.0
    assert math.isnan(sample.rows)
    assert math.isnan(sample.run_s)
    assert not sample.complete


def test_nobody_works_for_longer_than_there_was_time() -> None:
    assert digest_of(instances([10.0, 10.0], [79.0, 9.0])).known_share == 1.0, "a task may have begun long before"
    assert digest_of(instances([10.0, 10.0], [81.0, 9.0])).known_share == 0.5


def test_columns_that_do_not_fit_together_count_as_not_measured() -> None:
    ragged = replace(instances([1.0, 2.0], 1.0), run_s=np.array([1.0]))
    observed = observations(1, {"lines": instances(3.0, 1.0), "x": ragged})[0]
    assert set(clean(observed).tasks) == {"lines"}


def test_a_worker_that_is_not_there_is_nobody() -> None:
    sample = replace(instances([1.0, 2.0, 3.0], 1.0), worker=np.array([0, 7, -5]))
    observed = replace(observations(1, {"x": instances([1.0, 2.0, 3.0], 1.0)})[0], tasks={"x": sample})
    assert clean(observed).tasks["x"].worker.tolist() == [0, -1, -1]


@pytest.mark.parametrize("column", ["rows", "run_s", "pending_rows", "pressured_s"])
def test_a_component_is_complete_only_if_every_instance_is_known(column: str) -> None:
    whole = instances([100.0, 100.0], 5.0)
    assert digest_of(whole).complete
    unmeasured: dict[str, Any] = {column: np.array([1.0, NAN])}
    assert not digest_of(replace(whole, **unmeasured)).complete


def test_a_batch_needs_no_queues_but_the_end_of_every_task() -> None:
    batch = instances([100.0, 100.0], 5.0, finish_s=[5.0, 10.0])
    assert digest_of(batch).complete
    assert not digest_of(replace(batch, finish_s=np.array([5.0, NAN]))).complete


def test_rows_out_are_unknown_if_they_are_so_for_an_instance_that_is_counted() -> None:
    """Else a half-measured stage would seem to send on half as much, and the next one to be idle."""
    half = instances([100.0, 100.0], 5.0, rows_out=[2000.0, NAN])
    assert math.isnan(digest_of(half).rows_out)
    unseen = instances([100.0, NAN], 5.0, rows_out=[2000.0, NAN])
    assert digest_of(unseen).rows_out == 2000.0
    assert digest_of(unseen).rows == 100.0


def test_what_a_queue_grows_by_arrived_too() -> None:
    before = instances([100.0, 100.0], [10.0, 5.0], pending_rows=[0.0, 0.0])
    after = instances([100.0, 100.0], [10.0, 5.0], pending_rows=[50.0, 0.0])
    growing = digest_of(after, before)
    assert growing.rows == 200.0
    assert growing.arrived_rows == 250.0
    assert growing.busiest_s == 15.0, "150 rows at 10 a second"


def test_of_several_sources_one_unknown_makes_the_sum_unknown() -> None:
    observed = observations(1, {"lines": instances(100.0, 1.0)}, arrival_per_s=10.0, seconds=3.0, trigger_s=5.0)[0]
    two = replace(observed, flows=(observed.flows[0], replace(observed.flows[0], source="clicks", seconds=NAN)))
    both = digest(clean(two), 1)
    assert both.arrival_per_s == 20.0
    assert math.isnan(both.seconds)
    assert both.trigger_s == 5.0
    assert math.isnan(digest(replace(observed, flows=()), 1).rows), "no source at all is unknown, not zero"


@pytest.mark.slow
@given(garbage(("lines", "split"), most=3))
def test_every_number_left_over_from_garbage_makes_sense(observed: tuple[Observation, ...]) -> None:
    for observation in observed:
        if observation.span_s > 0 and math.isfinite(observation.span_s):
            summed = digest(clean(observation), 1)
            numbers = [summed.rows, summed.seconds, summed.arrival_per_s, summed.pending_rows]
            for component in summed.components.values():
                numbers += [component.rows, component.run_s, component.busiest_s, component.pending_rows]
            assert all(math.isnan(number) or 0.0 <= number < INF for number in numbers)


def chain(count: int = 10) -> tuple[Observation, ...]:
    tasks = {"lines": instances(100.0, 1.0), "split": instances([50.0, 50.0], 5.0)}
    return observations(count, tasks, arrival_per_s=10.0)


def test_a_view_tells_what_was_missing_since_when() -> None:
    whole = chain()
    assert view_of(whole).missing_since(0.0) == ""
    assert view_of(whole).missing_since(100.0) == "an observation", "there is none later than the last"
    gap = view_of([*whole[:4], *whole[5:]])
    assert gap.missing_since(0.0) == "an observation"
    assert gap.missing_since(50.0) == ""
    for column in ("arrival_per_s", "pending_rows", "rows", "run_s", "pressured_s"):
        hole = view_of([*whole[:4], *blanked(whole[4:5], column), *whole[5:]])
        assert hole.missing_since(0.0)
        assert hole.missing_since(50.0) == ""
    sink = view_of([*whole[:4], *blanked(whole[4:5], "rows_out", component="split"), *whole[5:]])
    assert sink.missing_since(0.0) == "", "nobody needs to know what the last one sends on"
    feeder = view_of([*whole[:4], *blanked(whole[4:5], "rows_out", component="lines"), *whole[5:]])
    assert feeder.missing_since(0.0) == "metrics of lines"


def test_a_batch_without_rows_is_not_a_batch_without_metrics() -> None:
    tasks = {"lines": instances(100.0, 1.0, finish_s=1.0), "count": instances([50.0, 50.0], 2.0, finish_s=2.0)}
    full = observations(6, tasks, executors=2, arrival_per_s=10.0, rows=100.0, seconds=4.0, trigger_s=10.0)
    shape = view_of(full).topology
    empty = observations(6, {}, executors=2, arrival_per_s=0.0, rows=0.0, seconds=0.2, trigger_s=10.0, start_s=60.0)
    assert view_of([*full, *empty], topology=shape).missing_since(0.0) == ""
    lost = [replace(observation, tasks={}) for observation in full]
    assert view_of(lost, topology=shape).missing_since(0.0) == "metrics of lines"
