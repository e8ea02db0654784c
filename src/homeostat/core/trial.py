"""Did an action help? Judged on load-normalised time, never on throughput or lag, which a draining backlog distorts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from homeostat.core.digest import Digest
from homeostat.core.findings import Outcome, Prediction, Verdict
from homeostat.core.observation import NAN, Array
from homeostat.core.stats import median, spread


@dataclass(frozen=True, slots=True)
class Trial:
    """An applied action and what was measured before and after it.

    `disturbed` names anything else that changed meanwhile; `unhealthy` says that a problem stands now; `shrinking`
    that the action was meant to save, not to speed up.
    """

    component: str
    prediction: Prediction
    before: tuple[Digest, ...]
    after: tuple[Digest, ...]
    micro_batch: bool
    elapsed_s: float
    settle_s: float
    shrinking: bool = False
    disturbed: str = ""
    unhealthy: str = ""


class Judge(Protocol):
    def judge(self, trial: Trial) -> Outcome | None:
        """None as long as it is too early to say."""
        ...


@dataclass(frozen=True, slots=True)
class LoadNormalisedJudge:
    """Observed against predicted gain in ln(time at equal load), with a standard error that allows for correlation."""

    least_after: int = 5
    least_before: int = 3
    noise_floor: float = 0.05
    shrink_tolerance: float = 0.2

    def judge(self, trial: Trial) -> Outcome | None:
        if trial.disturbed:
            return Outcome("confounded", predicted_gain=trial.prediction.gain, reason=trial.disturbed)
        before, after = _times(trial, trial.before), _times(trial, trial.after)
        late = trial.elapsed_s >= 3.0 * trial.settle_s
        if len(after) < self.least_after:
            return Outcome("unclear", reason="too few measurements after the action") if late else None
        if len(before) < self.least_before:
            return Outcome("untestable", reason="too few measurements before the action", after=len(after))
        if trial.micro_batch:
            seen, after = len(after), _comparable(before, after)
            if len(after) < self.least_after:
                return self._incomparable(trial) if late or seen >= 2 * self.least_after else None
        measured = self._measure(trial, before, after)
        shifted = _untouched_shift(trial, measured.standard_error)
        if shifted:
            return _with(measured, "confounded", shifted)
        return self._shrunk(trial, measured, late) if trial.shrinking else self._improved(measured, late)

    def _incomparable(self, trial: Trial) -> Outcome:
        reason = "rows per batch left the range measured before"
        return Outcome("confounded", predicted_gain=trial.prediction.gain, reason=reason)

    def _measure(self, trial: Trial, before: Array, after: Array) -> Outcome:
        fit = _fit(before) if trial.micro_batch else (0.0, median(before[:, 1] / before[:, 0]))
        residual_before = np.log(before[:, 1]) - np.log(fit[0] + fit[1] * before[:, 0])
        gains = np.log(fit[0] + fit[1] * after[:, 0]) - np.log(after[:, 1])
        scale = max(self.noise_floor, spread(residual_before))
        error = 1.25 * scale * math.sqrt(1.0 / _effective(residual_before) + 1.0 / _effective(gains))
        return Outcome(
            "unclear",
            observed_gain=median(gains),
            predicted_gain=trial.prediction.gain,
            standard_error=error,
            before=len(before),
            after=len(after),
        )

    def _improved(self, measured: Outcome, late: bool) -> Outcome | None:
        gain, error, expected = measured.observed_gain, measured.standard_error, measured.predicted_gain
        if gain < -2 * error:
            return _with(measured, "harmful", "slower than before at equal load")
        if expected < 2 * error:
            return _with(measured, "untestable", "the predicted gain is within the noise")
        if gain > 2 * error and gain >= expected / 2:
            return _with(measured, "helped", "")
        if gain + 2 * error < expected / 2:
            return _with(measured, "failed", "less than half of the predicted gain")
        return _with(measured, "unclear", "still within the noise after a long wait") if late else None

    def _shrunk(self, trial: Trial, measured: Outcome, late: bool) -> Outcome | None:
        if trial.elapsed_s < trial.settle_s:
            return None
        if trial.unhealthy:
            return _with(measured, "harmful", f"after shrinking: {trial.unhealthy}")
        off = abs(measured.observed_gain - measured.predicted_gain)
        if off <= self.shrink_tolerance + 2 * measured.standard_error:
            return _with(measured, "shrunk", "the objective held")
        return _with(measured, "unclear", "the objective held, but time did not change as predicted") if late else None


def _times(trial: Trial, digests: tuple[Digest, ...]) -> Array:
    """Lines of (rows, seconds). A dataflow's batch time is that of one row at its bottleneck."""
    if trial.micro_batch:
        table = np.array([(d.rows, d.seconds) for d in digests], dtype=np.float64).reshape(-1, 2)
    else:
        ratio = _rows_per_source_row((*trial.before, *trial.after))
        table = np.array([(1.0, _bottleneck_s(d, ratio)) for d in digests], dtype=np.float64).reshape(-1, 2)
    return table[np.isfinite(table).all(axis=1) & (table > 0).all(axis=1)]


def _rows_per_source_row(digests: tuple[Digest, ...]) -> dict[str, float]:
    ratios: dict[str, list[float]] = {}
    for d in digests:
        for name, component in d.components.items():
            if d.rows > 0 and component.rows > 0:
                ratios.setdefault(name, []).append(component.rows / d.rows)
    return {name: median(np.array(values)) for name, values in ratios.items()}


def _bottleneck_s(d: Digest, ratio: Mapping[str, float]) -> float:
    times = [
        ratio[name] / component.capacity_per_s
        for name, component in d.components.items()
        if name in ratio and component.capacity_per_s > 0
    ]
    return max(times, default=NAN)


def _fit(table: Array) -> tuple[float, float]:
    """Seconds = a + b·rows, both ≥ 0. Where rows hardly vary the data cannot tell a from b: all is put into b."""
    rows, seconds = table[:, 0], table[:, 1]
    if np.ptp(rows) > 0.2 * median(rows):
        slope, intercept = np.polyfit(rows, seconds, 1)
        if slope > 0 and intercept >= 0:
            return float(intercept), float(slope)
    return 0.0, median(seconds / rows)


def _comparable(before: Array, after: Array) -> Array:
    """Those batches whose number of rows the time measured before can speak for; a backlog that drains has others."""
    low, high = 0.5 * float(before[:, 0].min()), 2.0 * float(before[:, 0].max())
    within: Array = after[(after[:, 0] >= low) & (after[:, 0] <= high)]
    return within


def _untouched_shift(trial: Trial, error: float) -> str:
    """Time per row moved where the action did not reach: something else happened."""
    if trial.micro_batch:
        return ""
    for name in trial.after[-1].components:
        if name in trial.prediction.touched or name == trial.component:
            continue
        before = _rates(trial.before, name)
        after = _rates(trial.after, name)
        if len(before) < 3 or len(after) < 3:
            continue
        shift = median(after) - median(before)
        if abs(shift) > max(0.2, 3 * error):
            return f"{name}, which was not touched, changed its speed by {math.expm1(shift):+.0%}"
    return ""


def _rates(digests: tuple[Digest, ...], name: str) -> Array:
    rates = np.array([d.components[name].instance_rate_per_s for d in digests if name in d.components])
    logs: Array = np.log(rates[np.isfinite(rates) & (rates > 0)])
    return logs


def _effective(values: Array) -> float:
    """Number of independent values among correlated ones."""
    count = len(values)
    centred = values - values.mean()
    power = float(centred @ centred)
    lag = float(centred[1:] @ centred[:-1]) / power if count > 3 and power > 0 else 0.0
    lag = min(max(lag, 0.0), 0.9)
    return max(1.0, count * (1 - lag) / (1 + lag))


def _with(measured: Outcome, verdict: Verdict, reason: str) -> Outcome:
    return replace(measured, verdict=verdict, reason=reason)
