"""What the user wants of the application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GivesWay = Literal["latency", "cost", "throughput"]


@dataclass(frozen=True, slots=True)
class Objective:
    """Nothing set means dynamic resource provisioning: no pressure, nothing idle.

    `cost_limit` is the largest number of instances that may be paid for, `model_error` the largest mean error of
    predictions, in ln(time), at which models still choose the sizes; without one it is a setting.
    """

    throughput_per_s: float | None = None
    lag_s: float | None = None
    latency_p95_s: float | None = None
    cost_limit: float | None = None
    model_error: float | None = None
