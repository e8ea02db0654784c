"""Detects that fewer instances would be enough.

It needs complete data, because a missing metric could hide the one instance that is busy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.findings import Symptom
from homeostat.core.observation import Array
from homeostat.core.symptoms import IDLE, UNKNOWN
from homeostat.core.view import View
from homeostat.core.wording import whole
from homeostat.detectors.sensitivity import LEVEL_OVER, Sensitivity
from homeostat.models.batch_model import RECENT
from homeostat.models.capacity import PEAK_QUANTILE, PEAKS_OVER, Load, loads
from homeostat.models.noise import Noise, cusum, since_onset, whiten


@dataclass(frozen=True, slots=True)
class IdleEvidence(Evidence):
    headline: ClassVar[str] = "{where} has more instances than it needs"
    utilisation: float
    one_less_would_do_below: float
    cusum: float
    instances: float
    observations_since_onset: float

    def summary(self) -> str:
        limit = f"one instance fewer would be enough below {self.one_less_would_do_below:.0%}"
        return f"its {whole(self.instances)} instances are {self.utilisation:.0%} busy, and {limit}"


@dataclass(frozen=True, slots=True)
class IdleDetector:
    """Reports a load that one instance fewer could process, with a `margin` and by more than the noise."""

    sensitivity: Sensitivity = Sensitivity()
    # In ln(utilisation), about 5 % of the load: larger pays for idle instances, smaller shrinks and grows in turns. A
    # choice.
    margin: float = 0.05
    name: str = "idle"

    def detect(self, view: View) -> Iterator[Symptom]:
        for component, load in loads(view).items():
            if not (load.is_known and load.complete):
                if len(view.current) >= self.sensitivity.least:
                    yield Symptom(UNKNOWN, component, evidence=MissingMetric(self.name, "complete metrics"))
                continue
            can_come_back = load.growth > 1.0 and view.spec(view.topology[component].scaled_by).live
            symptom = self._idle(load, soon=can_come_back)
            if symptom is not None:
                yield symptom

    def _idle(self, load: Load, *, soon: bool) -> Symptom | None:
        """With `soon`, the present level decides: the instances come back without a pause when they are needed, and a
        guard waits until they have been too many all the time."""
        logs, sure = load.log_utilisation, self.sensitivity
        if load.instances < 2 or len(logs) < sure.least:
            return None
        target, noise = load.target, load.noise
        one_less = math.log(target * (load.instances - 1) / load.instances) - self.margin
        sums = cusum(whiten(one_less - logs, noise, sure.floor), sure.shrink_slack)
        count = since_onset(logs, sums, noise, sure.least)
        if soon:
            count = max(count, RECENT) if _is_below(logs, one_less, noise) else 0
        elif sums[-1] < sure.shrink_alarm:
            count = 0
        if count < sure.least:
            return None
        level = float(logs[-min(count, LEVEL_OVER) :].mean())
        peak = float(np.quantile(logs[-min(count, PEAKS_OVER) :], PEAK_QUANTILE))
        if max(level, float(logs[-sure.least :].mean())) >= one_less or peak >= math.log(1 - 1 / load.instances):
            return None
        evidence = IdleEvidence(
            math.exp(level), math.exp(one_less), float(sums[-1]), float(load.instances), float(count)
        )
        return Symptom(IDLE, load.component, 1.0 - math.exp(level) / target, evidence)


def _is_below(logs: Array, line: float, noise: Noise) -> bool:
    """Whether the mean of the latest values is below the line by more than its own noise."""
    recent = logs[-RECENT:]
    error = noise.sigma * min(1.0, math.sqrt((1.0 + noise.phi) / ((1.0 - noise.phi) * len(recent))))
    return len(recent) == RECENT and float(recent.mean()) + error < line
