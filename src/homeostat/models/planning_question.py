"""The question to a planner: which configuration meets the objective at a load, and how candidates are judged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

from homeostat.core.configuration import Configuration
from homeostat.models.application_model import ApplicationModel, Predicted
from homeostat.models.forecast import Forecast
from homeostat.models.objective_check import too_late, too_slow

# The probability with which a plan must meet the objective: a higher one costs more instances. A choice, as in
# INTERVAL.
CONFIDENCE = 0.9
# How far ahead a plan must hold, in seconds: longer plans for later peaks, and spreads the cost of a change. A choice.
HORIZON_S = 1800.0
# Seconds within which a backlog must be worked off: shorter costs more instances for a while. A choice.
CATCH_UP_S = 600.0


class Arrivals(Protocol):
    """The load to come."""

    def quantile(self, share: float, ahead_s: float) -> float:
        """Return the rows per second that are not exceeded at that time, with this probability."""
        ...


@dataclass(frozen=True, slots=True)
class Steady:
    """The present load with its present variation: the assumption without a forecast."""

    rate_per_s: float
    variation: float = 0.0

    def quantile(self, share: float, ahead_s: float) -> float:
        return self.rate_per_s * math.exp(self.variation * NormalDist().inv_cdf(share))


@dataclass(frozen=True, slots=True)
class Forecasted:
    """The present load now, and later the highest load forecast until then."""

    now: Steady
    forecast: Forecast

    def quantile(self, share: float, ahead_s: float) -> float:
        return self.forecast.highest(ahead_s, share) if ahead_s > 0 else self.now.quantile(share, 0.0)


@dataclass(frozen=True, slots=True)
class Goal:
    """Meet the objective with this confidence over the horizon, and work off a backlog within `catch_up_s`, unless the
    objective has a time for that."""

    confidence: float = CONFIDENCE
    horizon_s: float = HORIZON_S
    catch_up_s: float = CATCH_UP_S


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that was considered. `lost` says why it was not chosen; it is empty for the chosen one.

    `cost` is in instances. `spent` is in instance-seconds over the horizon, including `pause_s` until the configuration
    is applied and `catch_up_s` until the backlog is gone. If a restart takes longer than the objective allows, rows are
    late for `late_s`.
    """

    predicted: Predicted
    proposer: str
    cost: float
    pause_s: float
    catch_up_s: float
    spent: float
    late_s: float = 0.0
    lost: str = ""

    @property
    def configuration(self) -> Configuration:
        return self.predicted.configuration

    @property
    def done_s(self) -> float:
        """Seconds until the configuration is applied and the backlog is gone."""
        return self.pause_s + self.catch_up_s


@dataclass(frozen=True, slots=True)
class Question:
    """The question to a proposer: which configuration suits this load? The proposer may ask for predictions."""

    model: ApplicationModel
    rate_per_s: float
    goal: Goal = Goal()

    @property
    def catch_up_s(self) -> float:
        """The time in which a backlog must be worked off."""
        return self.model.objective.catch_up_s or self.goal.catch_up_s

    def predict(self, configuration: Configuration) -> Predicted:
        return self.model.predict(configuration, self.rate_per_s)

    def judge(self, configuration: Configuration, proposer: str = "") -> Candidate:
        """Return the configuration with its prediction, its costs, and why it fails the objective if it does."""
        model, rate = self.model, self.rate_per_s
        predicted = self.predict(configuration)
        pause_s = model.pause_s(configuration)
        catch_up_s = model.catch_up_s(configuration, rate, model.behind_rows(configuration, rate))
        cost = model.capabilities.cost(configuration)
        return Candidate(
            predicted,
            proposer,
            cost,
            pause_s,
            catch_up_s,
            spent=cost * (self.goal.horizon_s + pause_s + min(catch_up_s, self.goal.horizon_s)),
            late_s=_late_s(self, predicted, catch_up_s),
            lost=_failure(self, predicted, catch_up_s, cost),
        )


class Proposer(Protocol):
    """A plug-in that proposes configurations to be judged."""

    @property
    def name(self) -> str: ...

    def propose(self, question: Question) -> Iterable[Configuration]: ...


def _failure(question: Question, predicted: Predicted, catch_up_s: float, cost: float) -> str:
    """Why a configuration fails; empty if it does not."""
    goal, objective = question.goal, question.model.objective
    late = too_slow(question.model, predicted, goal.confidence) or too_late(question.model, predicted, goal.confidence)
    if late:
        return late
    if objective.cost_limit is not None and cost > objective.cost_limit:
        return f"costs {cost:g} instances, but the limit is {objective.cost_limit:g}"
    if catch_up_s > question.catch_up_s:
        return f"processing the backlog would take {_span(catch_up_s)}"
    return ""


def _late_s(question: Question, predicted: Predicted, catch_up_s: float) -> float:
    """Seconds from the start of a restart until the rows that arrived meanwhile are processed."""
    restart_s = question.model.restart_s(predicted.configuration)
    objective = question.model.objective
    room_s = (
        (objective.latency_p95_s or math.inf) - predicted.latency_s.get("p95", math.nan),
        (objective.lag_s or math.inf) - predicted.lag_s,
    )
    return restart_s + catch_up_s if any(restart_s > each_s for each_s in room_s) else 0.0


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if math.isfinite(seconds) else "forever"
