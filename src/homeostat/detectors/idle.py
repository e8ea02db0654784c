"""Less would do. Claimed only from complete data: a missing metric could hide the one instance that is busy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from homeostat.core.findings import IDLE, UNKNOWN, Symptom
from homeostat.core.view import View
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.models.capacity import Load, arrival_noise, loads, target_utilisation
from homeostat.models.noise import cusum, whitened


@dataclass(frozen=True, slots=True)
class IdleDetector:
    """The load has stayed below what one instance less could take, by more than its noise and a `margin`."""

    sensitivity: Sensitivity = Sensitivity()
    margin: float = 0.05
    name: str = "idle"

    def detect(self, view: View) -> Iterator[Symptom]:
        for component, load in loads(view).items():
            if not (load.known and load.complete):
                if len(view.current) >= self.sensitivity.least:
                    yield Symptom(UNKNOWN, component, evidence={"detector": self.name, "missing": "complete metrics"})
                continue
            symptom = self._idle(view, load)
            if symptom is not None:
                yield symptom

    def _idle(self, view: View, load: Load) -> Symptom | None:
        logs, sure = load.log_utilisation, self.sensitivity
        if load.instances < 2 or len(logs) < sure.least:
            return None
        target = target_utilisation(view)
        one_less = math.log(target * (load.instances - 1) / load.instances) - self.margin
        sums = cusum(whitened(one_less - logs, arrival_noise(view), sure.floor), sure.slack)
        level = float(np.mean(logs[-12:]))
        if sums[-1] < sure.shrink_alarm or level >= one_less:
            return None
        evidence = {"utilisation": math.exp(level), "one less would do below": math.exp(one_less)}
        evidence |= {"cusum": float(sums[-1]), "instances": float(load.instances)}
        return Symptom(IDLE, load.component, 1.0 - math.exp(level) / target, evidence)
