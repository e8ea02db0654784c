"""A dataflow as a chain of saturation points: each component passes on what arrives, up to its capacity.

An instance outputs selectivity · t up to its saturation point and no more beyond it (Caladrius). Its saturation point
is its true rate, rows ÷ useful time (DS2). A shuffled component has p equal instances. In a keyed component the
instance with the largest share saturates first.
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
from homeostat.models.batch_model import RECENT
from homeostat.models.batch_replay import EVEN_UP_TO
from homeostat.models.capacity import Load, level, loads, measured_capacities, selectivities

_ROUNDING = 1e-6
# The error of a rate is estimated from this many observations: more are steadier, fewer follow a change sooner. A
# choice.
_RATE_OBSERVATIONS = 30
# A share further above the mean than this many standard deviations is a hot key and not chance. A choice: about the
# largest of a thousand normal values.
_CHANCE_SIGMAS = 3.5


@dataclass(frozen=True, slots=True)
class KeyShares:
    """How uneven the rows of a keyed component are: the largest share ÷ the mean, for any number of instances.

    Keys that are hashed to p instances give shares with a standard deviation of √(p ÷ keys). The `spread` of all shares
    estimates this deviation better than the largest share does. The largest share is used if the spread is unknown (0),
    or if this share is further out than chance explains. A hot key keeps its share. With one instance, the shares are
    unknown.
    """

    instances: int
    imbalance: float
    spread: float = 0.0

    @property
    def is_known(self) -> bool:
        return self.instances > 1

    @property
    def hot(self) -> bool:
        """Whether one key has so many rows that more instances would not help."""
        return self.imbalance > EVEN_UP_TO

    def with_instances(self, count: int) -> float:
        if count <= 1 or not self.is_known or self.imbalance <= 1.0:
            return 1.0
        if count == self.instances:
            return self.imbalance
        if self.hot:
            return max(1.0, count * self.imbalance / self.instances)
        above = self.imbalance - 1.0
        spread = self.spread if above <= _CHANCE_SIGMAS * self.spread else above / _largest_of(self.instances)
        # Do not extrapolate further: a hot key would have been visible already.
        return min(EVEN_UP_TO, 1.0 + _largest_of(count) * spread * math.sqrt(count / self.instances))


def _largest_of(count: int) -> float:
    """How many standard deviations the largest of `count` normal values lies above their mean (Blom 1958)."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


@dataclass(frozen=True, slots=True)
class Operator:
    """One component of a dataflow.

    `rate_per_s` is the capacity of one instance, `error` its relative standard error, `noise` the standard deviation of
    ln(load ÷ capacity). `measured` is the capacity of the whole component by number of instances, `most` the largest
    number of instances it has run with; 0 if unknown.
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
        """Return the capacity with this many instances: measured if the component has run with them, else computed."""
        if instances in self.measured:
            return self.measured[instances]
        uneven = self.shares.with_instances(instances) if self.shares is not None else 1.0
        return instances * self.rate_per_s / uneven

    def fewest(self, offered_per_s: float) -> int:
        """Return the fewest instances that can process this load, ignoring a hot key."""
        count = max(1, math.ceil(offered_per_s / self.rate_per_s - _ROUNDING))
        if self.shares is not None and self.shares.hot:
            return count
        enough_per_s = offered_per_s * (1 - _ROUNDING)
        # The formula grows with every instance. Measured capacities may not, so they divide the numbers of instances
        # into ranges.
        measured_counts = {*self.measured, *([self.shares.instances] if self.shares is not None else [])}
        for measured_count in sorted(each for each in measured_counts if each >= count):
            if measured_count > count and self.saturation_per_s(measured_count - 1) >= enough_per_s:
                return self._first_enough(count, measured_count - 1, enough_per_s)
            if self.saturation_per_s(measured_count) >= enough_per_s:
                return measured_count
            count = measured_count + 1
        most = count
        while self.saturation_per_s(most) < enough_per_s:
            most *= 2
        return self._first_enough(count, most, enough_per_s)

    def _first_enough(self, low: int, high: int, enough_per_s: float) -> int:
        """The fewest instances that are enough, by bisection; `high` instances are."""
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.saturation_per_s(middle) >= enough_per_s else (middle + 1, high)
        return low


@dataclass(frozen=True, slots=True)
class FlowPerformance:
    """`throughput_per_s` is that of all sources together, `saturation_per_s` the load at which a component saturates.

    `utilisation` is the load of each component ÷ its capacity. Above 1 the component holds its senders back.
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
    """Operators from the sources to the sinks. `shares` is the share of the load that arrives at each source."""

    operators: tuple[Operator, ...]
    shares: Mapping[str, float]

    def offered_rates(self, rate_per_s: float) -> dict[str, float]:
        """Return the rate that would reach each component if nothing upstream held rows back."""
        selectivity = {operator.name: operator.selectivity for operator in self.operators}
        offered_per_s: dict[str, float] = {}
        for operator in self.operators:
            above = sum(offered_per_s[name] * selectivity[name] for name in operator.inputs)
            offered_per_s[operator.name] = rate_per_s * self.shares.get(operator.name, 0.0) + above
        return offered_per_s

    def predict(self, rate_per_s: float, parallelism: Mapping[str, int] | None = None) -> FlowPerformance:
        """Combine the saturation points of all components, mapped back to the sources."""
        counts = {o.name: (parallelism or {}).get(o.name, o.instances) for o in self.operators}
        limits = self._limits_per_s(counts)
        bottleneck = min(limits, key=lambda name: limits[name], default="")
        saturation = limits.get(bottleneck, math.inf)
        offered_per_s = self.offered_rates(rate_per_s)
        return FlowPerformance(
            rate_per_s=rate_per_s,
            parallelism=counts,
            throughput_per_s=min(rate_per_s, saturation),
            saturation_per_s=saturation,
            bottleneck=bottleneck,
            offered_per_s=offered_per_s,
            utilisation={name: rate_per_s / limit for name, limit in limits.items()},
            unknown=tuple(self.assumptions(counts)),
        )

    def assumptions(self, counts: Mapping[str, int]) -> Iterator[str]:
        """Yield the assumptions of a prediction for these numbers of instances."""
        scaled_operators = [o for o in self.operators if counts.get(o.name, o.instances) != o.instances]
        for operator in scaled_operators:
            if operator.shares is not None and not operator.shares.is_known:
                yield f"the skew of the keys of {operator.name} is unknown, because it has only one instance"
        beyond = [o.name for o in scaled_operators if counts[o.name] > max(o.most, o.instances)]
        if beyond:
            yield (
                f"{', '.join(beyond)} never ran with so many instances: "
                "each additional instance is assumed to add as much as the present ones"
            )

    def sure_per_s(self, confidence: float, parallelism: Mapping[str, int]) -> float:
        """Return the load that every component can process with this confidence."""
        z, counts = NormalDist().inv_cdf(confidence), {o.name: o.instances for o in self.operators} | dict(parallelism)
        limits, errors = self._limits_per_s(counts), {o.name: o.error for o in self.operators}
        sure = (limit * math.exp(-z * errors[name]) for name, limit in limits.items())
        return min(sure, default=math.inf) * (1 + _ROUNDING)

    def _limits_per_s(self, counts: Mapping[str, int]) -> dict[str, float]:
        """The load of all sources at which each component saturates."""
        each = self.offered_rates(1.0)
        return {o.name: o.saturation_per_s(counts[o.name]) / each[o.name] for o in self.operators if each[o.name] > 0}


def flow_model(view: View) -> FlowModel | None:
    """Return the model; None until the rate of every component is known."""
    return view.once("flow model", _flow_model)


def _flow_model(view: View) -> FlowModel | None:
    all_loads, ratios = loads(view), selectivities(view)
    operators = [_operator(view, all_loads[name], ratios[name]) for name in view.topology.names if name in all_loads]
    if not operators or not all(o.rate_per_s > 0 and math.isfinite(o.selectivity) for o in operators):
        return None
    arrivals = {source.name: level(all_loads[source.name].offered_per_s) for source in view.topology.sources}
    total = sum(rate for rate in arrivals.values() if math.isfinite(rate))
    even = 1.0 / max(1, len(arrivals))
    return FlowModel(
        tuple(operators), {name: rate / total if rate >= 0 and total > 0 else even for name, rate in arrivals.items()}
    )


def _operator(view: View, load: Load, selectivity: float) -> Operator:
    component = view.topology[load.component]
    parts = (d.components[load.component] for d in reversed(view.history) if load.component in d.components)
    rates = np.array(
        list(islice((c.instance_rate_per_s for c in parts if c.instance_rate_per_s > 0), _RATE_OBSERVATIONS))
    )
    digests = (d for d in view.history if d.epoch >= 0 and load.component in d.components)
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
        most=max((d.components[load.component].instances for d in digests), default=0),
    )
