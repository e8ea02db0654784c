"""What each component has to take and what it can take, read from useful time, for all components at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from homeostat.core.digest import Digest
from homeostat.core.observation import NAN, Array
from homeostat.core.stats import median
from homeostat.core.view import View, Window
from homeostat.models.batch_model import batch_time, capacities_per_s
from homeostat.models.model_fitting import batch_model
from homeostat.models.noise import Noise, fit

RECENT = 6
_SELECTIVITY_OVER = 30
_NOISE_OVER = 400
_BATCH_NOISE_OVER = 120
_HEADROOM_SIGMAS = 2.5
_LEAST_TARGET = 0.5
PEAKS_OVER = 60
PEAK_QUANTILE = 0.95
_LEAST_MEASURED = 4
_ALMOST_NOTHING = 1e-3
_EMPTY_OVER = 3
_LEAST_VALUES = 6


@dataclass(frozen=True)
class Load:
    """One component under its present load.

    `offered_per_s` is what would reach it if nothing held it back, and `capacities_per_s` what it could take, per
    observation of the present configuration; `capacity_per_s` is the latter now, bounded by the instance with the most
    to do. `even_per_s` is what it could take with every instance at the typical speed and an even share. `instances`
    is what the scaling knob counts (instances, or executors), `imbalance` the largest share of rows over the mean one,
    `spread` the standard deviation of all of them. `noise` is that of ln(offered ÷ capacity), whatever the
    configuration.
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

    @property
    def capacity_per_s(self) -> float:
        recent = self.capacities_per_s[-RECENT:]
        finite = recent[np.isfinite(recent)]
        return self.even_per_s if self.empty and not len(finite) else median(finite)

    @property
    def empty(self) -> bool:
        """Nothing is offered, and that is known: nothing to measure capacity by, but what was last seen holds."""
        recent = self.offered_per_s[-_EMPTY_OVER:]
        return len(recent) == _EMPTY_OVER and bool((recent == 0).all())

    @property
    def target(self) -> float:
        """The utilisation to plan for: as much headroom as the variation asks for, so that it fits 99 % of the time;
        none for a steady load.

        The noise is read off differences, which do not mind a level that moves but need many values. A level that
        moves can only widen what the values vary by altogether: where that is less, it is nearer.
        """
        logs = self.log_utilisation
        varied = float(np.std(logs, ddof=1)) if len(logs) >= _LEAST_VALUES else math.inf
        return max(_LEAST_TARGET, math.exp(-_HEADROOM_SIGMAS * min(self.noise.sigma, varied)))

    @property
    def known(self) -> bool:
        return math.isfinite(self.capacity_per_s) and bool(np.isfinite(self.offered_per_s[-RECENT:]).any())

    @property
    def log_utilisation(self) -> Array:
        """ln(offered ÷ capacity), where known."""
        capacity = np.where(np.isfinite(self.capacities_per_s), self.capacities_per_s, self.capacity_per_s)
        offered = np.maximum(self.offered_per_s, _ALMOST_NOTHING * capacity)
        known = np.isfinite(offered) & (offered > 0)
        logs: Array = np.log(offered[known] / capacity[known])
        return logs


def level(series: Array, last: int = RECENT) -> float:
    """A positive series now, without its noise."""
    recent = series[np.isfinite(series) & (series > 0)][-last:]
    return float(np.exp(np.mean(np.log(recent)))) if len(recent) else NAN


def peak(series: Array, last: int = PEAKS_OVER) -> float:
    """What a series hardly ever exceeds. For ordinary noise the planned headroom is more than that."""
    recent = series[np.isfinite(series)][-last:]
    return float(np.quantile(recent, PEAK_QUANTILE)) if len(recent) else 0.0


def loads(view: View) -> dict[str, Load]:
    """By component; on a micro-batch engine only the stage that bounds the batch, since all share the same slots."""
    return view.once("loads", _batch_load if view.micro_batch else _dataflow_loads)


def _noise(digests: Sequence[Digest], capacities: Array) -> Noise:
    """From digests of all configurations: the level differs between them, the noise does not."""
    arrivals = np.array([d.arrival_per_s if d.epoch >= 0 else NAN for d in digests])
    ratio = arrivals / capacities
    good = ratio[np.isfinite(ratio) & (ratio > 0)]
    return fit(np.log(good))


def backlog_rows(view: View) -> float:
    pending = [d.pending_rows for d in view.history[-3:] if math.isfinite(d.pending_rows)]
    return pending[-1] if pending else NAN


def nothing_arrives(view: View) -> bool:
    """Whether it is known that no rows came lately: then there is nothing to measure capacity by, and no need to."""
    recent = view.flow("arrival_per_s", RECENT)
    return len(recent) > 0 and bool((recent == 0).all())


def replays(view: View) -> bool:
    """Whether what is not taken waits at the source. A source that is held back and has nothing waiting does not,
    whatever the engine says of it."""
    for digest in view.history[-_SELECTIVITY_OVER:]:
        held = [c.pressured for c in digest.components.values() if math.isfinite(c.pressured)]
        if held and max(held) > 0.05 and digest.pending_rows == 0:
            return False
    return view.capabilities.replays


def selectivities(view: View) -> dict[str, float]:
    """Rows out per row in; a property of the data, so that digests of other configurations count too."""
    ratios = {}
    for name in view.topology.names:
        working = (d.components[name] for d in reversed(view.history) if name in d.components)
        seen = [(c.rows, c.rows_out) for c in islice((c for c in working if c.rows > 0), _SELECTIVITY_OVER)]
        pairs = np.array([pair for pair in seen if all(map(math.isfinite, pair))]).reshape(-1, 2)
        rows, rows_out = pairs.sum(axis=0) if len(pairs) else (0.0, 0.0)
        ratios[name] = float(rows_out / rows) if rows > 0 else NAN
    return ratios


def _dataflow_loads(view: View) -> dict[str, Load]:
    ratio = selectivities(view)
    digests = view.current
    offered: dict[str, Array] = {}
    result = {}
    for component in view.topology:
        name = component.name
        if component.kind == "source":
            offered[name] = np.array([d.arrivals_per_s.get(name, NAN) for d in digests])
        else:
            inputs = [offered[up] * ratio[up] for up in component.inputs]
            offered[name] = np.sum(inputs, axis=0) if inputs else np.full(len(digests), NAN)
        result[name] = _dataflow_load(view, name, offered[name])
    return result


def _dataflow_load(view: View, name: str, offered: Array) -> Load:
    digests = view.history[-_NOISE_OVER:]
    capacities = np.array([d.components[name].capacity_per_s if name in d.components else NAN for d in digests])
    instances = int(view.parallelism(name))
    # The rate of one instance does not depend on how many there are: before rows come, what was seen earlier counts.
    seen = (d.components[name].instance_rate_per_s for d in reversed(view.history) if name in d.components)
    rates = np.array(list(islice((rate for rate in seen if math.isfinite(rate)), RECENT)))
    imbalance, spread = _imbalance(arrived_rows(view.window, name, RECENT))
    return Load(
        component=name,
        instances=instances,
        offered_per_s=offered,
        capacities_per_s=capacities[len(digests) - len(view.current) :],
        even_per_s=instances * median(rates),
        imbalance=imbalance,
        complete=_complete(view),
        noise=_noise(digests, capacities),
        spread=spread,
    )


def measured_capacities(view: View, name: str) -> dict[int, float]:
    """What the component could take with other numbers of instances, as far as it ever ran with them.

    The hash of a keyed component may suit one number and not the next: having seen that beats any formula.
    """
    seen: dict[int, list[float]] = {}
    for d in view.history:
        component = d.components.get(name)
        if d.epoch >= 0 and component is not None and math.isfinite(component.capacity_per_s):
            seen.setdefault(component.instances, []).append(component.capacity_per_s)
    return {count: median(np.array(values)) for count, values in seen.items() if len(values) >= _LEAST_MEASURED}


def arrived_rows(window: Window, component: str, last: int) -> Array:
    """Rows that came to each instance in each of the last observations, whether taken or left in its queue.

    Where instances have no queues, as in batches, all that came was taken.
    """
    recent = window.last(last + 1)
    rows, pending = recent.tasks(component, "rows"), recent.tasks(component, "pending_rows")
    if not np.isfinite(pending).any():
        return rows[-last:]
    if len(recent) < 2:
        return rows
    growth = np.diff(pending, axis=0)
    arrived: Array = np.maximum(rows[1:] + np.where(np.isfinite(growth), growth, 0.0), 0.0)
    return arrived


def _imbalance(rows: Array) -> tuple[float, float]:
    """The largest share over the mean one, and the standard deviation of all of them."""
    if rows.size == 0 or not np.isfinite(rows).any():
        return 1.0, 0.0
    seen = np.isfinite(rows).sum(axis=0)
    typical = np.nansum(rows, axis=0)[seen > 0] / seen[seen > 0]
    mean = float(typical.mean())
    if mean <= 0 or len(typical) < 2:
        return 1.0, 0.0
    return max(1.0, float(typical.max()) / mean), float(typical.std(ddof=1)) / mean


def _complete(view: View) -> bool:
    """Nothing was missing anywhere in what was seen lately: the condition for taking anything away."""
    return view.once("complete", _seen_completely)


def _seen_completely(view: View) -> bool:
    recent = view.current[-RECENT:]
    return len(recent) >= 3 and not view.missing_since(recent[0].at_s - recent[0].span_s)


def speed_up(
    view: View,
    factors: Mapping[str, float],
    *,
    by_slots: bool = True,
    partitions: Mapping[str, int] | None = None,
) -> float:
    """ln(time before ÷ after) of the whole application when components can take so many times more than now.

    A dataflow is as fast as its bottleneck, which may then be another one; a batch keeps its fixed part. `by_slots`: a
    batch takes more because it has more slots, on which its tasks run in whole waves, not because they got faster.
    `partitions`: stages that are cut into other numbers of tasks.
    """
    if view.micro_batch:
        return _batch_speed_up(view, max(factors.values(), default=1.0), by_slots, partitions or {})
    measured = {name: load.capacity_per_s / level(load.offered_per_s) for name, load in loads(view).items()}
    room = {name: value for name, value in measured.items() if value > 0}
    if not room:
        return math.log(max(factors.values(), default=1.0))
    after = min(value * factors.get(name, 1.0) for name, value in room.items())
    return math.log(after / min(room.values()))


def _batch_speed_up(view: View, factor: float, by_slots: bool, partitions: Mapping[str, int]) -> float:
    """A batch with as many rows as the latest ones, replayed."""
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
    digests = view.history[-max(_BATCH_NOISE_OVER, len(view.current)) :]
    capacities = capacities_per_s(view, digests)
    imbalance, spread = _imbalance(arrived_rows(view.window, typical.bottleneck, RECENT))
    load = Load(
        component=typical.bottleneck,
        instances=int(view.parallelism(typical.bottleneck)),
        offered_per_s=view.flow("arrival_per_s"),
        capacities_per_s=capacities[len(digests) - len(view.current) :],
        even_per_s=typical.capacity_per_s(view.current[-1].trigger_s, typical.even_row_s),
        imbalance=imbalance,
        complete=_complete(view),
        noise=_noise(digests, capacities),
        spread=spread,
    )
    return {typical.bottleneck: load}
