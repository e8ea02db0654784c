"""Checks whether a configuration meets the objective with the required confidence, and says why if it does not."""

from __future__ import annotations

import math

from homeostat.core.configuration import KnobSpec
from homeostat.core.objective import Objective
from homeostat.models.application_model import ApplicationModel, Predicted
from homeostat.models.batch_replay import BatchModel, Setup
from homeostat.models.performance import sure_per_s, tail_s
from homeostat.models.saturation import FlowModel


def holds_in_time(model: BatchModel, setup: Setup, rate_per_s: float, confidence: float) -> bool:
    """Return whether a batch of one trigger's rows ends within the trigger interval, with this confidence.

    Without a trigger interval, return whether batches that follow each other keep up with the load.
    """
    if setup.trigger_s <= 0:
        return rate_per_s < sure_per_s(model, rate_per_s, setup, confidence)
    rows = rate_per_s * setup.trigger_s
    return rows <= setup.rows_bound and tail_s(model, rows, setup, confidence) <= setup.trigger_s


def longest_trigger_s(objective: Objective, spec: KnobSpec) -> float:
    """The longest trigger interval that the user accepts. It may exceed the interval that the user chose only if there
    is an objective for the latency, which it must then meet. An objective for the lag is not enough, because the lag
    does not include the time that a row waits for its trigger."""
    if spec.promise is None or objective.latency_p95_s is not None:
        return float(spec.maximum)
    return float(min(spec.promise, spec.maximum))


def too_slow(model: ApplicationModel, predicted: Predicted, confidence: float) -> str:
    """Say why the load exceeds what the configuration can process; empty if it does not."""
    rate = predicted.rate_per_s
    if not predicted.stable:
        return f"processes {predicted.most_per_s:,.0f} of {rate:,.0f} rows/s"
    if isinstance(model.performance, FlowModel):
        sure = model.performance.sure_per_s(confidence, model.instances(predicted.configuration))
        return f"processes {sure:,.0f} of {rate:,.0f} rows/s with {confidence:.0%} confidence" if sure < rate else ""
    setup = model.setup(predicted.configuration)
    if holds_in_time(model.performance, setup, rate, confidence):
        return ""
    if rate * setup.trigger_s > setup.rows_bound:
        return f"the limit of {setup.rows_bound:,.0f} rows per trigger is below the load"
    if setup.trigger_s <= 0:
        return f"falls behind {rate:,.0f} rows/s in more than {1 - confidence:.0%} of cases"
    return f"batches take longer than the trigger of {setup.trigger_s:g} s in more than {1 - confidence:.0%} of cases"


def too_late(model: ApplicationModel, predicted: Predicted, confidence: float) -> str:
    """Say why rows wait longer than the objective allows, or that this cannot be predicted; empty if they do not."""
    objective = model.objective
    if objective.latency_p95_s is not None:
        late_s = predicted.latency_s.get("p95", math.nan)
        if math.isnan(late_s):
            return "its latency cannot be predicted"
        if late_s > objective.latency_p95_s:
            return f"p95 latency {late_s:.1f} s is above {objective.latency_p95_s:g} s"
    if objective.lag_s is not None:
        lag_s = _lag_s(model, predicted, confidence)
        if math.isnan(lag_s):
            return "its lag cannot be predicted"
        if lag_s > objective.lag_s:
            return f"lag of up to {lag_s:.1f} s is above {objective.lag_s:g} s"
    return ""


def _lag_s(model: ApplicationModel, predicted: Predicted, share: float) -> float:
    """The lag that is not exceeded in this share of cases. The lag is the duration of a batch."""
    if not isinstance(model.performance, BatchModel) or not predicted.stable:
        return predicted.lag_s
    return tail_s(model.performance, predicted.rows, model.setup(predicted.configuration), share)
