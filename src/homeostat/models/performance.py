"""Predicts a micro-batch application at a rate in a configuration: duration, throughput, lag, latency, limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from homeostat.core.observation import Array
from homeostat.core.stats import quantile
from homeostat.models.batch_model import MOST_FIXED
from homeostat.models.batch_replay import BatchModel, CriticalPath, Setup
from homeostat.models.task_cost_model import busy

# The quantiles between which predicted values lie: eight of ten cases. Wider would rest on the few outermost draws.
INTERVAL = (0.1, 0.9)

# The largest numbers of iterations of the secant method, which is nearly exact for a nearly straight line, and of any
# other search. Choices; the searches usually stop earlier.
_SECANT_ROUNDS, _MOST_ROUNDS = 8, 40
# Capacity without a row limit is computed from batches this many times larger than those that fit the trigger interval,
# whose fixed costs hardly count. Even larger ones would be too far from any observed batch. A choice.
_LARGE_BATCH = 8.0
# Searches stop at this relative difference: far below the error of any prediction.
_CLOSE = 1e-3
# How much a search for an upper limit grows per step: to 20 % beyond the estimate, and at most fourfold, so that it
# does not jump far beyond the observed range. Choices.
_STEP_BEYOND, _LARGEST_STEP = 1.2, 4.0
# Moments within a period at which a row may arrive; more make the latency quantiles finer. A choice.
_ARRIVAL_MOMENTS = 40
# Without a trigger interval batches follow each other directly, but have the rows of at least this time. A choice.
_SHORTEST_PERIOD_S = 0.1
# A prediction for batches that are this many times smaller or larger than any observed one includes a note. A choice.
_FAR_FROM_OBSERVED = 2.0
# A backlog is gone when no more than this many times the usual number of rows waits: the exact number is approached but
# never reached. A choice.
_GONE = 1.1


@dataclass(frozen=True, slots=True)
class Range:
    """The median, and the range that holds in eight of ten cases."""

    low: float
    middle: float
    high: float

    def as_json(self) -> dict[str, float]:
        return {"p10": self.low, "p50": self.middle, "p90": self.high}


@dataclass(frozen=True, slots=True)
class Performance:
    """One configuration at one rate.

    `saturation_per_s` is the rate at which a batch takes exactly as long as its trigger interval, `most_per_s` the rate
    that batches of any duration can process. The configuration is not `stable` if more arrives: lag and latency then
    grow without end. `period_s` is the time from one batch to the next. `lag_s` is the time over which the rows that
    wait at the end of a batch arrived.
    """

    rate_per_s: float
    setup: Setup
    rows: float
    batch_s: Range
    period_s: float
    throughput_per_s: float
    saturation_per_s: Range
    most_per_s: float
    stable: bool
    lag_s: float
    latency_s: Mapping[str, float]
    critical: CriticalPath
    unknown: tuple[str, ...] = ()

    @property
    def in_time(self) -> bool:
        """Whether batches end before the next one is due, in nine of ten cases."""
        return self.stable and (self.setup.trigger_s <= 0 or self.batch_s.high <= self.setup.trigger_s)


def predict(model: BatchModel, rate_per_s: float, setup: Setup, variation: float = 0.0) -> Performance:
    """Predict the performance at a mean rate. `variation` is the standard deviation of its logarithm."""
    trigger_s = max(setup.trigger_s, _SHORTEST_PERIOD_S)
    rows = min(max(rate_per_s * trigger_s, 1.0), setup.rows_bound)
    durations_s = model.durations_s(rows, setup, variation=variation)
    factors = _range(durations_s / model.plain_s(rows, setup))
    most = _most_per_s(model, setup, factors.middle)
    stable = rate_per_s < most
    period_s = _period_s(model, rate_per_s, setup, factors.middle) if stable else trigger_s
    if period_s > trigger_s or not stable:
        rows = min(rate_per_s * period_s, setup.rows_bound) if stable else _full_rows(rows, setup)
        durations_s = model.durations_s(rows, setup, variation=variation)
    return Performance(
        rate_per_s=rate_per_s,
        setup=setup,
        rows=rows,
        batch_s=_range(durations_s),
        period_s=period_s if stable else max(trigger_s, quantile(durations_s, 0.5)),
        throughput_per_s=min(rate_per_s, most),
        saturation_per_s=_saturation_per_s(
            model, setup, factors if setup.trigger_s > 0 else _range(durations_s / model.plain_s(rows, setup))
        ),
        most_per_s=most,
        stable=stable,
        lag_s=quantile(durations_s, 0.5) if stable else math.inf,
        latency_s=_latency(durations_s, period_s) if stable else dict.fromkeys(("p50", "p95", "p99"), math.inf),
        critical=model.critical_path(rows, setup),
        unknown=_assumptions(model, rows, setup),
    )


def capacity_per_s(model: BatchModel, setup: Setup) -> float:
    """Return the rate at which a batch takes exactly as long as its rows took to arrive, without a row limit.

    If the fixed part nearly fills the trigger interval, the period grows until only `MOST_FIXED` of it is fixed.
    """
    unbounded_setup = replace(setup, rows_bound=math.inf)
    if setup.trigger_s <= 0:
        return _most_per_s(model, unbounded_setup, 1.0)
    period_s = max(setup.trigger_s, model.plain_s(0.0, setup) / MOST_FIXED)
    return _rows_within(model, unbounded_setup, period_s) / period_s


def catch_up_s(model: BatchModel, rate_per_s: float, setup: Setup, backlog_rows: float) -> float:
    """Return how long it takes to work off a backlog, each batch as large as allowed; infinite if it never ends."""
    if backlog_rows <= 0:
        return 0.0
    trigger_s = max(setup.trigger_s, _SHORTEST_PERIOD_S)
    factor = _usual_factor(model, rate_per_s, setup)
    if rate_per_s >= _most_per_s(model, setup, factor):
        return math.inf
    usual = _GONE * rate_per_s * _period_s(model, rate_per_s, setup, factor)
    waiting, spent_s = backlog_rows + rate_per_s * trigger_s, 0.0
    if waiting > setup.rows_bound:  # all full batches are alike
        full_s = max(trigger_s, factor * model.plain_s(setup.rows_bound, setup))
        gain_rows = setup.rows_bound - rate_per_s * full_s
        full = math.floor(max(0.0, waiting - max(setup.rows_bound, usual)) / gain_rows)
        waiting, spent_s = waiting - full * gain_rows, full * full_s
    batches: list[tuple[float, float]] = []
    for _ in range(_MOST_ROUNDS):
        if waiting <= usual:
            return spent_s
        rows = min(waiting, setup.rows_bound)
        took_s = max(trigger_s, factor * model.plain_s(rows, setup))
        gain_rows = rows - rate_per_s * took_s
        if gain_rows <= 0:
            return math.inf
        spent_s += took_s * min(1.0, (waiting - usual) / gain_rows)
        waiting -= gain_rows
        batches.append((rows, took_s))
    return spent_s + _dwindling_s(rate_per_s, waiting, usual, *batches[-2:])


def _dwindling_s(
    rate_per_s: float, waiting: float, target_rows: float, before: tuple[float, float], last: tuple[float, float]
) -> float:
    """The time until at most `target_rows` wait, if each batch processes all waiting rows and others arrive meanwhile.

    The duration of a batch is assumed to lie on the line through the latest two batches, each given as (rows, seconds).
    The rows that wait beyond the usual number then shrink by the same factor with every batch.
    """
    row_s = (before[1] - last[1]) / (before[0] - last[0])
    ratio = rate_per_s * row_s
    if not 0.0 < ratio < 1.0:
        return 0.0 if ratio <= 0.0 else math.inf
    usual = rate_per_s * (last[1] - row_s * last[0]) / (1.0 - ratio)
    beyond, target_rows = waiting - usual, max(target_rows, _GONE * usual)
    if waiting <= target_rows:
        return 0.0
    batches = math.log((target_rows - usual) / beyond) / math.log(ratio)
    return (batches * usual + (beyond - (target_rows - usual)) * ratio / (1.0 - ratio)) / rate_per_s


def rows_within(model: BatchModel, setup: Setup, seconds: float) -> float:
    """Return the rows of a batch that usually takes this long; 0 if even an empty one takes longer."""
    rows = _rows_within(model, setup, seconds)
    if rows <= 0:
        return 0.0
    return _rows_within(model, setup, seconds * model.plain_s(rows, setup) / model.expected_s(rows, setup))


def tail_s(model: BatchModel, rows: float, setup: Setup, share: float) -> float:
    """Return the seconds that a batch of `rows` does not exceed in this share of cases."""
    return quantile(model.durations_s(rows, setup), share)


def sure_per_s(model: BatchModel, rate_per_s: float, setup: Setup, share: float) -> float:
    """Return the rate that batches of any duration can process in this share of cases.

    The noise is that of batches at `rate_per_s`.
    """
    factor = _usual_factor(model, rate_per_s, setup)
    most = _most_per_s(model, setup, factor)
    if rate_per_s >= most:
        return most
    rows = min(rate_per_s * _period_s(model, rate_per_s, setup, factor), setup.rows_bound)
    return _most_per_s(model, setup, tail_s(model, rows, setup, share) / model.plain_s(rows, setup))


def _usual_factor(model: BatchModel, rate_per_s: float, setup: Setup) -> float:
    """How many times longer a batch of one trigger's rows takes than without noise."""
    rows = min(max(rate_per_s * max(setup.trigger_s, _SHORTEST_PERIOD_S), 1.0), setup.rows_bound)
    return float(np.median(model.durations_s(rows, setup))) / model.plain_s(rows, setup)


def _period_s(model: BatchModel, rate_per_s: float, setup: Setup, factor: float) -> float:
    """The time between two batches if each processes what arrived during the one before."""
    trigger_s = max(setup.trigger_s, _SHORTEST_PERIOD_S)
    period_s = trigger_s
    for _ in range(_MOST_ROUNDS):
        rows = min(rate_per_s * period_s, setup.rows_bound)
        longer_s = max(trigger_s, factor * model.plain_s(rows, setup))
        if abs(longer_s - period_s) <= _CLOSE * period_s:
            return longer_s
        period_s = longer_s
    return period_s


def _saturation_per_s(model: BatchModel, setup: Setup, factors: Range) -> Range:
    """The rate λ with T(λ·B) = B, where T is the duration of a batch and B the trigger interval; without a trigger
    interval, the rate of the largest batches."""
    every = (factors.high, factors.middle, factors.low)
    if setup.trigger_s <= 0:
        return Range(*(_most_per_s(model, setup, factor) for factor in every))
    rows = [min(_rows_within(model, setup, setup.trigger_s / factor), setup.rows_bound) for factor in every]
    low, middle, high = (each / setup.trigger_s for each in rows)
    return Range(low, middle, high)


def _most_per_s(model: BatchModel, setup: Setup, factor: float) -> float:
    """The rate with batches as large as allowed: the maximum of n ÷ max(T(n), B) over the rows n of a batch."""
    if math.isfinite(setup.rows_bound):
        return setup.rows_bound / max(factor * model.plain_s(setup.rows_bound, setup), setup.trigger_s)
    limit_s = max(setup.trigger_s, _SHORTEST_PERIOD_S) / factor
    in_trigger = max(_rows_within(model, setup, limit_s), 1.0)
    rows = _LARGE_BATCH * in_trigger
    more_s = factor * (model.plain_s(2.0 * rows, setup) - model.plain_s(rows, setup))
    at_trigger = in_trigger / setup.trigger_s if setup.trigger_s > 0 else 0.0
    return max(at_trigger, rows / more_s) if more_s > 0 else math.inf


def _rows_within(model: BatchModel, setup: Setup, limit_s: float) -> float:
    """The rows of a batch that takes `limit_s` without noise, by the secant method: T is nearly a line."""
    low, high = 0.0, max(model.rows_seen[1], 1.0) if math.isfinite(model.rows_seen[1]) else 1.0
    low_s, high_s = model.plain_s(low, setup), model.plain_s(high, setup)
    if low_s >= limit_s:
        return 0.0
    for _ in range(_MOST_ROUNDS):
        if high_s >= limit_s:
            break
        low, low_s, high = high, high_s, high * min(_LARGEST_STEP, max(_STEP_BEYOND, _STEP_BEYOND * limit_s / high_s))
        high_s = model.plain_s(high, setup)
    if high_s <= max(low_s, limit_s * (1 - _CLOSE)):
        return high  # rows seem to cost nothing, so any number would fit
    for _ in range(_SECANT_ROUNDS):
        middle = low + (high - low) * (limit_s - low_s) / (high_s - low_s)
        middle_s = model.plain_s(middle, setup)
        if abs(middle_s - limit_s) <= _CLOSE * limit_s:
            return middle
        low, low_s, high, high_s = (
            (middle, middle_s, high, high_s) if middle_s < limit_s else (low, low_s, middle, middle_s)
        )
    return low


def _full_rows(rows: float, setup: Setup) -> float:
    return setup.rows_bound if math.isfinite(setup.rows_bound) else rows


def _latency(durations_s: Array, period_s: float) -> dict[str, float]:
    """From arrival to commit: a row waits up to one period for the next batch to start, and then for its end."""
    waits_s = (np.arange(_ARRIVAL_MOMENTS) + 0.5) / _ARRIVAL_MOMENTS * period_s
    all_s = (waits_s[:, np.newaxis] + durations_s).ravel()
    p50, p95, p99 = np.percentile(all_s, (50, 95, 99))
    return {"p50": float(p50), "p95": float(p95), "p99": float(p99)}


def _range(ordered: Array) -> Range:
    return Range(quantile(ordered, INTERVAL[0]), quantile(ordered, 0.5), quantile(ordered, INTERVAL[1]))


def unseen_executors(model: BatchModel, executors: int) -> Iterator[str]:
    """Yield the assumptions of a prediction for this many executors."""
    now, then = (
        {stage.name: busy(each, stage.partitions, model.slots) for stage in model.stages}
        for each in (model.setup.executors, executors)
    )
    blind = [s.name for s in model.stages if s.cost.slowing is None and now[s.name] != then[s.name]]
    if blind:
        yield (
            f"the number of executors never changed, so its effect on {', '.join(blind)} is unknown: "
            "tasks are assumed not to slow each other down"
        )
    beyond = {s.name: s.cost.up_to_executors for s in model.stages if then[s.name] > s.cost.up_to_executors}
    if beyond:
        yield (
            f"{', '.join(beyond)} never ran on more than {min(beyond.values()):g} executors: "
            "the trend up to there is assumed to continue"
        )


def _assumptions(model: BatchModel, rows: float, setup: Setup) -> tuple[str, ...]:
    """The assumptions of the prediction."""
    notes = list(unseen_executors(model, setup.executors))
    low, high = model.rows_seen
    if not low / _FAR_FROM_OBSERVED <= rows <= _FAR_FROM_OBSERVED * high:
        notes.append(f"batches of {rows:,.0f} rows are far from the {low:,.0f} to {high:,.0f} rows observed so far")
    blended_stages = [s.name for s in model.stages if not s.cost.separable and s.tasks(setup) != s.partitions]
    if blended_stages:
        notes.append(
            f"the fixed cost of a task is unknown at {', '.join(blended_stages)}, because rows per task hardly varied"
        )
    return tuple(notes)
