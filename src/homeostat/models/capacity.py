"""The load of each component and its capacity, measured from useful time, for all components at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

import numpy as np

from homeostat.core.batch_intervals import LATE_INTERVALS, intervals_of_each
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.observation import NAN, Array
from homeostat.core.stats import median, numpy_quantile
from homeostat.core.view import View, Window
from homeostat.models.batch_model import RECENT, batch_time, capacities_per_s
from homeostat.models.headroom import growth
from homeostat.models.model_fitting import batch_model
from homeostat.models.noise import Noise, fit

# The highest load is taken over this many observations: with more, a peak counts for longer. A choice.
PEAKS_OVER = 60
# A load counts as a peak above this quantile: a higher one would be a single odd observation. A choice.
PEAK_QUANTILE = 0.95

# Rows out per row in are averaged over this many observations: more are steadier, fewer follow the data sooner. A
# choice.
_SELECTIVITY_OBSERVATIONS = 30
# The noise of a dataflow is fitted to this many observations, because differences need many values. A choice.
_NOISE_OBSERVATIONS = 400
# Headroom in standard deviations of the load: 2.5 covers 99 % of a normal distribution. More costs idle instances.
_HEADROOM_SIGMAS = 2.5
# The planned utilisation never falls below this, so that a very noisy load does not cost more than twice its mean.
# A choice.
_LEAST_TARGET = 0.5
# The fewest observations with a number of instances whose median counts as the measured capacity. A choice.
_LEAST_CAPACITY_OBSERVATIONS = 4
# In logarithms, a load counts as at least this share of the capacity, because 0 has no logarithm. A choice.
_SMALLEST_UTILISATION = 1e-3
# Values needed before their standard deviation may lower the fitted noise. A choice.
_LEAST_VALUES = 6
# A source that is held back for more than this share of the time and has nothing waiting does not replay. A choice,
# above the noise of the measurement.
_HELD_BACK = 0.05


@dataclass(frozen=True)
class Load:
    """One component under its present load.

    `offered_per_s` is the rate that would reach the component if nothing upstream held rows back. `capacities_per_s` is
    the rate it could process, per observation of the present configuration. `capacity_per_s` is its capacity now,
    limited by the busiest instance. `even_per_s` is the capacity if every instance had the typical speed and an even
    share. `instances` is the value of the scaling knob: the number of instances or executors. `imbalance` is the
    largest share of rows ÷ the mean share, `spread` the standard deviation of all shares. `noise` is the noise of
    ln(offered ÷ capacity) in any configuration. `growth` is how many times as much may arrive before another change
    could take effect. `intervals` is the number of trigger intervals that each observation counts for; if it is empty,
    each counts for one.
    """

    component: str
    instances: int
    offered_per_s: Array
    capacities_per_s: Array
    even_per_s: float
    imbalance: float
    complete: bool
    noise: Noise
    spread: float = 0.0
    growth: float = 1.0
    intervals: Array = field(default_factory=lambda: np.ones(0))

    @cached_property
    def capacity_per_s(self) -> float:
        recent = self.capacities_per_s[-RECENT:]
        finite = recent[np.isfinite(recent)]
        return self.even_per_s if self.empty and not len(finite) else median(finite)

    @property
    def empty(self) -> bool:
        """Whether it is known that no rows arrive. Capacity cannot be measured then, and the last known one is used."""
        recent = self.offered_per_s[-LEAST_OBSERVATIONS:]
        return len(recent) == LEAST_OBSERVATIONS and bool((recent == 0).all())

    @cached_property
    def target(self) -> float:
        """The utilisation to plan for: enough headroom that the load fits 99 % of the time, none for a steady load.

        If the policy plans by risk, the headroom instead covers the growth that is worth its price.

        The noise is fitted to differences, which ignore a moving level but need many values. The standard deviation of
        the values themselves can only be widened by a moving level, so the smaller of the two is closer.
        """
        if self.growth > 1.0:
            return max(_LEAST_TARGET, 1.0 / self.growth)
        logs = self.log_utilisation
        deviation = float(np.std(logs, ddof=1)) if len(logs) >= _LEAST_VALUES else math.inf
        return max(_LEAST_TARGET, math.exp(-_HEADROOM_SIGMAS * min(self.noise.sigma, deviation)))

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.capacity_per_s) and bool(np.isfinite(self.offered_per_s[-RECENT:]).any())

    @property
    def log_utilisation(self) -> Array:
        """ln(offered ÷ capacity), where both are known."""
        return self._logs_and_times[0]

    @property
    def times(self) -> Array:
        """For how many observations each value of `log_utilisation` counts."""
        return self._logs_and_times[1]

    def telling(self, least: int) -> int:
        """How many of the latest values must agree on a finding: those of the late batches at the end, at most `least`;
        without late batches, `least`; 0 if there are too few values."""
        times = self.times
        late = len(times) - int(np.flatnonzero(np.append(-1, times) < LATE_INTERVALS)[-1])
        return min(late, least) if late else least if len(times) >= least else 0

    @cached_property
    def _logs_and_times(self) -> tuple[Array, Array]:
        capacity = np.where(np.isfinite(self.capacities_per_s), self.capacities_per_s, self.capacity_per_s)
        offered_per_s = np.maximum(self.offered_per_s, _SMALLEST_UTILISATION * capacity)
        usable = np.isfinite(offered_per_s) & (offered_per_s > 0)
        times = self.intervals if len(self.intervals) else np.ones(len(usable))
        return np.log(offered_per_s[usable] / capacity[usable]), times[usable]


def level(series: Array, last: int = RECENT) -> float:
    """Return the present level of a positive series: the geometric mean of its latest values."""
    recent = series[np.isfinite(series) & (series > 0)][-last:]
    return float(np.exp(np.mean(np.log(recent)))) if len(recent) else NAN


def peak(series: Array, last: int = PEAKS_OVER) -> float:
    """Return a value that a series rarely exceeds. With ordinary noise, the planned headroom reaches higher."""
    recent = series[np.isfinite(series)][-last:]
    return numpy_quantile(np.sort(recent), PEAK_QUANTILE) if len(recent) else 0.0


def loads(view: View) -> dict[str, Load]:
    """Return the load of each component. On a micro-batch engine, return only the longest stage, because all stages
    share the same slots."""
    return view.once("loads", _batch_load if view.micro_batch else _dataflow_loads)


def _noise(view: View, capacities: Array) -> Noise:
    """Fitted to all configurations: the level differs between them, the noise does not."""
    numbers, last = view.numbers, len(capacities)
    ratio = np.where(numbers.flow("epoch", last) >= 0, numbers.flow("arrival_per_s", last), NAN) / capacities
    usable = ratio[np.isfinite(ratio) & (ratio > 0)]
    return fit(np.log(usable))


def backlog_rows(view: View) -> float:
    pending = [d.pending_rows for d in view.history[-LEAST_OBSERVATIONS:] if math.isfinite(d.pending_rows)]
    return pending[-1] if pending else NAN


def nothing_arrives(view: View) -> bool:
    """Return whether it is known that no rows arrived lately. Capacity then cannot and need not be measured."""
    recent = view.flow("arrival_per_s", RECENT)
    return len(recent) > 0 and bool((recent == 0).all())


def replays(view: View) -> bool:
    """Return whether rows that are not processed wait at the source.

    A source that is held back but has no waiting rows loses rows, even if the engine reports that it replays them.
    """
    for digest in view.history[-_SELECTIVITY_OBSERVATIONS:]:
        pressures = [c.pressured for c in digest.components.values() if math.isfinite(c.pressured)]
        if pressures and max(pressures) > _HELD_BACK and digest.pending_rows == 0:
            return False
    return view.capabilities.replays


def selectivities(view: View) -> dict[str, float]:
    """Return rows out per row in. This depends on the data alone, so other configurations count too."""
    ratios = {}
    for name in view.topology.names:
        working = (d.components[name] for d in reversed(view.history) if name in d.components)
        samples = [(c.rows, c.rows_out) for c in islice((c for c in working if c.rows > 0), _SELECTIVITY_OBSERVATIONS)]
        pairs = np.array([pair for pair in samples if all(map(math.isfinite, pair))]).reshape(-1, 2)
        rows, rows_out = pairs.sum(axis=0) if len(pairs) else (0.0, 0.0)
        ratios[name] = float(rows_out / rows) if rows > 0 else NAN
    return ratios


def _dataflow_loads(view: View) -> dict[str, Load]:
    ratio = selectivities(view)
    digests = view.current
    offered_per_s: dict[str, Array] = {}
    result = {}
    for component in view.topology:
        name = component.name
        if component.kind == "source":
            offered_per_s[name] = np.array([d.arrivals_per_s.get(name, NAN) for d in digests])
        else:
            inputs = [offered_per_s[up] * ratio[up] for up in component.inputs]
            offered_per_s[name] = np.sum(inputs, axis=0) if inputs else np.full(len(digests), NAN)
        result[name] = _dataflow_load(view, name, offered_per_s[name])
    return result


def _dataflow_load(view: View, name: str, offered_per_s: Array) -> Load:
    capacities = view.numbers.part(name, "capacity_per_s", _NOISE_OBSERVATIONS)
    instances = int(view.parallelism(name))
    # The rate of one instance does not depend on their number, so older observations count until rows arrive.
    instance_rates = (d.components[name].instance_rate_per_s for d in reversed(view.history) if name in d.components)
    rates = np.array(list(islice((rate for rate in instance_rates if math.isfinite(rate)), RECENT)))
    imbalance, spread = _imbalance(arrived_rows(view.window, name, RECENT))
    return Load(
        component=name,
        instances=instances,
        offered_per_s=offered_per_s,
        capacities_per_s=capacities[len(capacities) - len(view.current) :],
        even_per_s=instances * median(rates),
        imbalance=imbalance,
        complete=_complete(view),
        noise=_noise(view, capacities),
        spread=spread,
        growth=growth(view),
    )


def measured_capacities(view: View, name: str) -> dict[int, float]:
    """Return the measured capacity for each number of instances that the component has run with.

    Keys may hash evenly with one number of instances and unevenly with the next. A measurement beats any formula.
    """
    per_s: dict[int, list[float]] = {}
    for d in view.history:
        component = d.components.get(name)
        if d.epoch >= 0 and component is not None and math.isfinite(component.capacity_per_s):
            per_s.setdefault(component.instances, []).append(component.capacity_per_s)
    return {
        count: median(np.array(values))
        for count, values in per_s.items()
        if len(values) >= _LEAST_CAPACITY_OBSERVATIONS
    }


def arrived_rows(window: Window, component: str, last: int) -> Array:
    """Return the rows that arrived at each instance in each of the last observations, processed or still queued.

    Instances without queues, as in batches, have processed everything that arrived.
    """
    recent = window.last(last + 1)
    rows, pending = recent.tasks(component, "rows"), recent.tasks(component, "pending_rows")
    if not np.isfinite(pending).any():
        return rows[-last:]
    if len(recent) < 2:
        return rows
    queue_growth = np.diff(pending, axis=0)
    arrivals: Array = np.maximum(rows[1:] + np.where(np.isfinite(queue_growth), queue_growth, 0.0), 0.0)
    return arrivals


def _imbalance(rows: Array) -> tuple[float, float]:
    """The largest share ÷ the mean share, and the standard deviation of all shares."""
    if rows.size == 0 or not np.isfinite(rows).any():
        return 1.0, 0.0
    counts = np.isfinite(rows).sum(axis=0)
    typical = np.nansum(rows, axis=0)[counts > 0] / counts[counts > 0]
    mean = float(typical.mean())
    if mean <= 0 or len(typical) < 2:
        return 1.0, 0.0
    return max(1.0, float(typical.max()) / mean), float(typical.std(ddof=1)) / mean


def _complete(view: View) -> bool:
    """Whether no metric was missing lately. Nothing is scaled down otherwise."""
    return view.once("complete", _nothing_missing)


def _nothing_missing(view: View) -> bool:
    recent = view.current[-RECENT:]
    return len(recent) >= LEAST_OBSERVATIONS and not view.missing_since(recent[0].at_s - recent[0].span_s)


def speed_up(
    view: View,
    factors: Mapping[str, float],
    *,
    by_slots: bool = True,
    partitions: Mapping[str, int] | None = None,
) -> float:
    """Return ln(time before ÷ after) of the whole application if the capacity of components grows by `factors`.

    A dataflow is as fast as its bottleneck, which may then be another component. A batch keeps its fixed part. With
    `by_slots` a batch gains slots, on which its tasks run in whole waves; without it the tasks themselves get faster.
    `partitions` has the stages that are cut into another number of tasks.
    """
    if view.micro_batch:
        return _batch_speed_up(view, max(factors.values(), default=1.0), by_slots, partitions or {})
    ratios = {name: load.capacity_per_s / level(load.offered_per_s) for name, load in loads(view).items()}
    room = {name: value for name, value in ratios.items() if value > 0}
    if not room:
        return math.log(max(factors.values(), default=1.0))
    after = min(value * factors.get(name, 1.0) for name, value in room.items())
    return math.log(after / min(room.values()))


def _batch_speed_up(view: View, factor: float, by_slots: bool, partitions: Mapping[str, int]) -> float:
    """Replays a batch with as many rows as the latest ones."""
    model = batch_model(view)
    rows = [d.rows for d in view.current if d.rows > 0][-RECENT:]
    if model is None or not rows:
        return math.log(factor)
    now_s = model.plain_s(median(np.array(rows)), model.setup)
    driver_s = model.usual_driver_s
    after_s = driver_s + (now_s - driver_s) / factor
    if by_slots:
        executors = max(1, round(model.setup.executors * factor))
        then = replace(model.setup, executors=executors, partitions=partitions)
        after_s = model.plain_s(median(np.array(rows)), then)
    return math.log(now_s / after_s) if now_s > 0 and after_s > 0 else math.log(factor)


def _batch_load(view: View) -> dict[str, Load]:
    typical = batch_time(view)
    if typical is None:
        name = view.topology.operators[-1].name if view.topology.operators else ""
        return {name: Load(name, 0, np.empty(0), np.empty(0), NAN, 1.0, False, Noise(0.0, 0.0))}
    capacities = capacities_per_s(view)
    imbalance, spread = _imbalance(arrived_rows(view.window, typical.bottleneck, RECENT))
    load = Load(
        component=typical.bottleneck,
        instances=int(view.parallelism(typical.bottleneck)),
        offered_per_s=view.flow("arrival_per_s"),
        intervals=intervals_of_each(view.flow("seconds"), view.flow("trigger_s")),
        capacities_per_s=capacities[len(capacities) - len(view.current) :],
        even_per_s=typical.capacity_per_s(view.current[-1].trigger_s, typical.even_row_s),
        imbalance=imbalance,
        complete=_complete(view),
        noise=_noise(view, capacities),
        spread=spread,
        growth=growth(view),
    )
    return {typical.bottleneck: load}
