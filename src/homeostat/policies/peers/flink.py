"""The autoscaler of Flink's Kubernetes operator: re-implementation of the published formulas.

target capacity = lag ÷ catch-up + in · restart ÷ catch-up + in ÷ target utilisation, with in = processed rate +
d(lag)/dt at a source, propagated by output ratios; p′ = ⌈p · target capacity ÷ (true rate · α)⌉. If any vertex is out
of the bounds 0.7 ± 0.3, it changes all of them. Scaling down waits, then applies the largest value recommended
meanwhile. It never happens with more than 5 min of backlog. The true rate is that of the busiest instance or, where
sources with a lag show that this is too much, the rate that was observed. The result is aligned to the partitions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from homeostat.core.digest import Digest
from homeostat.core.observation import NAN
from homeostat.core.policy_definition import Policy
from homeostat.core.view import View
from homeostat.policies.peers.measurements import (
    Load,
    Unit,
    demands,
    measure,
    observed_rates,
    recent,
    slots_per_worker,
    units,
)
from homeostat.policies.peers.rule import Missing, Target, rule_policy
from homeostat.policies.setting_checks import check_settings

_ROUNDING = 1e-9
# Moments within the delay before scaling down at which the recommendation is recomputed: the original remembers each of
# its checks instead. Ours.
_CHECKS = 12
# Different parallelisms needed to fit the scalability. As in the original.
_LEAST_PAIRS = 3
# The smallest scalability believed. As in the original.
_LEAST_SCALABILITY = 0.5


@dataclass(frozen=True, slots=True)
class FlinkSettings:
    """Defaults as shipped (job.autoscaler.*); `observed_scalability` (α) is off there too."""

    # How often the rule is applied.
    cadence_s: float = 60.0
    # How long metrics are ignored after an action.
    stabilisation_s: float = 300.0
    # What metrics are averaged over.
    window_s: float = 900.0
    # The utilisation that vertices are sized for, and how far it may be off before the rule acts.
    target_utilisation: float = 0.7
    boundary: float = 0.3
    # How long catching up after a restart may take, and how long a restart is expected to take.
    catch_up_s: float = 1800.0
    restart_s: float = 300.0
    # How long scaling down waits, and the largest share that one step removes.
    shrink_delay_s: float = 3600.0
    largest_shrink: float = 0.6
    # With a longer backlog than this nothing is scaled down.
    backlog_s: float = 300.0
    observed_scalability: bool = False
    # From which lag on sources show their true rate, by how much it must be below the one from busy time to replace it,
    # and how many observations it needs.
    observed_lag_s: float = 30.0
    observed_switch: float = 0.15
    observed_least: int = 2
    # Whether the number of partitions is to be a multiple of the parallelism.
    align: bool = True

    def __post_init__(self) -> None:
        check_settings(
            self,
            positive=("cadence_s", "window_s", "catch_up_s", "backlog_s"),
            not_negative=("stabilisation_s", "boundary", "restart_s", "shrink_delay_s", "largest_shrink"),
            at_least_one=("observed_least",),
            shares=("target_utilisation",),
        )


def target_capacity(
    in_per_s: float, lag_per_s: float, utilisation: float, restart_s: float, catch_up_s: float
) -> float:
    """`lag_per_s` is the lag ÷ catch-up, already propagated from the sources."""
    return lag_per_s + in_per_s * restart_s / catch_up_s + in_per_s / utilisation


def true_rate_per_s(by_busy_time: float, observed_per_s: Sequence[float], switch: float, least: int) -> float:
    """The rate from busy time, unless it is more than `switch` above the mean of enough observed rates."""
    if len(observed_per_s) < least:
        return by_busy_time
    observed = fmean(observed_per_s)
    return by_busy_time if by_busy_time <= observed * (1.0 + switch) else observed


def aligned(parallelism: int, partitions: int, least: int, most: int) -> int:
    """The next larger parallelism that divides the partitions evenly; if there is none up to the bound, the smallest
    one whose busiest instance has as few partitions."""
    half = partitions // 2 + partitions % 2
    upper = min(partitions if parallelism > partitions // 2 else half, most)
    for p in range(parallelism, upper + 1):
        if partitions % p == 0:
            return p
    p = parallelism
    while p > 1 and partitions // p <= partitions // parallelism:
        p -= 1
    return max(p + 1 if partitions % p else p, least)


def scalability(pairs: Sequence[tuple[float, float]]) -> float:
    """α of rate = α · n · (rate ÷ n at the smallest n), by least squares over (n, rate), within [0.5, 1].

    >>> round(scalability([(1, 100.0), (2, 160.0), (4, 320.0)]), 2)
    0.81
    """
    parallelism = np.array([n for n, _ in pairs], dtype=np.float64)
    rates = np.array([rate for _, rate in pairs])
    if len(set(parallelism.tolist())) < _LEAST_PAIRS:
        return 1.0
    smallest = int(parallelism.argmin())
    linear = parallelism * rates[smallest] / parallelism[smallest]
    return float(np.clip(linear @ rates / (linear @ linear), _LEAST_SCALABILITY, 1.0))


@dataclass(frozen=True, slots=True)
class _Vertex:
    unit: Unit
    load: Load
    in_per_s: float
    lag_per_s: float
    alpha: float


@dataclass(frozen=True, slots=True)
class FlinkRule:
    settings: FlinkSettings = FlinkSettings()
    name: str = "flink"

    def targets(self, view: View) -> Sequence[Target] | Missing:
        settings = self.settings
        if not recent(view, settings.stabilisation_s + settings.window_s):
            return ()
        digests = [d for d in view.current if d.at_s > view.now_s - settings.window_s]
        vertices = self._vertices(view, digests)
        if isinstance(vertices, Missing):
            return vertices
        if all(self._within_bounds(vertex) for vertex in vertices):
            return ()
        behind_s = _behind_s(digests)
        return [self._target(view, vertex, behind_s) for vertex in vertices]

    def _vertices(self, view: View, digests: Sequence[Digest]) -> Sequence[_Vertex] | Missing:
        loads = {unit: self._measured(view, unit, digests) for unit in units(view)}
        by_component = {unit.component: load for unit, load in loads.items()}
        rates, lags = _source_rates(view, digests, self.settings.catch_up_s)
        inputs, catching_up = demands(view, by_component, rates), demands(view, by_component, lags)
        vertices = []
        for unit, load in loads.items():
            in_per_s, lag_per_s = inputs[unit.component], catching_up[unit.component]
            if not all(map(math.isfinite, (load.capacity_per_s, in_per_s, lag_per_s))):
                return Missing("rows, useful time or lag", unit.component)
            alpha = scalability(_pairs(view, unit)) if self.settings.observed_scalability else 1.0
            vertices.append(_Vertex(unit, load, in_per_s, lag_per_s, alpha))
        return vertices

    def _measured(self, view: View, unit: Unit, digests: Sequence[Digest]) -> Load:
        settings, load = self.settings, measure(view, unit, digests)
        observed_per_s = observed_rates(view, unit, digests, settings.observed_lag_s)
        rate = true_rate_per_s(load.capacity_per_s, observed_per_s, settings.observed_switch, settings.observed_least)
        return replace(load, capacity_per_s=rate)

    def _aligned(self, view: View, unit: Unit, target: int) -> int:
        """On micro-batches the partitions of the longest stage are shared out to the slots. A dataflow hashes its keys
        to whatever instances there are."""
        if not (self.settings.align and view.micro_batch and view.current):
            return target
        part, spec = view.current[-1].components.get(unit.component), view.spec(unit.knob)
        if part is None or target >= part.instances:
            return target
        slots = max(1, round(slots_per_worker(view)))
        most = min(spec.maximum * slots, part.instances)
        return math.ceil(aligned(target * slots, part.instances, math.ceil(spec.minimum), int(most)) / slots)

    def _capacity(self, vertex: _Vertex, utilisation: float, restart_s: float) -> float:
        return target_capacity(vertex.in_per_s, vertex.lag_per_s, utilisation, restart_s, self.settings.catch_up_s)

    def _within_bounds(self, vertex: _Vertex) -> bool:
        settings = self.settings
        high = settings.target_utilisation + settings.boundary
        low = max(settings.target_utilisation - settings.boundary, 0.01)
        least = self._capacity(vertex, high, 0.0)
        most = self._capacity(vertex, low, settings.restart_s)
        return least * (1.0 - _ROUNDING) <= vertex.load.capacity_per_s <= most * (1.0 + _ROUNDING)

    def _recommendation(self, vertex: _Vertex) -> int:
        target = self._capacity(vertex, self.settings.target_utilisation, self.settings.restart_s)
        factor = target / (vertex.load.capacity_per_s * vertex.alpha)
        factor = max(factor, 1.0 - self.settings.largest_shrink)
        return max(1, math.ceil(vertex.load.instances * factor - _ROUNDING))

    def _target(self, view: View, vertex: _Vertex, behind_s: float) -> Target:
        unit, target = vertex.unit, self._aligned(view, vertex.unit, self._recommendation(vertex))
        if target < unit.now:
            lately = self._largest_lately(view, unit)
            target = unit.now if behind_s > self.settings.backlog_s else min(unit.now, max(target, lately))
        evidence = {
            "in_per_s": vertex.in_per_s,
            "true rate_per_s": vertex.load.capacity_per_s,
            "target capacity_per_s": self._capacity(vertex, self.settings.target_utilisation, self.settings.restart_s),
            "scalability": vertex.alpha,
            "backlog_s": behind_s,
        }
        minimum = math.ceil(view.spec(unit.knob).minimum)
        return Target(unit, max(target, minimum), evidence)

    def _largest_lately(self, view: View, unit: Unit) -> int:
        """The largest recommendation within the delay before scaling down; the present value until then."""
        settings, history = self.settings, view.history
        start_s = view.now_s - settings.shrink_delay_s
        if not history or history[0].at_s - history[0].span_s > start_s:
            return unit.now
        largest = 0
        for number in range(_CHECKS + 1):
            end_s = start_s + settings.shrink_delay_s * number / _CHECKS
            stretch = [d for d in history if d.epoch >= 0 and end_s - settings.window_s < d.at_s <= end_s]
            stretch = [d for d in stretch if d.epoch == stretch[-1].epoch]
            vertices = self._vertices(view, stretch) if stretch else ()
            if not isinstance(vertices, Missing):
                mine = [self._aligned(view, unit, self._recommendation(v)) for v in vertices if v.unit == unit]
            largest = max([largest, *mine])
        return largest or unit.now


def _source_rates(
    view: View, digests: Sequence[Digest], catch_up_s: float
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """`in` and lag ÷ catch-up at each source. Digests have the lag of all sources together, which is split evenly."""
    names = [source.name for source in view.topology.sources]
    seconds = sum(d.span_s for d in digests if math.isfinite(d.rows))
    processed_per_s = sum(d.rows for d in digests if math.isfinite(d.rows)) / seconds if seconds > 0 else NAN
    backlogs = [(d.at_s, d.pending_rows) for d in digests if math.isfinite(d.pending_rows)]
    if not backlogs:
        return dict.fromkeys(names, NAN), dict.fromkeys(names, NAN)
    growth = 0.0
    if len(backlogs) > 1:
        growth = (backlogs[-1][1] - backlogs[0][1]) / (backlogs[-1][0] - backlogs[0][0])
    each = {name: 1.0 / len(names) for name in names}
    rates = {name: max(0.0, processed_per_s + growth) * share for name, share in each.items()}
    lags = {name: backlogs[-1][1] / catch_up_s * share for name, share in each.items()}
    return rates, lags


def _behind_s(digests: Sequence[Digest]) -> float:
    """The lag in seconds of arrivals; infinite if it is unknown, so that nothing is scaled down."""
    last = digests[-1]
    if not (math.isfinite(last.pending_rows) and math.isfinite(last.arrival_per_s)):
        return math.inf
    return last.pending_rows / last.arrival_per_s if last.arrival_per_s > 0 else 0.0


def _pairs(view: View, unit: Unit) -> list[tuple[float, float]]:
    """(parallelism, true rate) of every configuration in the history."""
    epochs: dict[int, list[Digest]] = {}
    for digest in view.history:
        if digest.epoch >= 0:
            epochs.setdefault(digest.epoch, []).append(digest)
    loads = [measure(view, unit, digests) for digests in epochs.values()]
    return [(load.instances, load.capacity_per_s) for load in loads if math.isfinite(load.capacity_per_s)]


def flink(settings: FlinkSettings | None = None) -> Policy:
    """Flink's autoscaler: sizes all vertices for a target utilisation, with room to catch up."""
    settings = settings or FlinkSettings()
    return rule_policy(
        FlinkRule(settings),
        cadence_s=settings.cadence_s,
        settle_s=settings.stabilisation_s,
        window_s=settings.window_s,
    )
