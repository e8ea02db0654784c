"""More arrives than can be taken: seen from arrival against capacity, before queues fill, and from back-pressure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import PRESSURE, UNKNOWN
from homeostat.core.view import View
from homeostat.core.wording import whole, whole_span
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.models.capacity import PEAK_QUANTILE, PEAKS_OVER, Load, level, loads, nothing_arrives
from homeostat.models.noise import cusum, since_onset, whitened

_HELD_BACK = 0.1
_HELD_BACK_ALWAYS = 0.02
_ROUNDING = 1e-6
_LEVEL_OVER = 30
_TOO_OFTEN = 0.2
_BACKLOG_S = 60.0


@dataclass(frozen=True, slots=True)
class PressureEvidence(Evidence):
    """Why a component is overloaded: the load rose, comes in peaks, left a backlog, or is refused."""

    headline: ClassVar[str] = "{where} is overloaded"
    offered_per_s: float | None = None
    capacity_per_s: float | None = None
    utilisation: float | None = None
    planned_utilisation: float | None = None
    share_beyond_capacity: float | None = None
    behind_s: float | None = None
    share_held_back: float | None = None
    cusum: float | None = None
    noise: float | None = None
    observations_since_onset: float | None = None

    def summary(self) -> str:
        if self.share_held_back is not None:
            return f"it holds back {self.share_held_back:.0%} of the rows sent to it"
        if self.behind_s is not None:
            return f"{whole_span(self.behind_s)} of arrivals wait, and it would take too long to work them off"
        if self.offered_per_s is None or self.capacity_per_s is None:
            return ""
        offered, capacity = whole(self.offered_per_s), whole(self.capacity_per_s)
        if self.share_beyond_capacity is not None:
            often = f"{self.share_beyond_capacity:.0%} of the time"
            return f"peaks of {offered} rows/s arrive {often}, it can process {capacity}"
        return f"{offered} rows/s arrive, it can process {capacity}"


@dataclass(frozen=True, slots=True)
class PressureDetector:
    sensitivity: Sensitivity = Sensitivity()
    longest_s: float = 900.0
    name: str = "pressure"

    def detect(self, view: View) -> Iterator[Symptom]:
        """The most downstream components first: who is held back by one of those is not the cause."""
        behind: set[str] = set()
        for component, load in reversed(loads(view).items()):
            downstream = {c.name for c in view.topology.downstream(component)}
            excess = (self._excess(load) or self._peaks(load) or self._backlog(view, load)) if load.known else None
            held = self._held_back(view, component)
            explained = bool(downstream & behind) or (load.known and _works_off_a_backlog(view))
            if excess is not None:
                yield excess
            elif held >= _HELD_BACK and not explained:
                evidence = PressureEvidence(share_held_back=held, capacity_per_s=load.capacity_per_s)
                yield Symptom(PRESSURE, component, min(1.0, held), evidence)
            elif not load.known and not nothing_arrives(view):
                missing = "arrival" if math.isfinite(load.capacity_per_s) else "rows or useful time"
                yield Symptom(UNKNOWN, component, evidence=MissingMetric(self.name, missing))
            if excess is not None or held >= _HELD_BACK or downstream & behind:
                behind.add(component)

    def _excess(self, load: Load) -> Symptom | None:
        """The load has risen above what was planned for, and more than its noise explains."""
        logs, sure = load.log_utilisation, self.sensitivity
        if len(logs) < sure.least:
            return None
        target, noise = load.target, load.noise
        # Half way between what was planned for and what cannot be taken: either side is told from the other soonest.
        line = 0.5 * math.log(target)
        excess = logs - line
        sums = cusum(whitened(excess, noise, sure.floor), sure.slack)
        count = since_onset(logs, sums, noise, sure.least)
        if sums[-1] < sure.alarm or count < sure.least:
            return None
        level = float(logs[-min(count, _LEVEL_OVER) :].mean())
        if min(level, float(logs[-sure.least :].mean())) <= line + _ROUNDING:
            return None
        utilisation = math.exp(level)
        return Symptom(
            PRESSURE,
            load.component,
            max(0.0, 1.0 - 1.0 / utilisation),
            PressureEvidence(
                offered_per_s=utilisation * load.capacity_per_s,
                capacity_per_s=load.capacity_per_s,
                utilisation=utilisation,
                planned_utilisation=target,
                cusum=float(sums[-1]),
                noise=noise.sigma,
                observations_since_onset=float(count),
            ),
        )

    def _peaks(self, load: Load) -> Symptom | None:
        """On the whole the load would fit, but it comes in peaks that do not, too often to be borne.

        Peaks go on: a load that fits lately has come down, however often it was too much before.
        """
        logs = load.log_utilisation[-PEAKS_OVER:]
        beyond = logs > 0.0
        often = min(float(np.mean(beyond)), float(np.mean(beyond[-len(logs) // 3 :]))) if len(logs) else 0.0
        if len(logs) < PEAKS_OVER // 3 or often < _TOO_OFTEN:
            return None
        peak = math.exp(float(np.quantile(logs, PEAK_QUANTILE)))
        evidence = PressureEvidence(
            offered_per_s=peak * load.capacity_per_s,
            capacity_per_s=load.capacity_per_s,
            share_beyond_capacity=float(np.mean(beyond)),
            observations_since_onset=float(len(logs)),
        )
        return Symptom(PRESSURE, load.component, 1.0 - 1.0 / max(peak, 1.0), evidence)

    def _backlog(self, view: View, load: Load) -> Symptom | None:
        """The load would fit, but what waits at the sources since some mishap would take too long to work off."""
        pending, arrival = view.flow("pending_rows", last=LEAST_OBSERVATIONS), level(view.flow("arrival_per_s"))
        room = load.capacity_per_s / level(load.offered_per_s)
        if len(pending) < LEAST_OBSERVATIONS or not (
            np.isfinite(pending).all() and arrival > 0 and 0 < room < math.inf
        ):
            return None
        waiting_s = float(pending.min()) / arrival
        if waiting_s < _BACKLOG_S or waiting_s <= (room - 1.0) * self.longest_s:
            return None
        wanted = 1.0 + waiting_s / self.longest_s
        evidence = PressureEvidence(
            offered_per_s=wanted * load.capacity_per_s / room, capacity_per_s=load.capacity_per_s, behind_s=waiting_s
        )
        return Symptom(PRESSURE, load.component, 1.0 - 1.0 / max(1.0, wanted / room), evidence)

    def _held_back(self, view: View, component: str) -> float:
        """Share of the load that was refused all through the last observations; NaN where nothing tells."""
        shares = view.column(component, "pressured", last=max(LEAST_OBSERVATIONS, self.sensitivity.least))
        finite = shares[np.isfinite(shares)]
        if len(finite) < self.sensitivity.least:
            return math.nan
        return float(finite.mean()) if float(finite.min()) > _HELD_BACK_ALWAYS else 0.0


def _works_off_a_backlog(view: View) -> bool:
    """Sources that catch up offer all they can: being held back then is no trouble as long as less and less waits."""
    pending = view.flow("pending_rows", last=4)
    return len(pending) > 1 and bool(np.isfinite(pending).all()) and bool((np.diff(pending) < 0).all())
