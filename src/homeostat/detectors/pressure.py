"""More arrives than can be taken: seen from arrival against capacity, before queues fill, and from back-pressure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from homeostat.core.findings import PRESSURE, UNKNOWN, Symptom
from homeostat.core.view import View
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.models.capacity import Load, arrival_noise, loads, target_utilisation
from homeostat.models.noise import cusum, onset, whitened

_HELD_BACK = 0.1
_HELD_BACK_ALWAYS = 0.02


@dataclass(frozen=True, slots=True)
class PressureDetector:
    sensitivity: Sensitivity = Sensitivity()
    name: str = "pressure"

    def detect(self, view: View) -> Iterator[Symptom]:
        for component, load in loads(view).items():
            held = self._held_back(view, component)
            if not load.known and not math.isfinite(held):
                missing = "arrival" if math.isfinite(load.capacity_per_s) else "rows or useful time"
                yield Symptom(UNKNOWN, component, evidence={"detector": self.name, "missing": missing})
                continue
            excess = self._excess(view, load) if load.known else None
            if excess is not None:
                yield excess
            elif held >= _HELD_BACK:
                yield Symptom(PRESSURE, component, held, {"held back": held, "capacity": load.capacity_per_s})

    def _excess(self, view: View, load: Load) -> Symptom | None:
        """The load has risen above what was planned for, and more than its noise explains."""
        logs, sure = load.log_utilisation, self.sensitivity
        if len(logs) < sure.least:
            return None
        target = target_utilisation(view)
        excess = logs - math.log(target)
        noise = arrival_noise(view)
        sums = cusum(whitened(excess, noise, sure.floor), sure.slack)
        began = min(onset(sums), len(logs) - sure.least)
        level = float(np.mean(logs[max(began, len(logs) - 30) :]))
        if sums[-1] < sure.alarm or level <= math.log(target) + 1e-9 or float(np.mean(logs[-3:])) <= math.log(target):
            return None
        utilisation = math.exp(level)
        return Symptom(
            PRESSURE,
            load.component,
            max(0.0, 1.0 - 1.0 / utilisation),
            {
                "offered": utilisation * load.capacity_per_s,
                "capacity": load.capacity_per_s,
                "utilisation": utilisation,
                "planned for": target,
                "cusum": float(sums[-1]),
                "noise": noise.sigma,
                "observations since onset": float(len(logs) - began),
            },
        )

    def _held_back(self, view: View, component: str) -> float:
        """Share of the load that was refused all through the last observations; NaN where nothing tells."""
        shares = view.column(component, "pressured", last=max(3, self.sensitivity.least))
        finite = shares[np.isfinite(shares)]
        if len(finite) < self.sensitivity.least:
            return math.nan
        return float(finite.mean()) if float(finite.min()) > _HELD_BACK_ALWAYS else 0.0
