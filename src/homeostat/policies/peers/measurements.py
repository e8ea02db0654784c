"""The measurements that the peers' rules need: load and speed of everything that one scaling knob drives.

On a dataflow a knob drives one component and its instances. In micro-batches all stages share the executors, so the
knob drives the whole application, measured in rows of its sources and named after its longest stage.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from homeostat.core.configuration import Knob
from homeostat.core.digest import Digest
from homeostat.core.observation import NAN
from homeostat.core.view import View
from homeostat.detectors.window_means import longest_stage

# Pressure is limited to this, as in Heron (999 ms per second): 1 would ask for infinite capacity.
_MOST_PRESSURE = 0.999
# Observations among which the longest stage is chosen: more make the choice steadier. Ours.
_RECENT_OBSERVATIONS = 12


@dataclass(frozen=True, slots=True)
class Unit:
    """What one knob drives. `now` is its value, `touched` has the components that share it."""

    component: str
    knob: Knob
    now: int
    touched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """A unit over some digests of one configuration; NaN where a value is unknown.

    `rate_per_s` is the true rate of one instance or executor: rows ÷ useful time. `capacity_per_s` is the rate that all
    of them can process with the present shares, in which the busiest one sets the pace. `busy` is the useful share of
    their time. `demand` is that of the busiest one if nothing were held back; it may exceed 1.
    """

    instances: float
    rate_per_s: float
    capacity_per_s: float
    busy: float
    demand: float
    rows_out_per_row: float
    pending_rows: float


UNMEASURED = Load(0.0, *(NAN,) * 6)


def units(view: View) -> tuple[Unit, ...]:
    """Return everything that can be scaled, from the sources to the sinks, each knob once."""
    sharing: dict[Knob, list[str]] = {}
    for component in view.topology:
        sharing.setdefault(component.scaled_by, []).append(component.name)
    longest = longest_stage(view.current[-_RECENT_OBSERVATIONS:]) if view.micro_batch else ""
    return tuple(
        Unit(longest if longest in names else names[0], knob, int(view.parallelism(names[0])), tuple(names))
        for knob, names in sharing.items()
        if knob in view.capabilities.knobs
    )


def recent(view: View, seconds: float) -> tuple[Digest, ...]:
    """Return the digests of the last `seconds` in the present configuration; none until it has run that long."""
    current = view.current
    if not current or view.now_s - (current[0].at_s - current[0].span_s) < seconds - 1e-6:
        return ()
    return tuple(d for d in current if d.at_s > view.now_s - seconds)


def measure(view: View, unit: Unit, digests: Sequence[Digest]) -> Load:
    if view.micro_batch:
        return _measure_batches(view, unit, digests)
    return _measure_component(unit.component, digests)


def arrivals(view: View, digests: Sequence[Digest]) -> dict[str, float]:
    """Return the mean rows per second that arrived at each source."""
    return {
        source.name: _mean(d.arrivals_per_s.get(source.name, NAN) for d in digests) for source in view.topology.sources
    }


def demands(view: View, loads: Mapping[str, Load], at_sources: Mapping[str, float]) -> dict[str, float]:
    """Return the rate that would reach each component if nothing held rows back. `loads` are by component.

    Output ratios are propagated unrounded, as in DS2.
    """
    if view.micro_batch:
        return dict.fromkeys(loads, sum(at_sources.values()))
    incoming: dict[str, float] = {}
    for component in view.topology:
        incoming[component.name] = at_sources.get(component.name, 0.0) + sum(
            incoming[name] * loads[name].rows_out_per_row for name in component.inputs
        )
    return incoming


def slots_per_worker(view: View) -> float:
    latest = view.window.latest
    return float(latest.workers.slots.mean()) if latest is not None and latest.workers.slots.size else 1.0


def _measure_component(name: str, digests: Sequence[Digest]) -> Load:
    samples = [
        (d.span_s, d.components[name]) for d in digests if name in d.components and d.components[name].known_share > 0
    ]
    seconds = sum(span_s for span_s, _ in samples)
    if seconds <= 0:
        return UNMEASURED
    parts = [c for _, c in samples]
    instances = fmean(c.instances for c in parts)
    rows = sum(c.rows / c.known_share for c in parts)
    run_s = sum(c.run_s / c.known_share for c in parts)
    busiest_s = sum(c.busiest_s for c in parts)
    pressure = min(_mean(c.pressured for c in parts), _MOST_PRESSURE)
    rows_out = [(c.rows, c.rows_out) for c in parts if math.isfinite(c.rows_out)]
    into = sum(pair[0] for pair in rows_out)
    return Load(
        instances=instances,
        rate_per_s=rows / run_s if run_s > 0 else NAN,
        capacity_per_s=sum(c.arrived_rows / c.known_share for c in parts) / busiest_s if busiest_s > 0 else NAN,
        busy=run_s / (instances * seconds),
        demand=busiest_s / seconds / (1.0 - pressure if math.isfinite(pressure) else 1.0),
        rows_out_per_row=sum(pair[1] for pair in rows_out) / into if into > 0 else NAN,
        pending_rows=parts[-1].pending_rows,
    )


def _measure_batches(view: View, unit: Unit, digests: Sequence[Digest]) -> Load:
    usable = [d for d in digests if math.isfinite(d.rows) and _has_measurements(d, unit)]
    seconds = sum(d.span_s for d in usable)
    if seconds <= 0:
        return UNMEASURED
    slots = slots_per_worker(view)
    executors = fmean(d.workers for d in usable) or 1.0
    rows = sum(d.rows for d in usable)
    work_s = sum(c.run_s / c.known_share for d in usable for name, c in d.components.items() if name in unit.touched)
    # A stage is as long as its busiest slot works, and stages follow each other.
    busiest_s = sum(c.span_s for d in usable for name, c in d.components.items() if name in unit.touched)
    ratios = [d.seconds / d.trigger_s for d in usable if math.isfinite(d.seconds) and d.trigger_s > 0]
    return Load(
        instances=executors,
        rate_per_s=rows / work_s * slots if work_s > 0 else NAN,
        capacity_per_s=rows / busiest_s if busiest_s > 0 else NAN,
        busy=work_s / (executors * slots * seconds),
        demand=_mean(ratios),
        rows_out_per_row=1.0,
        pending_rows=usable[-1].pending_rows,
    )


def _has_measurements(digest: Digest, unit: Unit) -> bool:
    mine = [c for name, c in digest.components.items() if name in unit.touched]
    return (bool(mine) or digest.rows == 0) and all(c.known_share > 0 for c in mine)


def _mean(values: Iterable[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return fmean(finite) if finite else NAN


def observed_rates(view: View, unit: Unit, digests: Sequence[Digest], lag_s: float) -> tuple[float, ...]:
    """Return the rates at which a unit that reads from sources worked while more than `lag_s` of arrivals waited.

    It then does all it can. What held it back on a dataflow is taken out. A unit behind queues has none.
    """
    sources = {source.name for source in view.topology.sources}
    if not sources & set(unit.touched):
        return ()
    rates = []
    for digest in digests:
        waits = digest.span_s > 0 and digest.pending_rows > lag_s * digest.arrival_per_s > 0
        if not waits or not math.isfinite(digest.rows):
            continue
        part = digest.components.get(unit.component)
        pressed = part.pressured if part is not None and math.isfinite(part.pressured) else 0.0
        rates.append(digest.rows / digest.span_s / (1.0 - min(pressed, _MOST_PRESSURE)))
    return tuple(rates)
