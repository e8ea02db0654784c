"""ContTune (Lian et al., "Continuous Tuning by Conservative Bayesian Optimization", VLDB 2023): re-implementation.

Big phase: while the job is under back-pressure, the parallelism of all operators doubles. Small phase: for each
operator on its own, a Gaussian process over (parallelism, processing ability) predicts what fewer instances could
process, from all earlier tunings. The smallest parallelism whose predicted ability is at least the rate that arrives is
deployed (argmax (p* − p) · [μ(p) ≥ λ], with p* from the Big phase). If it is more than α away from every parallelism
that was observed, DS2's linear rule decides instead, and its result is a new observation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from statistics import fmean

import numpy as np

from homeostat.core.digest import Digest
from homeostat.core.observation import NAN
from homeostat.core.policy_definition import Policy
from homeostat.core.view import View
from homeostat.policies.peers.gaussian_process import fitted
from homeostat.policies.peers.measurements import Load, Unit, arrivals, demands, measure, recent, units
from homeostat.policies.peers.rule import Missing, Target, rule_policy
from homeostat.policies.setting_checks import check_settings

_ROUNDING = 1e-6
# Binary lifting: each step of the Big phase.
_BIG = 2


@dataclass(frozen=True, slots=True)
class ContTuneSettings:
    """`alpha` is the paper's; the thresholds of its controller are not published."""

    # How often the rule is applied, and what rates are averaged over. As for DS2.
    interval_s: float = 60.0
    # How far from an observed parallelism the Gaussian process is trusted.
    alpha: int = 3
    # The latest observations of each parallelism that are averaged. The published table has five.
    top_k: int = 5
    # The share of the time under back-pressure from which the Big phase begins. Flink's web interface calls less OK.
    back_pressure: float = 0.1
    # Below this busy share the job is tuned although nothing holds it back. Ours.
    low_use: float = 0.6
    # What the predicted ability must exceed the arrivals by. The paper has none.
    headroom: float = 0.0

    def __post_init__(self) -> None:
        check_settings(
            self,
            positive=("interval_s",),
            not_negative=("alpha", "headroom"),
            at_least_one=("top_k",),
            shares=("back_pressure", "low_use"),
        )


@dataclass(frozen=True, slots=True)
class ContTuneRule:
    settings: ContTuneSettings = ContTuneSettings()
    name: str = "conttune"

    def targets(self, view: View) -> Sequence[Target] | Missing:
        settings = self.settings
        digests = recent(view, settings.interval_s)
        if not digests:
            return ()
        pressure = back_pressure(view, digests)
        if not math.isfinite(pressure):
            return Missing("back-pressure")
        if pressure >= settings.back_pressure:
            return [self._big(view, unit, pressure) for unit in units(view)]
        loads = {unit: measure(view, unit, digests) for unit in units(view)}
        in_use = _use(loads.values())
        if not in_use >= settings.low_use or self._is_after_big_phase(view):
            return self._small_phase(view, loads, arrivals(view, digests))
        return ()

    def _big(self, view: View, unit: Unit, pressure: float) -> Target:
        most = max(unit.now, int(view.spec(unit.knob).maximum))
        return Target(unit, min(_BIG * unit.now, most), {"under back-pressure": pressure})

    def _small_phase(
        self, view: View, loads: Mapping[Unit, Load], arriving: Mapping[str, float]
    ) -> Sequence[Target] | Missing:
        upstream = demands(view, {unit.component: load for unit, load in loads.items()}, arriving)
        targets = []
        for unit, load in loads.items():
            wanted_per_s = upstream[unit.component] * (1.0 + self.settings.headroom)
            if not math.isfinite(wanted_per_s) or (wanted_per_s > 0 and not math.isfinite(load.rate_per_s)):
                return Missing("rows or useful time", unit.component)
            abilities = observed_abilities(view, unit, self.settings.interval_s, self.settings.top_k)
            linear = math.ceil(wanted_per_s / load.rate_per_s - _ROUNDING) if wanted_per_s > 0 else 1
            size = smallest(wanted_per_s, abilities, unit.now, linear, self.settings.alpha)
            minimum = math.ceil(view.spec(unit.knob).minimum)
            evidence = {"upstream_per_s": wanted_per_s, "observed parallelisms": float(len(abilities))}
            targets.append(Target(unit, max(size, minimum), evidence))
        return targets

    def _is_after_big_phase(self, view: View) -> bool:
        """Whether the configuration before this one was under back-pressure."""
        earlier = (d for d in reversed(view.history) if d.epoch >= 0 and d.epoch != view.epoch)
        last = next(earlier, None)
        if last is None:
            return False
        since_s = last.at_s - self.settings.interval_s
        stretch = [last, *takewhile(lambda d: d.epoch == last.epoch and d.at_s > since_s, earlier)]
        return back_pressure(view, stretch) >= self.settings.back_pressure


def smallest(upstream_per_s: float, abilities: Mapping[int, float], most: int, linear: int, alpha: float) -> int:
    """The smallest parallelism up to `most` that the process expects to be enough, or else `most`. `linear`, DS2's
    result, replaces it if it is further than `alpha` from every parallelism in `abilities`.

    >>> smallest(2_500.0, {1: 1_000.0, 2: 1_900.0, 4: 3_600.0}, most=4, linear=3, alpha=3)
    3
    """
    if not abilities:
        return min(linear, most)
    sizes = np.arange(1.0, most + 1.0)
    enough = sizes[fitted(list(abilities), list(abilities.values())).mean(sizes) >= upstream_per_s]
    suggested = int(enough[0]) if len(enough) else most
    nearest = min(abs(suggested - each) for each in abilities)
    return suggested if nearest <= alpha else min(linear, most)


def back_pressure(view: View, digests: Sequence[Digest]) -> float:
    """The share of the time in which a component held its senders back; NaN if it is unknown.

    In micro-batches: the share of the time spent in batches that took longer than their trigger or, without a trigger,
    left more rows than they processed.
    """
    if not view.micro_batch:
        shares = [[d.components[c.name].pressured for d in digests if c.name in d.components] for c in view.topology]
        finite = [fmean(known) for each in shares if (known := [share for share in each if math.isfinite(share)])]
        return max(finite, default=NAN)
    usable = [d for d in digests if math.isfinite(d.seconds)]
    seconds = sum(d.span_s for d in usable)
    return sum(d.span_s for d in usable if _is_late(d)) / seconds if seconds > 0 else NAN


def _is_late(digest: Digest) -> bool:
    return digest.seconds > digest.trigger_s if digest.trigger_s > 0 else digest.pending_rows > digest.rows


def _use(loads: Iterable[Load]) -> float:
    """The busy share of all instances together; NaN if none is known."""
    known_loads = [load for load in loads if math.isfinite(load.busy)]
    instances = sum(load.instances for load in known_loads)
    return sum(load.busy * load.instances for load in known_loads) / instances if instances > 0 else NAN


def observed_abilities(view: View, unit: Unit, interval_s: float, top_k: int) -> dict[int, float]:
    """What each parallelism in the history could process: the mean of its latest `top_k` intervals."""
    abilities: dict[int, list[float]] = {}
    epochs = [list(digests) for epoch, digests in groupby(view.history, lambda d: d.epoch) if epoch >= 0]
    for digests in reversed(epochs):
        for stretch in _latest_intervals(digests, interval_s, top_k):
            load = measure(view, unit, stretch)
            of_size = abilities.setdefault(round(load.instances), [])
            if math.isfinite(load.rate_per_s) and len(of_size) < top_k:
                of_size.append(load.rate_per_s * load.instances)
    return {size: fmean(values) for size, values in abilities.items() if values}


def _latest_intervals(digests: Sequence[Digest], interval_s: float, most: int) -> Iterator[list[Digest]]:
    """The last whole intervals, the latest first."""
    end_s, start_s = digests[-1].at_s, digests[0].at_s - digests[0].span_s
    last = len(digests)
    for number in range(1, most + 1):
        begin_s = end_s - number * interval_s
        if begin_s < start_s - _ROUNDING:
            return
        first = last
        while first > 0 and digests[first - 1].at_s > begin_s:
            first -= 1
        if first < last:
            yield list(digests[first:last])
        last = first


def conttune(settings: ContTuneSettings | None = None) -> Policy:
    """ContTune: doubles everything under back-pressure, then shrinks by what earlier sizes could process."""
    settings = settings or ContTuneSettings()
    return rule_policy(
        ContTuneRule(settings), cadence_s=settings.interval_s, settle_s=0.0, window_s=settings.interval_s
    )
