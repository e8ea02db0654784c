"""The paper's resolvers. Each turns the diagnoses of its cause into patches of desired values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from homeostat.core.actions import ADJUST_SKEW, REPLACE, SCALE_DOWN, SCALE_SOURCE, SCALE_UP
from homeostat.core.alerting import alert_about
from homeostat.core.causes import DATA_SKEW, OVER_PROVISIONED, SLO_UNMET, SLOW_INSTANCE, UNDER_PROVISIONED
from homeostat.core.configuration import Patch
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.policy import Resolver
from homeostat.core.view import View
from homeostat.detectors.paper_thresholds import BackPressure, ThroughputMissed
from homeostat.diagnosers.paper_table import TableReading

_MOST_PRESSURE = 0.999
_ROUNDING = 1e-9
_LEAST_GAIN = 0.05


def scale_up_target(pressure: float, parallelism: int, fence: float = 4.0) -> int:
    """⌈p·(1 + u)⌉ with u = min(fence, B ÷ (1 − B)): what the held-back share of the load needs on top.

    >>> scale_up_target(0.2, 4)
    5
    """
    held = min(max(pressure, 0.0), _MOST_PRESSURE)
    return math.ceil(parallelism * (1.0 + min(fence, held / (1.0 - held))) - _ROUNDING)


def heron_stage_pressure(per_instance_ms: Sequence[float]) -> float:
    """Heron's B of a stage: suspended ms per second, summed over its instances and clamped to 999, as a share.

    >>> scale_up_target(heron_stage_pressure([750, 0]), 2), scale_up_target(heron_stage_pressure([400, 100, 0]), 3)
    (8, 6)
    """
    return min(math.fsum(per_instance_ms), 999.0) / 1000.0


def scale_down_target(parallelism: int, factor: float, minimum: int = 1) -> int:
    """⌊p·factor⌋, at least one less, never below the minimum."""
    return max(minimum, min(parallelism - 1, math.floor(parallelism * factor + _ROUNDING)))


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """More instances for an under-provisioned component. `stage` says how its pressure is read from its instances:
    the paper's worst one, or Heron's clamped sum."""

    fence: float = 4.0
    stage: Literal["worst", "sum"] = "worst"
    name: str = "scale-up"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in _of(diagnoses, UNDER_PROVISIONED):
            reading, measured = diagnosis.evidence.find(TableReading), diagnosis.evidence.find(BackPressure)
            if reading is None or reading.pressure is None:
                continue
            pressure = reading.pressure
            if self.stage == "sum" and measured is not None:
                pressure = heron_stage_pressure([1000.0 * measured.sum_over_instances])
            now = int(view.parallelism(diagnosis.component))
            target = scale_up_target(pressure, now, self.fence)
            yield _resize(SCALE_UP, view, diagnosis, now, target, benefit=pressure)


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """Fewer instances for an over-provisioned component, by a fixed factor."""

    shrink_factor: float = 0.8
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
    """Healthy, but below the throughput objective: sources grow by objective ÷ observed; at their bound, an alert."""

    name: str = "source-scale-up"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in _of(diagnoses, SLO_UNMET):
            knob = view.topology[diagnosis.component].scaled_by
            now, most = int(view.parallelism(diagnosis.component)), view.spec(knob).maximum
            missed = diagnosis.evidence.find(ThroughputMissed)
            if missed is None:
                continue
            observed = missed.observed_per_s
            if now >= most or observed <= 0:
                why = "nothing is taken at all" if observed <= 0 else f"{knob} is at its bound of {most:g}"
                yield alert_about(diagnosis, why)
                continue
            reachable = min(missed.objective_per_s, missed.arrival_per_s)
            ratio = reachable / observed
            target = math.ceil(min(now * ratio, float(most)) - _ROUNDING)
            yield _resize(SCALE_SOURCE, view, diagnosis, now, target, benefit=1.0 - 1.0 / ratio)


@dataclass(frozen=True, slots=True)
class ReplaceSlow:
    """Fresh workers for those that run the slow instances."""

    name: str = "replace-slow"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in _of(diagnoses, SLOW_INSTANCE):
            workers = diagnosis.workers or view.workers_of(diagnosis.component, diagnosis.instances)
            if workers:
                gain = _gain_of_replacing(view, diagnosis)
                text = f"{diagnosis.component} takes {math.expm1(gain):+.0%}"
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
    """Spread every key of a skewed component over twice as many instances, at most over all of them.

    The paper adjusts the hash function, Heron only logs. Without such a knob, or with nothing left to spread: an alert.
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
            target = min(2 * now, instances)
            if target <= now:
                yield alert_about(diagnosis, f"{knob} is {now} already, with {instances} instances")
                continue
            gain = _gain_of_spreading(np.nansum(rows, axis=0).tolist())
            yield Proposal(
                ADJUST_SKEW,
                (diagnosis,),
                Patch({knob: target}),
                diagnosis.component,
                Prediction(gain, (diagnosis.component,), f"{diagnosis.component} takes {math.expm1(gain):+.0%}"),
                benefit=1.0 - math.exp(-gain),
            )


@dataclass(frozen=True, slots=True)
class InDiagnosisOrder:
    """Asks every resolver about one diagnosis after the other, so that the order of diagnoses is that of proposals."""

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
    paid = view.capabilities.cost(view.configuration)
    return Proposal(
        kind,
        (diagnosis,),
        Patch({knob: target}),
        component,
        Prediction(gain, (component, *sharing), f"{component} can take {math.expm1(gain):+.0%}"),
        benefit=benefit,
        cost=max(0.0, (target - now) * view.spec(knob).cost / paid) if paid > 0 else 0.0,
    )


def _gain_of_replacing(view: View, diagnosis: Diagnosis) -> float:
    """ln(typical rate ÷ that of the slowest blamed instance)."""
    rows = np.nansum(view.window.tasks(diagnosis.component, "rows"), axis=0)
    run_s = np.nansum(view.window.tasks(diagnosis.component, "run_s"), axis=0)
    rates = np.divide(rows, run_s, out=np.zeros_like(rows), where=run_s > 0)
    blamed = rates[[i for i in diagnosis.instances if i < len(rates)]]
    slowest = float(blamed.min(initial=math.inf))
    typical = float(np.median(rates)) if rates.size else 0.0
    return max(_LEAST_GAIN, math.log(typical / slowest)) if 0 < slowest < typical else _LEAST_GAIN


def _gain_of_spreading(rows: Sequence[float]) -> float:
    """Half of what the most loaded instance has above the mean goes elsewhere."""
    most, mean = max(rows), sum(rows) / len(rows)
    return max(_LEAST_GAIN, math.log(most / ((most + mean) / 2.0))) if most > 0 else _LEAST_GAIN
