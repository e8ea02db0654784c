"""The objective that a user sets for an application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GivesWay = Literal["latency", "cost", "throughput"]


@dataclass(frozen=True, slots=True)
class Objective:
    """If nothing is set, the objective is dynamic resource provisioning: no pressure, nothing idle.

    `cost_limit` is the largest number of instances. `model_error` is the largest mean error of predictions, in
    ln(time), with which models still choose the sizes. `catch_up_s` is the time in which a backlog must be worked off.
    Where these two are not set, the settings for them apply.
    """

    throughput_per_s: float | None = None
    lag_s: float | None = None
    latency_p95_s: float | None = None
    cost_limit: float | None = None
    model_error: float | None = None
    catch_up_s: float | None = None
