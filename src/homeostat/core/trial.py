"""Judges whether an action helped, by load-normalised time.

Throughput and lag would mislead, because a shrinking backlog distorts both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from homeostat.core.batch_intervals import late_run
from homeostat.core.digest import Digest
from homeostat.core.evidence_limits import LARGEST_CORRELATION, LEAST_OBSERVATIONS, MEDIAN_ERROR, NOISE_FLOOR
from homeostat.core.findings import Outcome, Prediction, Verdict
from homeostat.core.observation import NAN, Array
from homeostat.core.stats import median, spread

# Settling times after which a trial ends, whatever the verdict: longer is clearer and blocks other actions. A choice.
LONGEST_SETTLINGS = 3.0
# The verdicts after which an action is reverted.
TAKEN_BACK: tuple[Verdict, ...] = ("harmful", "failed")
# Rows must vary by more than this share of their median to tell the fixed time of a batch from the time per row: less
# would fit noise. A choice.
_ROWS_VARY = 0.2
# Batches with rows within these factors of those measured before can be compared: further away the fit is a guess. A
# choice.
_COMPARABLE = (0.5, 2.0)
# The speed of an untouched component has changed if its gain is at least this, and at least this many standard errors:
# smaller values mistake noise for a change. Choices.
_UNTOUCHED_GAIN, _UNTOUCHED_ERRORS = 0.2, 3
# Keeps the time per row of a component without capacity finite.
_ALMOST_NOTHING = 1e-9
# With more values than this a correlation can be estimated. A choice.
_LEAST_FOR_CORRELATION = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """An applied action and what was measured before and after it.

    `disturbed` names anything else that changed meanwhile, `suspect` what may have changed, `unhealthy` a problem that
    stands now. `shrinking` says that the action was meant to save resources, not time. `looked` says whether the
    detectors have looked at the newest measurements.
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
    suspect: str = ""
    looked: bool = True


class Judge(Protocol):
    def judge(self, trial: Trial) -> Outcome | None:
        """Return the outcome, or None while it is too early."""
        ...


@dataclass(frozen=True, slots=True)
class LoadNormalisedJudge:
    """Compares observed and predicted gain in ln(time at equal load); standard errors allow for correlation."""

    # Measurements after the action: more are surer and take longer. A choice.
    least_after: int = 5
    # Measurements before the action, unless the last of them is late: with fewer there is nothing to compare with.
    least_before: int = LEAST_OBSERVATIONS
    noise_floor: float = NOISE_FLOOR
    # How far the time after a shrink may be from its prediction, in ln: a smaller one leaves more shrinks unclear. A
    # choice.
    shrink_tolerance: float = 0.2
    # Standard errors that a gain must differ by: more are surer (two are about 95 %), fewer decide sooner. Statistics.
    errors: float = 2.0
    # The share of the predicted gain that counts as success: higher reverts actions that help a little. A choice.
    least_share: float = 0.5
    # Times `least_after` measurements without enough that can be compared, before the trial ends. A choice.
    patience: int = 2

    def judge(self, trial: Trial) -> Outcome | None:
        if trial.disturbed:
            return Outcome("confounded", predicted_gain=trial.prediction.gain, reason=trial.disturbed)
        before, after = _times(trial, trial.before), _times(trial, trial.after)
        late = trial.elapsed_s >= LONGEST_SETTLINGS * trial.settle_s
        if len(after) < self.least_after:
            return Outcome("unclear", reason="too few measurements after the action") if late else None
        if len(before) < self.least_before and not (len(before) and late_run(trial.before)):
            return Outcome("untestable", reason="too few measurements before the action", after=len(after))
        if trial.micro_batch:
            measurements, after = len(after), _comparable(before, after)
            if len(after) < self.least_after:
                enough = measurements >= self.patience * self.least_after
                return self._incomparable(trial) if late or enough else None
        measured = self._measure(trial, before, after)
        shift = _untouched_shift(trial, measured.standard_error)
        if shift:
            return _with(measured, "confounded", shift)
        outcome = self._judge_shrinking(trial, measured, late) if trial.shrinking else self._judge_gain(measured, late)
        if outcome is None or outcome.verdict not in TAKEN_BACK:
            return outcome
        if trial.suspect:
            return _with(measured, "confounded", trial.suspect) if late else None
        return outcome if trial.looked else None

    def _incomparable(self, trial: Trial) -> Outcome:
        reason = "the load changed while it was being judged"
        return Outcome("confounded", predicted_gain=trial.prediction.gain, reason=reason)

    def _measure(self, trial: Trial, before: Array, after: Array) -> Outcome:
        fit = _fit(before) if trial.micro_batch else (0.0, median(before[:, 1] / before[:, 0]))
        residual_before = np.log(before[:, 1]) - np.log(fit[0] + fit[1] * before[:, 0])
        gains = np.log(fit[0] + fit[1] * after[:, 0]) - np.log(after[:, 1])
        # Noise cannot be estimated from one late batch, only from the batches after the action.
        varying = residual_before if len(before) >= self.least_before else gains
        scale = max(self.noise_floor, spread(varying))
        error = MEDIAN_ERROR * scale * math.sqrt(1.0 / _effective(residual_before) + 1.0 / _effective(gains))
        return Outcome(
            "unclear",
            observed_gain=median(gains),
            predicted_gain=trial.prediction.gain,
            standard_error=error,
            before=len(before),
            after=len(after),
        )

    def _judge_gain(self, measured: Outcome, late: bool) -> Outcome | None:
        gain, expected = measured.observed_gain, measured.predicted_gain
        doubt = self.errors * measured.standard_error
        if gain < -doubt:
            return _with(measured, "harmful", "slower than before at equal load")
        if expected < doubt:
            return _with(measured, "untestable", "the predicted gain is within the noise")
        if gain > doubt and gain >= expected * self.least_share:
            return _with(measured, "helped", "")
        if gain + doubt < expected * self.least_share:
            return _with(measured, "failed", "less than half of the predicted gain")
        return _with(measured, "unclear", "still within the noise after a long wait") if late else None

    def _judge_shrinking(self, trial: Trial, measured: Outcome, late: bool) -> Outcome | None:
        if trial.elapsed_s < trial.settle_s:
            return None
        if trial.unhealthy:
            return _with(measured, "harmful", f"after shrinking: {trial.unhealthy}")
        off = abs(measured.observed_gain - measured.predicted_gain)
        if off <= self.shrink_tolerance + self.errors * measured.standard_error:
            return _with(measured, "shrunk", "the objective still holds")
        return _with(measured, "unclear", "the objective held, but time did not change as predicted") if late else None


def component_gain(trial: Trial, name: str) -> tuple[float, float]:
    """Return ln(time before ÷ after) of one component at equal rows, and its standard error; NaN if not measured."""
    before, after = (
        _component_times(digests, name, micro_batch=trial.micro_batch) for digests in (trial.before, trial.after)
    )
    if len(before) < LEAST_OBSERVATIONS or len(after) < LEAST_OBSERVATIONS:
        return NAN, NAN
    scale = max(NOISE_FLOOR, spread(before - median(before)))
    error = MEDIAN_ERROR * scale * math.sqrt(1.0 / _effective(before) + 1.0 / _effective(after))
    return median(before) - median(after), error


def _component_times(digests: tuple[Digest, ...], name: str, *, micro_batch: bool) -> Array:
    """ln(seconds per row): of its stage in a batch, or of all of its instances together in a dataflow."""
    parts = [(d.rows, d.components[name]) for d in digests if name in d.components and d.rows > 0]
    times = np.array(
        [each.span_s / rows if micro_batch else 1.0 / max(each.capacity_per_s, _ALMOST_NOTHING) for rows, each in parts]
    )
    logs: Array = np.log(times[np.isfinite(times) & (times > 0)])
    return logs


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
    """Fit seconds = a + b·rows, both ≥ 0. If rows hardly vary, the data cannot tell a from b, and a is 0."""
    rows, seconds = table[:, 0], table[:, 1]
    if np.ptp(rows) > _ROWS_VARY * median(rows):
        slope, intercept = np.polyfit(rows, seconds, 1)
        if slope > 0 and intercept >= 0:
            return float(intercept), float(slope)
    return 0.0, median(seconds / rows)


def _comparable(before: Array, after: Array) -> Array:
    """Return the batches with about as many rows as those measured before. While a backlog shrinks, batches have more
    rows.
    """
    low, high = _COMPARABLE[0] * float(before[:, 0].min()), _COMPARABLE[1] * float(before[:, 0].max())
    within: Array = after[(after[:, 0] >= low) & (after[:, 0] <= high)]
    return within


def _untouched_shift(trial: Trial, error: float) -> str:
    """Return the component whose speed changed although the action did not touch it; empty if there is none."""
    if trial.micro_batch:
        return ""
    for name in trial.after[-1].components:
        if name in trial.prediction.touched or name == trial.component:
            continue
        before = _rates(trial.before, name)
        after = _rates(trial.after, name)
        if len(before) < LEAST_OBSERVATIONS or len(after) < LEAST_OBSERVATIONS:
            continue
        shift = median(after) - median(before)
        if abs(shift) > max(_UNTOUCHED_GAIN, _UNTOUCHED_ERRORS * error):
            return f"the speed of {name}, which the action did not touch, changed by {math.expm1(shift):+.0%}"
    return ""


def _rates(digests: tuple[Digest, ...], name: str) -> Array:
    rates = np.array([d.components[name].instance_rate_per_s for d in digests if name in d.components])
    logs: Array = np.log(rates[np.isfinite(rates) & (rates > 0)])
    return logs


def _effective(values: Array) -> float:
    """Return how many independent values carry as much information as these correlated ones."""
    count = len(values)
    deviations = values - values.mean()
    power = float(deviations @ deviations)
    lag = float(deviations[1:] @ deviations[:-1]) / power if count > _LEAST_FOR_CORRELATION and power > 0 else 0.0
    lag = min(max(lag, 0.0), LARGEST_CORRELATION)
    return max(1.0, count * (1 - lag) / (1 + lag))


def _with(measured: Outcome, verdict: Verdict, reason: str) -> Outcome:
    return replace(measured, verdict=verdict, reason=reason)
