"""Fits the model of a micro-batch application to its observations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from homeostat.core.batch_intervals import telling
from homeostat.core.configuration import EXECUTORS_KNOB, ROWS_PER_TRIGGER
from homeostat.core.evidence_limits import LEAST_KNOWN, LEAST_OBSERVATIONS
from homeostat.core.makespan import makespan_s
from homeostat.core.observation import NAN, Array, Observation, TaskSample
from homeostat.core.stats import median, numpy_quantile, spread
from homeostat.core.view import View
from homeostat.models.batch_model import RECENT
from homeostat.models.batch_replay import BatchModel, KeyCurve, Setup, Stage, distinct_keys
from homeostat.models.cost_levels import at_present_level
from homeostat.models.task_cost_model import Samples, TaskCost, busy, fit, residuals
from homeostat.models.task_times import columns, keeps_state, mean_tasks, slots_each

# The single tasks of this many batches are replayed: more make the noise richer, fewer forget an old load sooner. A
# choice.
RECORDED_BATCHES = 12

# Costs are fitted to this many batches of the history: more cover more loads and configurations, fewer forget old code
# or data sooner. A choice.
_HISTORY_BATCHES = 240
# Costs are fitted to at most this many single tasks: more add little and take longer. A choice.
_MOST_TASKS = 4_000
# A worker is slow if its tasks take longer than the others' by this much in ln (16 %) and by this many standard errors.
# Lower limits would replace healthy workers by chance. Choices.
_LEAST_SLOWNESS, _SLOWNESS_ERRORS = 0.15, 4.0
# Standard error of a median over that of a mean, for a normal distribution.
_MEDIAN_TO_MEAN_ERROR = 1.25
# Bisection steps for the number of keys, enough to exhaust the precision, and the end of the interval in keys per row,
# where nearly all rows have different keys.
_HALVINGS, _MOST_KEYS_PER_ROW = 40, 200.0
# Above this share of distinct keys among the rows, the number of keys cannot be estimated and counts as infinite. A
# choice.
_ALL_DISTINCT = 0.995
# The spread of real durations, compared with the model, is measured on at most and at least this many batches. Choices.
_WIDENING_BATCHES, _LEAST_WIDENING_BATCHES = 60, 20
# The widening that is assumed while batches are too few, and the largest that is used: the recorded noise alone makes
# intervals too narrow. Choices.
_ASSUMED_WIDENING, _MOST_WIDENING = 1.5, 3.0
# The quantiles whose distance measures the spread: wider ones would rest on outliers. A choice.
_SPREAD_QUANTILES = (0.1, 0.9)
# Real batches count as at most this many times slower or faster than the model: more is not plausible. A choice.
_MOST_PACE = 3.0


def batch_model(view: View) -> BatchModel | None:
    """Return the model; None until the present configuration has run enough batches with rows."""
    return view.once("batch model", _batch_model)


def _batch_model(view: View) -> BatchModel | None:
    usable = (o for o in reversed(view.window.observations) if o.once("usable", partial(_usable, o)))
    recorded = list(islice(usable, RECORDED_BATCHES))[::-1]
    if not telling(recorded, LEAST_OBSERVATIONS):
        return None
    names = [name for name in view.topology.names if all(name in o.tasks for o in recorded[-LEAST_OBSERVATIONS:])]
    costs = {name: cost for name in names if (cost := fit(_samples(view, recorded, name))) is not None}
    if not costs:
        return None
    slots = max(1, round(median(np.concatenate([o.workers.slots for o in recorded]))))
    executors = int(view.configuration.get(EXECUTORS_KNOB, max(1, len(recorded[-1].workers.ids))))
    deviations = [{name: _deviations(o, name, cost, view) for name, cost in costs.items()} for o in recorded]
    slow = _slow_workers(recorded, deviations)
    if slow:
        costs = {name: fit(_healthy_samples(view, recorded, name, slow)) or cost for name, cost in costs.items()}
        deviations = [{name: _deviations(o, name, cost, view) for name, cost in costs.items()} for o in recorded]
    deviations = [_without(slow, o, each) for o, each in zip(recorded, deviations, strict=True)]
    common = np.array([_common(each, o) for each, o in zip(deviations, recorded, strict=True)])
    stages = tuple(_stage(view, recorded, deviations, common, costs[name], name) for name in costs)
    if not slow:  # else the rest of a stage may be waiting for the slow worker
        stages = tuple(replace(stage, delay_s=_delay_s(recorded, stage.name, slots)) for stage in stages)
    driver_s = [_seconds(o) - sum(_span_s(o.tasks[name]) for name in costs if name in o.tasks) for o in recorded]
    counts = view.numbers.flow("rows", len(view.history))
    counts = counts[(view.numbers.flow("epoch", len(view.history)) >= 0) & (counts > 0)]
    model = BatchModel(
        stages=stages,
        driver_s=np.maximum(np.array(driver_s), 0.0),
        common=common,
        slots=slots,
        setup=Setup(executors, _trigger_s(recorded), _rows_bound(view)),
        slow=tuple(math.exp(log) for log in slow.values() for _ in range(slots)),
        rows_seen=(float(counts.min()), float(counts.max())) if len(counts) else (0.0, math.inf),
    )
    model = replace(model, pace=_pace(view, model))
    return replace(model, widening=_widening(view, model))


def _pace(view: View, model: BatchModel) -> float:
    """How many times longer the stages of the latest batches took than predicted for their rows."""
    digests = [d for d in view.current if d.rows > 0 and d.seconds > 0][-RECENT:]
    driver_s = model.usual_driver_s
    plain_s = [each_s - driver_s for each_s in model.plain_each_s([d.rows for d in digests], model.setup)]
    paces = [max(d.seconds - driver_s, 0.0) / each_s for d, each_s in zip(digests, plain_s, strict=True) if each_s > 0]
    return min(max(median(np.array(paces)), 1.0 / _MOST_PACE), _MOST_PACE) if paces else 1.0


def _widening(view: View, model: BatchModel) -> float:
    """How many times wider the durations of real batches spread than predicted, in the present configuration."""
    digests = [d for d in view.current[-_WIDENING_BATCHES:] if d.rows > 0 and d.seconds > 0]
    if len(digests) < _LEAST_WIDENING_BATCHES:
        return _ASSUMED_WIDENING
    rows = [d.rows for d in digests]
    plain_s = model.plain_each_s(rows, model.setup)
    deviations = np.log([d.seconds / each_s for d, each_s in zip(digests, plain_s, strict=True)])
    predicted_logs = np.log(model.durations_s(median(np.array(rows)), model.setup))
    observed, expected = _width(deviations), _width(predicted_logs)
    return min(max(observed / expected, 1.0), _MOST_WIDENING) if expected > 0 else 1.0


def _width(logs: Array) -> float:
    ordered = np.sort(logs)
    low, high = (numpy_quantile(ordered, share) for share in _SPREAD_QUANTILES)
    return high - low


def _usable(observation: Observation) -> bool:
    rows = sum(flow.rows for flow in observation.flows)
    measured = all(np.isfinite(t.run_s).mean() >= LEAST_KNOWN for t in observation.tasks.values() if t.instances)
    return rows > 0 and math.isfinite(_seconds(observation)) and bool(observation.tasks) and measured


def _seconds(observation: Observation) -> float:
    return max((flow.seconds for flow in observation.flows), default=NAN)


def _trigger_s(recorded: Sequence[Observation]) -> float:
    trigger_s = max((flow.trigger_s for flow in recorded[-1].flows), default=NAN)
    return trigger_s if math.isfinite(trigger_s) else 0.0


def _rows_bound(view: View) -> float:
    bounds = [float(value) for knob, value in view.configuration.values.items() if knob.kind == ROWS_PER_TRIGGER]
    return sum(bounds) if bounds else math.inf


def _span_s(sample: TaskSample) -> float:
    finite = sample.finish_s[np.isfinite(sample.finish_s)]
    return float(finite.max()) if len(finite) else 0.0


def _updated_keys(observation: Observation) -> float:
    return max((flow.updated_keys for flow in observation.flows), default=NAN)


def _samples(view: View, recorded: Sequence[Observation], name: str) -> Samples:
    """The mean tasks of the batches in the history, and the single tasks of the latest batches."""
    counts = keeps_state(view.topology[name])
    tasks = [_tasks(o, name, counts) for o in recorded[-max(1, _MOST_TASKS // max(1, _instances(recorded, name))) :]]
    return columns(np.concatenate([at_present_level(mean_tasks(view, name, _HISTORY_BATCHES)), *tasks]))


def _healthy_samples(view: View, recorded: Sequence[Observation], name: str, slow: Mapping[str, float]) -> Samples:
    """Only single tasks of healthy workers: the mean task of a batch includes slow ones."""
    counts, lines = keeps_state(view.topology[name]), []
    for observation in recorded:
        tasks = _tasks(observation, name, counts)
        if len(tasks):
            healthy = np.array([*(worker not in slow for worker in observation.workers.ids), True])
            lines.append(tasks[healthy[observation.tasks[name].worker]])
    return columns(np.concatenate(lines))


def _instances(recorded: Sequence[Observation], name: str) -> int:
    return max((o.tasks[name].instances for o in recorded if name in o.tasks), default=0)


def _tasks(observation: Observation, name: str, counts_keys: bool) -> Array:
    """One line per task: rows, keys, seconds, weight, busy executors."""
    return observation.once(("task lines", name, counts_keys), partial(_task_lines, observation, name, counts_keys))


def _task_lines(observation: Observation, name: str, counts_keys: bool) -> Array:
    sample = observation.tasks.get(name)
    if sample is None:
        return np.empty((0, 5))
    each = _updated_keys(observation) / sample.instances if counts_keys else 0.0
    keys = np.minimum(np.full(sample.instances, each), sample.rows)
    weights, busy_executors = np.ones(sample.instances), np.full(sample.instances, _busy(observation, sample))
    return np.column_stack([sample.rows, keys, sample.run_s, weights, busy_executors])


def _deviations(observation: Observation, name: str, cost: TaskCost, view: View) -> Array:
    sample = observation.tasks.get(name)
    if sample is None:
        return np.empty(0)
    keys = np.zeros(sample.instances)
    if keeps_state(view.topology[name]) and cost.key_s > 0:
        keys = np.minimum(sample.rows, _updated_keys(observation) / sample.instances)
    return residuals(cost, sample.rows, keys, sample.run_s, _busy(observation, sample))


def _busy(observation: Observation, sample: TaskSample) -> float:
    workers = observation.workers
    return busy(len(workers.ids), sample.instances, slots_each(workers))


def _common(deviations: Mapping[str, Array], observation: Observation) -> float:
    """The mean deviation of all tasks of a batch, each weighted by its time."""
    logs = np.concatenate(list(deviations.values()))
    weights = np.concatenate([observation.tasks[name].run_s for name, each in deviations.items() if len(each)])
    usable = np.isfinite(logs) & np.isfinite(weights)
    total = float(weights[usable].sum())
    return float((logs[usable] * weights[usable]).sum()) / total if total > 0 else 0.0


def _stage(
    view: View,
    recorded: Sequence[Observation],
    deviations: Sequence[Mapping[str, Array]],
    common: Array,
    cost: TaskCost,
    name: str,
) -> Stage:
    """Uses the recorded batches with as many tasks as the latest one."""
    count = recorded[-1].tasks[name].instances
    same = [i for i, o in enumerate(recorded) if name in o.tasks and o.tasks[name].instances == count]
    noise = np.nan_to_num(np.array([deviations[i][name] - common[i] for i in same]).reshape(len(same), count))
    rows = np.nan_to_num(np.array([recorded[i].tasks[name].rows for i in same])).sum(axis=0)
    total = float(rows.sum())
    shares = rows / total if total > 0 else np.full(count, 1.0 / count)
    read = sum(flow.rows for i in same for flow in recorded[i].flows)
    keys = KeyCurve(_keys(view, name)) if keeps_state(view.topology[name]) else KeyCurve()
    return Stage(name, cost, shares, total / read, noise, keys=keys)


def _delay_s(recorded: Sequence[Observation], name: str, slots: int) -> float:
    """The time a stage took beyond the makespan of its tasks, per task that a slot ran."""
    delays_s = [o.once(("delay", name, slots), partial(_delay_in, o, name, slots)) for o in recorded if name in o.tasks]
    return max(0.0, median(np.array(delays_s)))


def _delay_in(observation: Observation, name: str, slots: int) -> float:
    sample = observation.tasks[name]
    total_slots = slots * max(1, len(observation.workers.ids))
    alone_s = makespan_s(np.nan_to_num(sample.run_s), total_slots)
    return (_span_s(sample) - alone_s) / max(1, math.ceil(sample.instances / total_slots))


def _keys(view: View, name: str) -> float:
    """The total number of keys, estimated from how many distinct ones each batch updated."""
    flow, part = (
        partial(view.numbers.flow, last=_HISTORY_BATCHES),
        partial(view.numbers.part, name, last=_HISTORY_BATCHES),
    )
    rows, known_share, updated_keys = part("rows"), part("known_share"), flow("updated_keys")
    chosen = (updated_keys > 0) & (known_share >= LEAST_KNOWN) & (rows > 0)
    return median(_keys_in_all(rows[chosen] / known_share[chosen], updated_keys[chosen]))


def _keys_in_all(rows: Array, updated_keys: Array) -> Array:
    """The K with updated = K · (1 − e^(−rows ÷ K)), found by bisection, since the right side grows with K."""
    low, high = updated_keys, _MOST_KEYS_PER_ROW * rows
    for _ in range(_HALVINGS):
        middle = np.sqrt(low * high)
        more = distinct_keys(middle, rows) < updated_keys
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.where(updated_keys >= _ALL_DISTINCT * rows, math.inf, low)


def _slow_workers(recorded: Sequence[Observation], deviations: Sequence[Mapping[str, Array]]) -> dict[str, float]:
    """ln of how many times longer tasks take, for each worker that is clearly slower than the others."""
    ids = recorded[-1].workers.ids
    place = {id: number for number, id in enumerate(ids)}
    worker_parts, log_parts = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for observation, each in zip(recorded, deviations, strict=True):
        # A worker that has ended, or is unknown (index -1), has the place -1.
        places = np.array([*(place.get(id, -1) for id in observation.workers.ids), -1])
        for name, logs in each.items():
            if len(logs):
                worker_parts.append(places[observation.tasks[name].worker])
                log_parts.append(logs)
    workers, logs = np.concatenate(worker_parts), np.concatenate(log_parts)
    usable = (workers >= 0) & np.isfinite(logs)
    workers, logs = workers[usable], logs[usable]
    slow = {}
    for worker in dict.fromkeys(workers.tolist()):
        logs_there, others = logs[workers == worker], logs[workers != worker]
        if len(logs_there) < LEAST_OBSERVATIONS or len(others) < LEAST_OBSERVATIONS:
            continue
        behind = median(logs_there) - median(others)
        if behind <= _LEAST_SLOWNESS:
            continue
        if behind > _SLOWNESS_ERRORS * _MEDIAN_TO_MEAN_ERROR * spread(others) / math.sqrt(len(logs_there)):
            slow[ids[worker]] = behind
    return slow


def _without(slow: Mapping[str, float], observation: Observation, deviations: Mapping[str, Array]) -> dict[str, Array]:
    """The deviations of tasks without the part that a slow worker caused."""
    if not slow:
        return dict(deviations)
    slowness = np.array([*(slow.get(worker, 0.0) for worker in observation.workers.ids), 0.0])
    return {
        name: logs - slowness[observation.tasks[name].worker] if len(logs) else logs
        for name, logs in deviations.items()
    }
