"""The resolvers of the Dhalion paper. Each proposes new values against the diagnoses of its cause."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from homeostat.core.actions import ADJUST_SKEW, REPLACE, SCALE_DOWN, SCALE_SOURCE, SCALE_UP
from homeostat.core.alert_text import alert_about
from homeostat.core.causes import DATA_SKEW, OVER_PROVISIONED, SLO_UNMET, SLOW_INSTANCE, UNDER_PROVISIONED
from homeostat.core.configuration import Patch
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.policy_definition import Resolver
from homeostat.core.view import View
from homeostat.detectors.paper_thresholds import BackPressure, ThroughputMissed
from homeostat.diagnosers.paper_table import TableReading

# Heron clamps back-pressure to 999 ms per second, so that the share that is still processed stays above zero.
_MOST_PRESSURE = 0.999
_HERON_MOST_MS, _MS_PER_S = 999.0, 1000.0
# Keeps floating-point errors from adding an instance.
_ROUNDING = 1e-9
# The least predicted gain (ln), so that every action can be judged. Smaller gains are within the noise. Choice.
_LEAST_GAIN = 0.05
# How many times the present instances a scale-up may add at most. A lower fence needs more steps for a large rise, a
# higher one trusts a pressure near its limit, where the formula explodes. From Heron.
FENCE = 4.0
# Which share of the instances a scale-down keeps. A larger share needs more steps, a smaller one risks to shrink too
# far. Choice: the paper says "a configured factor".
SHRINK_FACTOR = 0.8
# By how much an adjustment of skew multiplies the instances per key. Choice: the paper does not say.
_SPREAD_FACTOR = 2


def scale_up_target(pressure: float, parallelism: int, fence: float = FENCE) -> int:
    """⌈p·(1 + u)⌉ with u = min(fence, B ÷ (1 − B)): enough instances for the share of the load that is held back.

    >>> scale_up_target(0.2, 4)
    5
    """
    pressure = min(max(pressure, 0.0), _MOST_PRESSURE)
    return math.ceil(parallelism * (1.0 + min(fence, pressure / (1.0 - pressure))) - _ROUNDING)


def heron_stage_pressure(per_instance_ms: Sequence[float]) -> float:
    """Heron's back-pressure of a stage: suspended ms per second, summed over its instances, at most 999, as a share.

    >>> scale_up_target(heron_stage_pressure([750, 0]), 2), scale_up_target(heron_stage_pressure([400, 100, 0]), 3)
    (8, 6)
    """
    return min(math.fsum(per_instance_ms), _HERON_MOST_MS) / _MS_PER_S


def scale_down_target(parallelism: int, factor: float, minimum: int = 1) -> int:
    """⌊p·factor⌋, at least one less, never below the minimum."""
    return max(minimum, min(parallelism - 1, math.floor(parallelism * factor + _ROUNDING)))


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """More instances for an under-provisioned component. `stage`: its pressure is that of its worst instance, as in the
    paper, or the clamped sum over its instances, as in Heron. `fence`: see `FENCE`."""

    fence: float = FENCE
    stage: Literal["worst", "sum"] = "worst"
    name: str = "scale-up"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in _of(diagnoses, UNDER_PROVISIONED):
            reading, measured = diagnosis.evidence.find(TableReading), diagnosis.evidence.find(BackPressure)
            if reading is None or reading.pressure is None:
                continue
            pressure = reading.pressure
            if self.stage == "sum" and measured is not None:
                pressure = heron_stage_pressure([_MS_PER_S * measured.sum_over_instances])
            now = int(view.parallelism(diagnosis.component))
            target = scale_up_target(pressure, now, self.fence)
            yield _resize(SCALE_UP, view, diagnosis, now, target, benefit=pressure)


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """Fewer instances for an over-provisioned component, by a fixed factor."""

    shrink_factor: float = SHRINK_FACTOR
    name: str = "scale-down"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in _of(diagnoses, OVER_PROVISIONED):
            now = int(view.parallelism(diagnosis.component))
            minimum = math.ceil(view.spec(view.topology[diagnosis.component].scaled_by).minimum)
            target = scale_down_target(now, self.shrink_factor, minimum)
            if target < now:
                yield _resize(SCALE_DOWN, view, diagnosis, now, target, benefit=1.0 - target / now)


@dataclass(frozen=True, slots=True)
class SourceScaleUp:
    """More source instances if the application is healthy but misses its throughput objective, by the factor that it
    misses it by. An alert if the sources are at their bound."""

    name: str = "source-scale-up"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in _of(diagnoses, SLO_UNMET):
            knob = view.topology[diagnosis.component].scaled_by
            now, most = int(view.parallelism(diagnosis.component)), view.spec(knob).maximum
            missed_throughput = diagnosis.evidence.find(ThroughputMissed)
            if missed_throughput is None:
                continue
            observed = missed_throughput.observed_per_s
            if now >= most or observed <= 0:
                why = "no rows are processed at all" if observed <= 0 else f"{knob} is at its bound of {most:g}"
                yield alert_about(diagnosis, why)
                continue
            reachable = min(missed_throughput.objective_per_s, missed_throughput.arrival_per_s)
            ratio = reachable / observed
            target = math.ceil(min(now * ratio, float(most)) - _ROUNDING)
            yield _resize(SCALE_SOURCE, view, diagnosis, now, target, benefit=1.0 - 1.0 / ratio)


@dataclass(frozen=True, slots=True)
class ReplaceSlow:
    """Replaces the workers that run the slow instances."""

    name: str = "replace-slow"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in _of(diagnoses, SLOW_INSTANCE):
            workers = diagnosis.workers or view.workers_of(diagnosis.component, diagnosis.instances)
            if workers:
                gain = _gain_of_replacing(view, diagnosis)
                text = _more_rows(diagnosis.component, gain)
                yield Proposal(
                    REPLACE,
                    (diagnosis,),
                    Patch(retire=frozenset(workers)),
                    diagnosis.component,
                    Prediction(gain, (diagnosis.component,), text),
                    benefit=1.0 - math.exp(-gain),
                )


@dataclass(frozen=True, slots=True)
class AdjustSkew:
    """Spreads every key of a skewed component over twice as many instances, at most over all of them.

    The paper adjusts the hash function, Heron only logs. If the engine cannot spread keys, or they are spread over all
    instances already, it alerts a person.
    """

    name: str = "adjust-skew"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in _of(diagnoses, DATA_SKEW):
            knob = view.topology[diagnosis.component].spread
            if knob is None or knob not in view.capabilities.knobs:
                yield alert_about(diagnosis, f"this engine has no {knob}" if knob else "its keys cannot be spread")
                continue
            rows = view.window.tasks(diagnosis.component, "rows")
            now, instances = view.spread(diagnosis.component), rows.shape[1]
            target = min(_SPREAD_FACTOR * now, instances)
            if target <= now:
                yield alert_about(diagnosis, f"{knob} is {now} already, with {instances} instances")
                continue
            gain = _gain_of_spreading(np.nansum(rows, axis=0).tolist())
            yield Proposal(
                ADJUST_SKEW,
                (diagnosis,),
                Patch({knob: target}),
                diagnosis.component,
                Prediction(gain, (diagnosis.component,), _more_rows(diagnosis.component, gain)),
                benefit=1.0 - math.exp(-gain),
            )


@dataclass(frozen=True, slots=True)
class InDiagnosisOrder:
    """Asks every resolver about one diagnosis after the other, so that proposals come in the order of the diagnoses."""

    resolvers: tuple[Resolver, ...]
    name: str = "in-diagnosis-order"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in diagnoses:
            for resolver in self.resolvers:
                yield from resolver.resolve(view, (diagnosis,))


def _of(diagnoses: Sequence[Diagnosis], cause: str) -> Iterator[Diagnosis]:
    return (diagnosis for diagnosis in diagnoses if diagnosis.cause == cause)


def _resize(kind: str, view: View, diagnosis: Diagnosis, now: int, target: int, benefit: float) -> Proposal:
    component = diagnosis.component
    knob = view.topology[component].scaled_by
    sharing = tuple(c.name for c in view.topology if c.scaled_by == knob and c.name != component)
    gain = math.log(target / now)
    cost = view.capabilities.cost(view.configuration)
    return Proposal(
        kind,
        (diagnosis,),
        Patch({knob: target}),
        component,
        Prediction(gain, (component, *sharing), _more_rows(component, gain)),
        benefit=benefit,
        cost=max(0.0, (target - now) * view.spec(knob).cost / cost) if cost > 0 else 0.0,
    )


def _more_rows(component: str, gain: float) -> str:
    return f"{component} can process {math.expm1(gain):+.0%} rows"


def _gain_of_replacing(view: View, diagnosis: Diagnosis) -> float:
    """ln(typical rate ÷ that of the slowest blamed instance)."""
    rows = np.nansum(view.window.tasks(diagnosis.component, "rows"), axis=0)
    run_s = np.nansum(view.window.tasks(diagnosis.component, "run_s"), axis=0)
    rates = np.divide(rows, run_s, out=np.zeros_like(rows), where=run_s > 0)
    blamed_rates = rates[[i for i in diagnosis.instances if i < len(rates)]]
    slowest = float(blamed_rates.min(initial=math.inf))
    typical = float(np.median(rates)) if rates.size else 0.0
    return max(_LEAST_GAIN, math.log(typical / slowest)) if 0 < slowest < typical else _LEAST_GAIN


def _gain_of_spreading(rows: Sequence[float]) -> float:
    """As if half of what the busiest instance has above the mean went to other instances."""
    most, mean = max(rows), sum(rows) / len(rows)
    return max(_LEAST_GAIN, math.log(most / ((most + mean) / 2.0))) if most > 0 else _LEAST_GAIN
