"""A summary of an observation, without impossible values and summed over instances.

Digests are kept across actions; raw observations are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter

import numpy as np

from homeostat.core.batch_intervals import intervals
from homeostat.core.evidence_limits import LEAST_KNOWN
from homeostat.core.observation import (
    NAN,
    Array,
    FlowSample,
    IntArray,
    KeyLoad,
    Observation,
    StateSample,
    TaskCosts,
    TaskSample,
    WorkerLoss,
    total_at_most,
)
from homeostat.core.stats import filled, median

_COLUMNS = ("rows", "run_s", "rows_out", "pending_rows", "pressured_s", "finish_s")
_COSTS = tuple(each.name for each in fields(TaskCosts))
_columns, _costs = attrgetter(*_COLUMNS), attrgetter(*_COSTS)
_STATE_NUMBERS = tuple(each.name for each in fields(StateSample) if each.type == "float")
# Rows, or rows per second. A larger number is an error: the limit is far above any real stream. A choice.
_LARGEST = 1e12
# Likewise for bytes: an exabyte.
_MOST_BYTES = 1e18
# Rows, seconds or rows per second: a smaller number is zero. Far below anything measurable, and quotients stay finite.
_SMALLEST = 1e-9
# The time of a task is discarded if it exceeds this many times the span of its observation, plus this constant: a batch
# can begin before the span that reports it. Choices.
_LONGEST_SPANS, _LONGEST_MORE_S = 2.0, 60.0
# Senders cannot be held back for longer than the span. This allows for clocks that differ a little. A choice.
_CLOCK_ERROR = 1.01


@dataclass(frozen=True, slots=True)
class ComponentDigest:
    """One component in one observation.

    `known_share` is the share of the instances that were measured. `complete` is False if anything is unknown of any
    instance: its rows, its time, and either when it finished (a batch) or its queue and how long it held its senders
    back (a dataflow). `rows_out` is unknown if it is for one of the instances that `rows` counts, because the two are
    compared. `arrived_rows` counts what came in, whether processed or left in a queue. `busiest_s` is the useful time
    that the busiest instance needs for its part of them. `capacity_per_s`, the ratio of the two for all instances, is
    what the component can process. `row_s` is the time per row of the median task, and `row_wait_s` the part of it in
    which the task neither computed nor collected garbage.
    """

    instances: int
    known_share: float
    complete: bool
    rows: float
    rows_out: float
    run_s: float
    arrived_rows: float
    busiest_s: float
    span_s: float
    pressured: float
    pending_rows: float
    instance_rate_per_s: float
    capacity_per_s: float = NAN
    row_s: float = NAN
    row_wait_s: float = NAN


@dataclass(frozen=True, slots=True)
class Digest:
    """One observation. `epoch` counts configurations: digests of one epoch are comparable."""

    at_s: float
    span_s: float
    batch: int
    epoch: int
    rows: float
    seconds: float
    trigger_s: float
    arrival_per_s: float
    pending_rows: float
    updated_keys: float
    arrivals_per_s: Mapping[str, float] = field(default_factory=dict)
    components: Mapping[str, ComponentDigest] = field(default_factory=dict)
    workers: int = 0
    states: Mapping[str, StateSample] = field(default_factory=dict)
    watermark_gap_s: float = NAN
    phases_s: Mapping[str, float] = field(default_factory=dict)
    keys: Mapping[str, KeyLoad] = field(default_factory=dict)
    tasks_left_out: int = 0
    losses: tuple[WorkerLoss, ...] = ()
    pending_at_most: float = NAN

    @property
    def intervals(self) -> int:
        return intervals(self.seconds, self.trigger_s)


def clean(observation: Observation) -> Observation:
    """Replace impossible values (negative, infinite, longer than the time observed) by NaN.

    If the columns of a component have different lengths, its instances cannot be matched: it counts as not measured.
    """
    longest_s = _LONGEST_SPANS * observation.span_s + _LONGEST_MORE_S
    workers = len(observation.workers.ids)
    pressured_s = _CLOCK_ERROR * observation.span_s + _SMALLEST
    tasks = {
        name: _clean_tasks(sample, workers, longest_s, pressured_s)
        for name, sample in observation.tasks.items()
        if len({len(column) for column in (*_columns(sample), sample.worker)}) == 1
    }
    states = {name: _clean_state(sample) for name, sample in observation.states.items()}
    return replace(observation, tasks=tasks, flows=tuple(map(_clean_flow, observation.flows)), states=states)


def _clean_tasks(sample: TaskSample, workers: int, longest_s: float, pressured_s: float) -> TaskSample:
    largest = (_LARGEST, longest_s, _LARGEST, _LARGEST, pressured_s, longest_s)
    columns = _all_within(_columns(sample), largest)
    return replace(
        sample,
        **dict(zip(_COLUMNS, columns, strict=True)),
        worker=_known_worker(sample.worker, workers),
        costs=_clean_costs(sample.costs, sample.instances, longest_s),
        began_s=_one_within(sample.began_s, longest_s),
        ended_s=_one_within(sample.ended_s, longest_s),
    )


def _all_within(columns: Sequence[Array], largest: Sequence[float]) -> Sequence[Array]:
    """Return the columns without impossible values. Most batches have none, which one look at all columns shows."""
    table, limits = np.array(columns), np.array(largest)[:, np.newaxis]
    good = ((table >= _SMALLEST) & (table <= limits)) | (table == 0.0)
    if (good.all(axis=1) | np.isnan(table).all(axis=1)).all():
        return columns
    return [_within(column, limit) for column, limit in zip(columns, largest, strict=True)]


def _within(values: Array, largest: float) -> Array:
    good = ((values >= _SMALLEST) & (values <= largest)) | (values == 0.0)
    if good.all() or np.isnan(values).all():
        return values
    return np.where(good, values, np.where((values > 0.0) & (values < _SMALLEST), 0.0, NAN))


def _one_within(value: float, largest: float) -> float:
    return value if 0.0 <= value <= largest else NAN


def _clean_costs(costs: TaskCosts | None, instances: int, longest_s: float) -> TaskCosts | None:
    """None if a column does not have one entry per instance."""
    if costs is None or any(len(column) != instances for column in _costs(costs)):
        return None
    columns = _costs(costs)
    cleaned = _all_within(columns, [longest_s if name.endswith("_s") else _MOST_BYTES for name in _COSTS])
    return costs if cleaned is columns else TaskCosts(*cleaned)


def _known_worker(worker: IntArray, workers: int) -> IntArray:
    good = (worker >= 0) & (worker < workers)
    return worker if bool(good.all()) else np.where(good, worker, -1)


def _clean_flow(flow: FlowSample) -> FlowSample:
    def sane(value: float) -> float:
        if 0.0 <= value < _SMALLEST:
            return 0.0
        return value if _SMALLEST <= value <= _LARGEST else NAN

    return replace(
        flow,
        rows=sane(flow.rows),
        seconds=sane(flow.seconds),
        trigger_s=sane(flow.trigger_s),
        arrival_per_s=sane(flow.arrival_per_s),
        pending_rows=sane(flow.pending_rows),
        pending_at_most=sane(flow.pending_at_most),
        updated_keys=sane(flow.updated_keys),
    )


def _clean_state(state: StateSample) -> StateSample:
    def sane(name: str) -> float:
        value, lowest = float(getattr(state, name)), -1.0 if name == "snapshot_version" else 0.0
        return value if lowest <= value <= (_MOST_BYTES if name.endswith("_bytes") else _LARGEST) else NAN

    return replace(state, **{name: sane(name) for name in _STATE_NUMBERS})  # type: ignore[arg-type]


def digest(observation: Observation, epoch: int, before: Observation | None = None) -> Digest:
    """`before` is the observation just before this one, if there was one in the same configuration."""
    flows = observation.flows
    earlier = before.tasks if before is not None else {}
    return Digest(
        at_s=observation.at_s,
        span_s=observation.span_s,
        batch=observation.batch,
        epoch=epoch,
        rows=sum(flow.rows for flow in flows) if flows else NAN,
        seconds=_largest([flow.seconds for flow in flows]),
        trigger_s=_largest([flow.trigger_s for flow in flows]),
        arrival_per_s=sum(flow.arrival_per_s for flow in flows) if flows else NAN,
        pending_rows=sum(flow.pending_rows for flow in flows) if flows else NAN,
        updated_keys=sum(flow.updated_keys for flow in flows) if flows else NAN,
        arrivals_per_s={flow.source: flow.arrival_per_s for flow in flows},
        components={
            name: _component(sample, earlier.get(name), observation.span_s)
            for name, sample in observation.tasks.items()
        },
        workers=len(observation.workers.ids),
        states=observation.states,
        watermark_gap_s=_largest([flow.watermark_gap_s for flow in flows]),
        phases_s=flows[0].phases_s if flows else {},
        keys=observation.keys,
        tasks_left_out=sum(observation.left_out.values()),
        losses=observation.losses,
        pending_at_most=total_at_most((flow.pending_rows, flow.pending_at_most) for flow in flows),
    )


def _component(sample: TaskSample, before: TaskSample | None, span_s: float) -> ComponentDigest:
    finite = np.isfinite(sample.rows) & np.isfinite(sample.run_s)
    known_count = int(np.count_nonzero(finite))
    measured_share = known_count / finite.size if finite.size else 0.0
    rows, run_s = sample.rows[finite], sample.run_s[finite]
    working = run_s > 0
    rates = rows[working] / run_s[working]
    rate = median(rates)
    arrivals = _arrivals(sample, before)[finite]
    needed_s = arrivals[working] / rates if rates.size and rates.all() else run_s
    busiest_s = float(needed_s.max()) if known_count else NAN
    arrived_rows = float(arrivals.sum()) if known_count else NAN
    measured = measured_share >= LEAST_KNOWN and arrived_rows > 0 and busiest_s > 0
    return ComponentDigest(
        instances=sample.instances,
        known_share=measured_share,
        complete=0 < finite.size == known_count and _waiting_known(sample),
        rows=float(rows.sum()) if known_count else NAN,
        rows_out=float(sample.rows_out[finite].sum()) if known_count else NAN,
        run_s=float(run_s.sum()) if known_count else NAN,
        arrived_rows=arrived_rows,
        busiest_s=busiest_s,
        span_s=_nan_max(sample.finish_s),
        pressured=_nan_max(sample.pressured_s) / span_s if span_s > 0 else NAN,
        pending_rows=_nan_sum(sample.pending_rows),
        instance_rate_per_s=rate,
        # Instances that were not measured count like those that were.
        capacity_per_s=arrived_rows / measured_share / busiest_s if measured else NAN,
        row_s=1.0 / rate if rate > 0 else NAN,
        row_wait_s=_row_wait_s(sample),
    )


def _row_wait_s(sample: TaskSample) -> float:
    if sample.costs is None:
        return NAN
    wait_s = sample.run_s - sample.costs.cpu_s - filled(sample.costs.gc_s, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_row = np.maximum(wait_s, 0.0) / sample.rows
    return median(per_row[np.isfinite(per_row) & (sample.rows > 0)])


def _arrivals(sample: TaskSample, before: TaskSample | None) -> Array:
    """Return the rows processed plus the growth of the queue, which shows early that an instance falls behind."""
    if before is None or before.instances != sample.instances:
        return sample.rows
    growth = sample.pending_rows - before.pending_rows
    arrivals: Array = np.maximum(sample.rows + np.where(np.isfinite(growth), growth, 0.0), 0.0)
    return arrivals if (arrivals > 0).any() else sample.rows


def _waiting_known(sample: TaskSample) -> bool:
    in_batches = bool(np.isfinite(sample.finish_s).all())
    return in_batches or bool((np.isfinite(sample.pending_rows) & np.isfinite(sample.pressured_s)).all())


def _largest(values: Sequence[float]) -> float:
    """Return the largest value; NaN if one of them is NaN, because it could be the largest."""
    return max(values) if values and all(map(math.isfinite, values)) else NAN


def _nan_sum(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.sum()) if finite.size else NAN


def _nan_max(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else NAN
