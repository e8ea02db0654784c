"""Measures on real Spark: a latency objective under a load that triples, and how long a backlog takes to process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from homeostat.core.configuration import ADMISSION_ROOM
from homeostat.core.objective import Objective
from homeostat.core.observation import NAN, Array
from homeostat.core.records import BATCH
from homeostat.lab.bench.ground import Ground
from homeostat.lab.bench.trial_log import batches_after
from homeostat.lab.bench.twin import PARTITIONS, STATE_PARTITIONS, Setup
from homeostat.lab.bench.twin_experiments import SETTINGS
from homeostat.lab.experiment import Moment, Trial, TrialResult, json_of
from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import WordCount, specification
from homeostat.recorded_data.run import RecordedBatch, RecordedExecutor, RecordedRun
from homeostat.sim.scenario.spec import WorkloadSpec

# A new executor takes seconds to warm up; the objective must leave room for that.
WANTED_S = 12.0
EVERY_S = 4.0
LOW_PER_S, PEAK_PER_S = 840.0, 2_520.0
WAVE_S = 540.0
# A day's wave of load passes within minutes, so the times for which the loop waits and plans are shorter too.
QUICK: Mapping[str, Mapping[str, object]] = {
    **SETTINGS,
    "guards": {"cooldown": "5 s", "cooldown_shrink": "45 s", "confirm": "30 s"},
    "planning": {"horizon": "3 min"},
}
START_EXECUTORS = 2
MOST_CATCH_UP_ERROR = 0.15
# Rows arrive six times as fast for a while. The backlog is then processed in batches longer than their trigger.
CAUGHT_UP = (
    Setup(3, 800.0, rows_per_trigger=9_000),
    Setup(5, 1_200.0, rows_per_trigger=15_000),
)
CALM_S, BURST_S, BURST, LONGEST_S = 16.0, 10.0, 6.0, 75.0

_BOUND = round(ADMISSION_ROOM * EVERY_S * PEAK_PER_S)
_POINTS = 20
_GONE = 1.1
_ALL = 0.97

Span = tuple[float, float]


@dataclass(frozen=True)
class Static:
    """An unregulated setup at the peak."""

    setup: Setup
    batches: Sequence[RecordedBatch]

    @cached_property
    def p95_s(self) -> float:
        return float(np.quantile(latencies_s(self.batches), 0.95))

    @property
    def holds(self) -> bool:
        """Whether the objective holds and all rows that arrive are processed."""
        return self.p95_s <= WANTED_S and taken_per_s(self.batches) >= _ALL * self.setup.load_per_s


def vary(here: Ground, scale: float) -> tuple[TrialResult, Span]:
    """Runs one wave of load under the policy `latency`. Returns the result and the time span of the run."""
    here.set_executors(START_EXECUTORS)
    wave_s = scale * WAVE_S
    spec = _word_count(
        here,
        "latency",
        WorkloadSpec("diurnal", LOW_PER_S, to_per_s=PEAK_PER_S, period_s=wave_s),
        Setup(START_EXECUTORS, PEAK_PER_S, rows_per_trigger=_BOUND, trigger_s=EVERY_S),
        Objective(latency_p95_s=WANTED_S),
    )
    trial = Trial(here.spark, here.directory / "latency", spec, policy="latency", settings=QUICK)
    result = trial.run(wave_s)
    return result, (trial.started_s, trial.started_s + wave_s)


def fall_behind(here: Ground, setup: Setup, scale: float) -> Span:
    """Causes a backlog by a burst of load. Returns the time span in which it was processed."""
    here.set_executors(setup.executors)
    name = f"behind-{setup.executors}"
    spec = _word_count(here, name, WorkloadSpec("constant", setup.load_per_s), setup)
    trial = Trial(here.spark, here.directory / name, spec, mode="observe")
    calm_s, over_s = scale * CALM_S, scale * (CALM_S + BURST_S)
    burst = (Moment(calm_s, partial(Trial.load, factor=BURST)), Moment(over_s, partial(Trial.load, factor=1.0)))

    def worked_off(trial: Trial) -> bool:
        """Whether the latest batch has the usual size after a larger one."""
        rows = [
            float(np.nan_to_num(batch.rows)) for batch in batches_after(trial.records(BATCH), trial.started_s + over_s)
        ]
        return len(rows) > 1 and rows[-1] <= _GONE * setup.load_per_s * setup.trigger_s < rows[-2]

    trial.run(over_s + LONGEST_S, burst, until=worked_off)
    return trial.started_s + over_s, trial.started_s + trial.elapsed_s


def _word_count(
    here: Ground, name: str, load: WorkloadSpec, setup: Setup, objective: Objective | None = None
) -> WordCount:
    return specification(
        Profile(load),
        here.directory / f"ledger-{name}",
        objective,
        trigger_s=setup.trigger_s,
        executors=setup.executors,
        source_partitions=PARTITIONS,
        state_partitions=STATE_PARTITIONS,
        rows_per_trigger=setup.rows_per_trigger,
    )


def varied_json(recording: RecordedRun, result: TrialResult, span: Span, static: Sequence[Static]) -> dict[str, Any]:
    """The regulated run beside the smallest unregulated setup that meets the objective at the peak load."""
    batches = between(recording.batches, span)
    late_s = latencies_s(batches)
    spent_s = executor_s(recording.executors, (batches[0].started_s, batches[-1].ended_s))
    lasted_s = batches[-1].ended_s - batches[0].started_s
    smallest = min((each.setup.executors for each in static if each.holds), default=None)
    p95_s = float(np.quantile(late_s, 0.95))
    return {
        "objective_p95_s": WANTED_S,
        "load_per_s": [LOW_PER_S, PEAK_PER_S],
        "p95_s": p95_s,
        "share_in_time": float(np.mean(late_s <= WANTED_S)),
        "executors": spent_s / lasted_s,
        "static": {each.setup.name: {"p95_s": each.p95_s, "holds": each.holds} for each in static},
        "smallest_static_executors": smallest,
        "cost_over_static": None if smallest is None else spent_s / lasted_s / smallest,
        "accepted": p95_s <= WANTED_S and smallest is not None and spent_s < smallest * lasted_s,
        "run": json_of(result),
    }


def caught_up_json(setup: Setup, batches: Sequence[RecordedBatch], predict: Callable[[float], float]) -> dict[str, Any]:
    """`predict` gets the number of rows that wait beyond a usual batch, and returns the seconds to process them."""
    waiting, taken_s = caught_up_s(batches, setup.load_per_s * setup.trigger_s)
    predicted_s = predict(waiting)
    error = abs(predicted_s / taken_s - 1.0) if taken_s > 0 else NAN
    return {
        "setup": setup.name,
        "waiting_rows": waiting,
        "caught_up_s": taken_s,
        "predicted_s": predicted_s,
        "error": error,
        "accepted": error <= MOST_CATCH_UP_ERROR,
    }


def between(batches: Sequence[RecordedBatch], span: Span) -> list[RecordedBatch]:
    """The batches that began in that time."""
    return [batch for batch in batches if span[0] <= batch.started_s < span[1]]


def latencies_s(batches: Sequence[RecordedBatch]) -> Array:
    """Seconds from arrival to commit, for sample rows at equal distances, so that a batch counts by its number of rows.

    A row's arrival is interpolated between the starts of batches, at which the number of rows so far is known. That
    number is not known for a batch that began before a restart, but its rows still count as processed.
    """
    arrived_rows = np.array([batch.arrived_rows for batch in batches])
    started_s = np.array([batch.started_s for batch in batches])
    has_arrivals = np.isfinite(arrived_rows)
    arrived_rows, started_s = arrived_rows[has_arrivals], started_s[has_arrivals]
    most = max(batch.rows for batch in batches)
    last = batches[0].arrived_rows - batches[0].pending_rows
    samples = []
    for batch in batches[1:]:
        points = max(1, round(_POINTS * batch.rows / most))
        last += batch.rows
        rows = last - batch.rows * (np.arange(points) + 0.5) / points
        samples.append(batch.ended_s - np.interp(rows, arrived_rows, started_s))
    return np.concatenate(samples) if samples else np.empty(0)


def taken_per_s(batches: Sequence[RecordedBatch]) -> float:
    """Rows per second from the start of the first batch to the start of the last."""
    return sum(batch.rows for batch in batches[:-1]) / (batches[-1].started_s - batches[0].started_s)


def executor_s(executors: Sequence[RecordedExecutor], span: Span) -> float:
    """Seconds of all executors together in that time."""
    return sum(max(0.0, min(each.removed_s, span[1]) - max(each.added_s, span[0])) for each in executors)


def caught_up_s(batches: Sequence[RecordedBatch], usual_rows: float) -> tuple[float, float]:
    """The rows beyond a usual batch when the second batch begins, and the seconds until they are processed.

    NaN if they never are.
    """
    backlogs = [
        (after.started_s, after.arrived_rows - (before.arrived_rows - before.pending_rows))
        for before, after in pairwise(batches)
    ]
    if not backlogs:
        return NAN, NAN
    began_s, first = backlogs[0]
    for (from_s, before), (to_s, after) in pairwise(backlogs):
        if after <= _GONE * usual_rows < before:
            share = (before - _GONE * usual_rows) / (before - after)
            return first - usual_rows, from_s + share * (to_s - from_s) - began_s
    return first - usual_rows, NAN
