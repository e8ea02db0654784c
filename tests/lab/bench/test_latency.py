"""What is read off recorded batches about latency and about catching up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from homeostat.lab.bench import latency, models_spark
from homeostat.lab.bench.latency import Static
from homeostat.lab.bench.prediction_errors import LEAST_TRIED
from homeostat.lab.bench.twin import Setup
from homeostat.recorded_data.run import RecordedBatch, RecordedExecutor, RecordedRun


def batches(seconds: Sequence[float], *, trigger_s: float = 5.0, load_per_s: float = 100.0) -> list[RecordedBatch]:
    """Each takes what has arrived when it begins."""
    recorded_batches: list[RecordedBatch] = []
    started_s, taken = 0.0, 0.0
    for number, took_s in enumerate(seconds):
        arrived = load_per_s * (started_s + trigger_s)
        recorded_batches.append(
            RecordedBatch("r", number, started_s, took_s, arrived - taken, arrived_rows=arrived, pending_rows=0.0)
        )
        started_s, taken = started_s + max(trigger_s, took_s), arrived
    return recorded_batches


def test_a_row_is_late_by_its_wait_for_the_batch_and_by_the_batch() -> None:
    steady = latency.latencies_s(batches([2.0] * 10))
    assert steady.min() == pytest.approx(2.0, abs=0.2)
    assert steady.max() == pytest.approx(7.0, abs=0.2)
    one_long = latency.latencies_s(batches([2.0, 2.0, 12.0, 2.0, 2.0, 2.0]))
    assert one_long.max() == pytest.approx(17.0, abs=0.5)
    # The batch after it took the rows of 12 s: it counts for as many.
    assert len(one_long) > len(batches([2.0] * 5)) * 5


def test_a_batch_of_which_is_unknown_what_had_arrived_counts_like_the_others() -> None:
    recorded_batches = batches([2.0, 2.0, 12.0, 2.0, 2.0, 2.0])
    unknown = [
        *recorded_batches[:3],
        replace(recorded_batches[3], arrived_rows=math.nan, pending_rows=math.nan),
        *recorded_batches[4:],
    ]
    assert latency.latencies_s(unknown) == pytest.approx(latency.latencies_s(recorded_batches))


def test_a_setup_holds_the_objective_only_if_it_takes_what_arrives() -> None:
    setup = Setup(3, 100.0, trigger_s=5.0)
    assert Static(setup, batches([3.0] * 8)).holds
    assert not Static(setup, batches([12.0] * 8)).holds
    growing = Static(setup, batches([5.0, 5.4, 5.8, 6.3, 6.8]))
    assert growing.p95_s <= latency.WANTED_S
    assert not growing.holds


def test_when_a_backlog_was_gone() -> None:
    arrived = [1_000.0, 1_500.0, 2_000.0, 2_500.0, 3_000.0]
    ends = [200.0, 1_100.0, 1_900.0, 2_500.0, 3_000.0]
    worked = [
        RecordedBatch("r", n, 5.0 * n, 4.0, 0.0, arrived_rows=there, pending_rows=there - end)
        for n, (there, end) in enumerate(zip(arrived, ends, strict=True))
    ]
    waiting, seconds = latency.caught_up_s(worked, 500.0)
    # 1,300, 900, 600 and 500 rows wait when batches 1 to 4 begin; 550 are little more than usual.
    assert waiting == pytest.approx(800.0)
    assert seconds == pytest.approx(12.5)
    answer = latency.caught_up_json(Setup(2, 500.0 / 3.0), worked, lambda rows: rows / 60.0)
    assert answer["error"] == pytest.approx((800.0 / 60.0) / 12.5 - 1.0)
    assert answer["accepted"]
    assert math.isnan(latency.caught_up_s(worked[:3], 500.0)[1])


def test_executors_are_paid_for_while_they_are_there() -> None:
    there = [RecordedExecutor("0", "a", 1, 0.0), RecordedExecutor("1", "a", 1, 50.0, removed_s=80.0)]
    assert latency.executor_s(there, (10.0, 100.0)) == pytest.approx(90.0 + 30.0)


def test_what_is_tried_on_spark_was_not_fitted() -> None:
    assert not set(models_spark.FITTED) & set(models_spark.HELD_OUT)
    assert len(set(models_spark.HELD_OUT)) > LEAST_TRIED
    assert {setup.executors for setup in models_spark.AT_PEAK} == {3, 4, 5, 6}


def test_what_came_before_the_full_load_does_not_count() -> None:
    warming = batches([9.0, 1.0], load_per_s=5.0)
    full = [replace(batch, number=batch.number + 2) for batch in batches([2.0] * 6)]
    run = RecordedRun("a", "q", (), (*warming, *full), ())
    kept = models_spark.settled_batches(run, Setup(3, 100.0, trigger_s=5.0), ["r"])
    assert [batch.number for batch in kept] == [4, 5, 6, 7]
    assert models_spark.settled_batches(run, Setup(3, 900.0), ["r"]) == []
