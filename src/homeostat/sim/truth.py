"""What really happened: for judging policies, invisible to sensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from homeostat.core.configuration import Knob, Value
from homeostat.core.objective import Objective
from homeostat.sim.routing import heaviest_key, largest_share
from homeostat.sim.scenario.spec import ComponentSpec

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class TruthSample:
    """One tick or batch that ended at `at_s`.

    `needed` holds the smallest values of the resource knobs that would take the noise-free load.
    """

    at_s: float
    span_s: float
    arrival_per_s: float
    taken_per_s: float
    pending_rows: float
    healthy: bool
    values: Mapping[Knob, Value]
    needed: Mapping[Knob, int]


def is_healthy(
    *,
    arrived_rows: float,
    taken_rows: float,
    pending_rows: float,
    span_s: float,
    replayable: bool,
    objective: Objective,
) -> bool:
    """Whether the load was taken.

    What waits at a replayable source may be at most what arrives in one tick or batch, however fast it
    shrinks. A source that cannot replay may refuse 1 %. A throughput objective asks for no more than arrives.
    """
    if objective.throughput_per_s is not None:
        return taken_rows >= 0.98 * min(objective.throughput_per_s * span_s, arrived_rows)
    if replayable:
        return pending_rows <= max(arrived_rows, 1.0)
    return arrived_rows - taken_rows <= 0.01 * arrived_rows


def smallest_parallelism(spec: ComponentSpec, load_per_s: float) -> int:
    """The fewest instances that take this load, with the key shares of a healthy run.

    Where one instance of a keyed component gets too much at any parallelism, it is the parallelism at which
    the load would fit if it were spread evenly. Above 100 keyed instances it is exact to 2 %.
    """
    even = min(spec.maximum, max(spec.minimum, ceil(load_per_s / spec.rate_per_s - _ROUNDING)))
    limit = spec.rate_per_s * (1 + _ROUNDING)
    if not spec.keyed or load_per_s * heaviest_key(spec) > limit:
        return even
    candidates = (p for p in _candidates(spec.minimum, spec.maximum) if p >= even)
    return next((p for p in candidates if load_per_s * largest_share(spec, p) <= limit), even)


@lru_cache(maxsize=64)
def _candidates(minimum: int, maximum: int) -> tuple[int, ...]:
    found = [minimum]
    while found[-1] < maximum:
        found.append(min(maximum, found[-1] + max(1, found[-1] // 50)))
    return tuple(found)


def loads(components: tuple[ComponentSpec, ...], arrival_per_s: float) -> dict[str, float]:
    """What each component has to take in when all of the arrivals are to flow; sources share them equally."""
    sources = sum(c.kind == "source" for c in components)
    incoming: dict[str, float] = {}
    selectivity = {c.name: c.selectivity for c in components}
    for component in components:
        incoming[component.name] = (
            arrival_per_s / sources
            if component.kind == "source"
            else sum(incoming[name] * selectivity[name] for name in component.inputs)
        )
    return incoming
