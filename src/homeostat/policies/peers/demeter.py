"""Demeter (Geldenhuys et al., 2024; dos-group/demeter): re-implementation of its rule for the scale-out.

Every 10 minutes after a change: if latencies are bad, the default configuration, which is the largest. Otherwise the
load of the next 10 minutes is forecast (the largest of ten bins, times 1.10) and rounded up to the next segment of
workloads. A configuration is valid if its latency and its time to recover from a failure hold there, with a margin. The
most efficient valid one is deployed if it is cheaper by more than 5 %, or if the present one is not valid; if none is,
the default.

The original measures other configurations in profiling runs beside the job, and learns models from them. Here, their
results are computed from the true rate of an instance, at no cost, which is in favour of the original. Memory, slots
and checkpoints are no sizes here. Of several components, each gets its own scale-out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.digest import Digest
from homeostat.core.observation import NAN
from homeostat.core.policy_definition import Policy
from homeostat.core.stats import filled
from homeostat.core.traffic import MINUTE_S
from homeostat.core.view import View
from homeostat.policies.peers.demeter_model import bad_latency, efficient, forecast, recovery_s, segment
from homeostat.policies.peers.measurements import Load, Unit, arrivals, demands, measure, recent, units
from homeostat.policies.peers.rule import Missing, Target, rule_policy
from homeostat.policies.setting_checks import check_settings


@dataclass(frozen=True, slots=True)
class DemeterSettings:
    """Defaults of its repository (demeter.properties, GeneralSettings), except where a comment says otherwise."""

    # How often the rule looks, and for how long a configuration is kept at least.
    check_s: float = 60.0
    evaluation_s: float = 600.0
    # What latency and rates are averaged over.
    average_s: float = 60.0
    # How far ahead the load is forecast, and what the largest minute of it is multiplied by.
    forecast_s: float = 600.0
    buffer: float = 1.10
    # The width of a segment of workloads, as a share of the highest rate so far: 10,000 of some 33,000 rows/s there.
    segment: float = 0.3
    # The scale-outs to choose from: this far apart, up to the default and down to a share of it. There 24, and 8.
    step: int = 4
    largest: int = 24
    least_share: float = 1.0 / 3.0
    # The longest time to recover. The original measures it after a delay of 30 s, just before the next checkpoint.
    recovery_s: float = 180.0
    downtime_s: float = 30.0
    checkpoint_s: float = 10.0
    # What a predicted time to recover is multiplied by.
    margin: float = 1.25
    # How much more than the smallest valid configuration is deployed, because predictions may be wrong.
    spare: float = 1.25
    # The least gain that is worth a change.
    least_gain: float = 0.05

    def __post_init__(self) -> None:
        check_settings(
            self,
            positive=("check_s", "evaluation_s", "average_s", "forecast_s", "recovery_s"),
            not_negative=("segment", "downtime_s", "checkpoint_s", "least_gain"),
            shares=("least_share",),
            at_least_one=("buffer", "step", "largest", "margin", "spare"),
        )


@dataclass(frozen=True, slots=True)
class DemeterRule:
    settings: DemeterSettings = DemeterSettings()
    name: str = "demeter"

    def targets(self, view: View) -> Sequence[Target] | Missing:
        settings = self.settings
        if not recent(view, settings.evaluation_s):
            return ()
        digests = [d for d in view.current if d.at_s > view.now_s - settings.average_s]
        latency_s, lowest_s = _latency_s(view, settings.average_s)
        if not math.isfinite(latency_s):
            return Missing("pending rows or arrivals")
        if bad_latency(latency_s / lowest_s):
            evidence = {"latency_s": latency_s, "lowest latency_s": lowest_s}
            return [Target(unit, self._default(view, unit), evidence) for unit in units(view)]
        arriving = arrivals(view, digests)
        total = sum(arriving.values())
        expected_per_s = self._expected_per_s(view, total)
        if not math.isfinite(expected_per_s):
            return Missing("arrival_per_s")
        shares = {name: per_s / total if total > 0 else 1.0 / len(arriving) for name, per_s in arriving.items()}
        return self._sized(view, digests, {name: share * expected_per_s for name, share in shares.items()})

    def _expected_per_s(self, view: View, arriving_per_s: float) -> float:
        """The rate that the next minutes must be planned for."""
        settings, rates = self.settings, view.traffic.per_s
        known_rates = [rate for rate in rates if math.isfinite(rate)] + [arriving_per_s]
        coming = forecast(rates or (arriving_per_s,), math.ceil(settings.forecast_s / MINUTE_S))
        highest_per_s = float(coming.max()) * settings.buffer
        return segment(highest_per_s, min(known_rates), settings.segment * max(*known_rates, highest_per_s))

    def _sized(
        self, view: View, digests: Sequence[Digest], at_sources: Mapping[str, float]
    ) -> Sequence[Target] | Missing:
        loads = {unit: measure(view, unit, digests) for unit in units(view)}
        coming = demands(view, {unit.component: load for unit, load in loads.items()}, at_sources)
        targets = []
        for unit, load in loads.items():
            demand = coming[unit.component]
            if not math.isfinite(demand) or (demand > 0 and not math.isfinite(load.rate_per_s)):
                return Missing("rows or useful time", unit.component)
            evidence = {"demand_per_s": demand, "true rate_per_s": load.rate_per_s}
            targets.append(Target(unit, self._choice(view, unit, load, demand), evidence))
        return targets

    def _choice(self, view: View, unit: Unit, load: Load, demand_per_s: float) -> int:
        valid = [size for size in self._sizes(view, unit) if self._holds(size, load, demand_per_s)]
        best = efficient(valid, self.settings.spare)
        if not self._holds(unit.now, load, demand_per_s):
            return self._default(view, unit) if best is None else best
        return best if best is not None and best < (1.0 - self.settings.least_gain) * unit.now else unit.now

    def _holds(self, size: int, load: Load, demand_per_s: float) -> bool:
        settings = self.settings
        utilisation = demand_per_s / (size * load.rate_per_s) if demand_per_s > 0 else 0.0
        return settings.margin * recovery_s(utilisation, settings.downtime_s, settings.checkpoint_s) <= (
            settings.recovery_s
        )

    def _default(self, view: View, unit: Unit) -> int:
        return int(view.spec(unit.knob).clip(self.settings.largest))

    def _sizes(self, view: View, unit: Unit) -> range:
        default = self._default(view, unit)
        least = max(math.ceil(view.spec(unit.knob).minimum), math.ceil(self.settings.least_share * default - 1e-9))
        return range(default, least - 1, -self.settings.step)[::-1]


def _latency_s(view: View, average_s: float) -> tuple[float, float]:
    """The average latency now, and the lowest average in the history; NaN if it is unknown.

    A latency is the length of a tick or batch, and that of the rows that wait behind it in seconds of arrivals.
    """
    numbers, count = view.numbers, len(view.history)
    at_s, span_s, arriving_per_s = (numbers.flow(name, count) for name in ("at_s", "span_s", "arrival_per_s"))
    pending = numbers.flow("pending_rows", count)
    for component in numbers.components:
        pending = pending + filled(numbers.part(component, "pending_rows", count), 0.0)
    idle = (arriving_per_s == 0) & (pending == 0)
    latencies_s = span_s + np.divide(pending, arriving_per_s, out=np.where(idle, 0.0, NAN), where=arriving_per_s > 0)
    known = np.isfinite(latencies_s)
    latest = known & (at_s > view.now_s - average_s)
    if not latest.any():
        return NAN, NAN
    blocks = (at_s[known] / average_s).astype(np.int64)
    blocks -= blocks.min()
    counts = np.bincount(blocks)
    sums = np.bincount(blocks, latencies_s[known])
    return float(latencies_s[latest].mean()), float((sums[counts > 0] / counts[counts > 0]).min())


def demeter(settings: DemeterSettings | None = None) -> Policy:
    """Demeter: the most efficient scale-out that holds latency and recovery time for the forecast load."""
    settings = settings or DemeterSettings()
    return rule_policy(DemeterRule(settings), cadence_s=settings.check_s, settle_s=0.0, window_s=settings.average_s)
