"""What really happened in a simulation. Policies are judged by it; sensors cannot see it."""

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
# A throughput objective counts as reached from this share on: noise makes single ticks fall a little short.
REACHED_SHARE = 0.98
# A source that cannot replay is still healthy if it refuses at most this share of the rows. Both are choices, of the
# size of the load's noise in the scenarios of the papers (2 %).
REFUSED_SHARE = 0.01
# The search for the smallest parallelism goes up in steps of parallelism ÷ this number, so that it is exact to 2 %.
SEARCH_STEPS = 50


@dataclass(frozen=True, slots=True)
class TruthSample:
    """One tick or batch that ended at `at_s`.

    `needed` holds the smallest values of the resource knobs that can process the noise-free load; if none can, the
    smallest that do nearly as well as any. `faulty_workers` are slow, on a bad host, or crashed.
    """

    at_s: float
    span_s: float
    arrival_per_s: float
    taken_per_s: float
    pending_rows: float
    healthy: bool
    values: Mapping[Knob, Value]
    needed: Mapping[Knob, int]
    faulty_workers: frozenset[str] = frozenset()


def is_healthy(
    *,
    arrived_rows: float,
    taken_rows: float,
    pending_rows: float,
    span_s: float,
    replayable: bool,
    objective: Objective,
) -> bool:
    """Whether the application kept up with the load.

    At a replayable source at most the rows of one tick or batch may wait, even if the backlog is shrinking. A source
    that cannot replay may refuse 1 %. A throughput objective never requires more than arrives.
    """
    if objective.throughput_per_s is not None:
        return taken_rows >= REACHED_SHARE * min(objective.throughput_per_s * span_s, arrived_rows)
    if replayable:
        return pending_rows <= max(arrived_rows, 1.0)
    return arrived_rows - taken_rows <= REFUSED_SHARE * arrived_rows


def smallest_parallelism(spec: ComponentSpec, load_per_s: float) -> int:
    """The fewest instances that can process this load, with the key shares of a healthy run.

    If one instance of a keyed component gets too much at any parallelism, this is the parallelism that would be enough
    if the load were spread evenly. Above 100 keyed instances the result is exact to 2 %.
    """
    even = min(spec.maximum, max(spec.minimum, ceil(load_per_s / spec.rate_per_s - _ROUNDING)))
    limit = spec.rate_per_s * (1 + _ROUNDING)
    if not spec.keyed or load_per_s * heaviest_key(spec) > limit:
        return even
    candidates = (p for p in _candidates(spec.minimum, spec.maximum) if p >= even)
    return next((p for p in candidates if load_per_s * largest_share(spec, p) <= limit), even)


@lru_cache(maxsize=64)
def _candidates(minimum: int, maximum: int) -> tuple[int, ...]:
    candidates = [minimum]
    while candidates[-1] < maximum:
        candidates.append(min(maximum, candidates[-1] + max(1, candidates[-1] // SEARCH_STEPS)))
    return tuple(candidates)


def loads(components: tuple[ComponentSpec, ...], arrival_per_s: float) -> dict[str, float]:
    """The rows per second each component must process if all arrivals flow through; sources share them equally."""
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
