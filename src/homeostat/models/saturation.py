"""A dataflow as a chain of saturation points: each component passes on what comes in, up to what it can take.

An instance gives selectivity · t up to its saturation point and no more beyond (Caladrius); its saturation point is its
true rate, rows ÷ useful time (DS2). A shuffled component has p equal instances; of a keyed one the instance with the
largest share saturates first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from statistics import NormalDist

import numpy as np

from homeostat.core.observation import NAN
from homeostat.core.stats import median, spread
from homeostat.core.view import View
from homeostat.models.capacity import RECENT, Load, level, loads, measured_capacities, selectivities

_EVEN = 1.5
_ROUNDING = 1e-6
_RATES_OVER = 30
_BY_CHANCE = 3.5


@dataclass(frozen=True, slots=True)
class KeyShares:
    """How uneven a keyed component's rows are: the largest share over the mean one, now and with other numbers.

    Keys that a hash deals out to p instances leave their shares with a standard deviation of √(p ÷ keys); the `spread`
    of all shares tells that better than the largest one, which counts where it is unknown (0) or one instance is
    further out than by chance. A hot key keeps its share. With one instance nothing is known of the others.
    """

    instances: int
    imbalance: float
    spread: float = 0.0

    @property
    def known(self) -> bool:
        return self.instances > 1

    @property
    def hot(self) -> bool:
        """One key has so much that more instances would not help it."""
        return self.imbalance > _EVEN

    def with_instances(self, count: int) -> float:
        if count <= 1 or not self.known or self.imbalance <= 1.0:
            return 1.0
        if count == self.instances:
            return self.imbalance
        if self.hot:
            return max(1.0, count * self.imbalance / self.instances)
        above = self.imbalance - 1.0
        spread = self.spread if above <= _BY_CHANCE * self.spread else above / _largest_of(self.instances)
        # Far from what was measured it is not believed: more than this would be a hot key, which would have shown.
        return min(_EVEN, 1.0 + _largest_of(count) * spread * math.sqrt(count / self.instances))


def _largest_of(count: int) -> float:
    """How many standard deviations the largest of so many normal values is above their mean, as Blom has it."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


@dataclass(frozen=True, slots=True)
class Operator:
    """`rate_per_s` is what one instance can take, `error` its relative standard error, `noise` the standard deviation
    of ln(load ÷ capacity). `measured` is what the whole component could take with other numbers of instances, `most`
    the largest number it ever ran with, 0 if that is the present one.
    """

    name: str
    inputs: tuple[str, ...]
    instances: int
    rate_per_s: float
    selectivity: float
    shares: KeyShares | None = None
    measured: Mapping[int, float] = field(default_factory=dict)
    error: float = 0.0
    noise: float = 0.0
    most: int = 0

    def saturation_per_s(self, instances: int) -> float:
        """What it can take with so many instances: as measured, where it ever ran with them."""
        if instances in self.measured:
            return self.measured[instances]
        uneven = self.shares.with_instances(instances) if self.shares is not None else 1.0
        return instances * self.rate_per_s / uneven

    def fewest(self, offered_per_s: float) -> int:
        """The smallest number that takes this load; of a component with a hot key, that which would if it had none."""
        count = max(1, math.ceil(offered_per_s / self.rate_per_s - _ROUNDING))
        if self.shares is not None and self.shares.hot:
            return count
        while self.saturation_per_s(count) < offered_per_s * (1 - _ROUNDING):
            count += 1
        return count


@dataclass(frozen=True, slots=True)
class FlowPerformance:
    """`throughput_per_s` of all sources together, `saturation_per_s` the load at which the first component saturates.

    `utilisation` is what is offered to each component over what it can take; above 1 it holds its senders back.
    """

    rate_per_s: float
    parallelism: Mapping[str, int]
    throughput_per_s: float
    saturation_per_s: float
    bottleneck: str
    offered_per_s: Mapping[str, float]
    utilisation: Mapping[str, float]
    unknown: tuple[str, ...] = ()

    @property
    def stable(self) -> bool:
        return self.rate_per_s <= self.saturation_per_s * (1 + _ROUNDING)


@dataclass(frozen=True, slots=True)
class FlowModel:
    """Operators from the sources to the sinks; `shares` is the part of the load that each source gets."""

    operators: tuple[Operator, ...]
    shares: Mapping[str, float]

    def offered(self, rate_per_s: float) -> dict[str, float]:
        """What would reach each component if nothing held it back."""
        selectivity = {operator.name: operator.selectivity for operator in self.operators}
        offered: dict[str, float] = {}
        for operator in self.operators:
            above = sum(offered[name] * selectivity[name] for name in operator.inputs)
            offered[operator.name] = rate_per_s * self.shares.get(operator.name, 0.0) + above
        return offered

    def predict(self, rate_per_s: float, parallelism: Mapping[str, int] | None = None) -> FlowPerformance:
        """The composition of all saturation points, mapped back to the sources."""
        counts = {o.name: (parallelism or {}).get(o.name, o.instances) for o in self.operators}
        limits = self._limits_per_s(counts)
        bottleneck = min(limits, key=lambda name: limits[name], default="")
        saturation = limits.get(bottleneck, math.inf)
        offered = self.offered(rate_per_s)
        return FlowPerformance(
            rate_per_s=rate_per_s,
            parallelism=counts,
            throughput_per_s=min(rate_per_s, saturation),
            saturation_per_s=saturation,
            bottleneck=bottleneck,
            offered_per_s=offered,
            utilisation={name: rate_per_s / limit for name, limit in limits.items()},
            unknown=tuple(self.unseen(counts)),
        )

    def unseen(self, counts: Mapping[str, int]) -> Iterator[str]:
        """What a prediction for so many instances takes for granted."""
        scaled = [o for o in self.operators if counts.get(o.name, o.instances) != o.instances]
        for operator in scaled:
            if operator.shares is not None and not operator.shares.known:
                yield f"how uneven the keys of {operator.name} are is unknown: it has one instance"
        beyond = [o.name for o in scaled if counts[o.name] > max(o.most, o.instances)]
        if beyond:
            yield (
                f"what more instances than were seen do to {', '.join(beyond)} is unknown: "
                "each is taken to add as much as those there were"
            )

    def sure_per_s(self, confidence: float, parallelism: Mapping[str, int]) -> float:
        """The load that every component takes with this confidence."""
        z, counts = NormalDist().inv_cdf(confidence), {o.name: o.instances for o in self.operators} | dict(parallelism)
        limits, errors = self._limits_per_s(counts), {o.name: o.error for o in self.operators}
        sure = (limit * math.exp(-z * errors[name]) for name, limit in limits.items())
        return min(sure, default=math.inf) * (1 + _ROUNDING)

    def _limits_per_s(self, counts: Mapping[str, int]) -> dict[str, float]:
        """The load at which each component saturates."""
        each = self.offered(1.0)
        return {o.name: o.saturation_per_s(counts[o.name]) / each[o.name] for o in self.operators if each[o.name] > 0}


def flow_model(view: View) -> FlowModel | None:
    """None until the rate of every component is known."""
    return view.once("flow model", _flow_model)


def _flow_model(view: View) -> FlowModel | None:
    known, ratio = loads(view), selectivities(view)
    operators = [_operator(view, known[name], ratio[name]) for name in view.topology.names if name in known]
    if not operators or not all(o.rate_per_s > 0 and math.isfinite(o.selectivity) for o in operators):
        return None
    arrivals = {source.name: level(known[source.name].offered_per_s) for source in view.topology.sources}
    total = sum(rate for rate in arrivals.values() if math.isfinite(rate))
    even = 1.0 / max(1, len(arrivals))
    return FlowModel(
        tuple(operators), {name: rate / total if rate >= 0 and total > 0 else even for name, rate in arrivals.items()}
    )


def _operator(view: View, load: Load, selectivity: float) -> Operator:
    component = view.topology[load.component]
    seen = (d.components[load.component] for d in reversed(view.history) if load.component in d.components)
    rates = np.array(list(islice((c.instance_rate_per_s for c in seen if c.instance_rate_per_s > 0), _RATES_OVER)))
    seen_in = (d for d in view.history if d.epoch >= 0 and load.component in d.components)
    logs = np.log(rates)
    last = not view.topology.downstream(load.component)
    return Operator(
        name=load.component,
        inputs=component.inputs,
        instances=load.instances,
        rate_per_s=median(rates[:RECENT]) if len(rates) else NAN,
        selectivity=selectivity if math.isfinite(selectivity) or not last else 1.0,
        shares=KeyShares(load.instances, load.imbalance, load.spread) if component.keyed else None,
        measured=measured_capacities(view, load.component) if component.keyed else {},
        error=spread(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0,
        noise=load.noise.sigma,
        most=max((d.components[load.component].instances for d in seen_in), default=0),
    )
