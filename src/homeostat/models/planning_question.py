"""What is asked of a planner: a configuration for a load, with the objective held; and how one is judged."""

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

CONFIDENCE = 0.9
HORIZON_S = 1800.0
CATCH_UP_S = 600.0


class Arrivals(Protocol):
    """The load to come."""

    def quantile(self, share: float, ahead_s: float) -> float:
        """Rows per second that will not be exceeded so far ahead, with this probability."""
        ...


@dataclass(frozen=True, slots=True)
class Steady:
    """It stays as it is and varies as it did: what is assumed without a forecast."""

    rate_per_s: float
    variation: float = 0.0

    def quantile(self, share: float, ahead_s: float) -> float:
        return self.rate_per_s * math.exp(self.variation * NormalDist().inv_cdf(share))


@dataclass(frozen=True, slots=True)
class Forecasted:
    """As it is now, and then as it was forecast: what is forecast for any moment has to be held until then, too."""

    now: Steady
    forecast: Forecast

    def quantile(self, share: float, ahead_s: float) -> float:
        return self.forecast.highest(ahead_s, share) if ahead_s > 0 else self.now.quantile(share, 0.0)


@dataclass(frozen=True, slots=True)
class Goal:
    """Hold the objective with this confidence over the horizon; a backlog shall be gone within `catch_up_s`."""

    confidence: float = CONFIDENCE
    horizon_s: float = HORIZON_S
    catch_up_s: float = CATCH_UP_S


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that was looked at. `lost` says why it was not taken; empty for the one that was.

    `cost` is in instances, `spent` in instance-seconds over the horizon, the way there included: `pause_s` until it is
    up and `catch_up_s` until nothing waits any more. A restart makes rows late for `late_s` if it takes longer than the
    objective leaves room for.
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
        """Until it is up and has caught up."""
        return self.pause_s + self.catch_up_s


@dataclass(frozen=True, slots=True)
class Question:
    """What a proposer is asked: a configuration for this load. It may ask back what any of them would do."""

    model: ApplicationModel
    rate_per_s: float
    goal: Goal = Goal()

    def predict(self, configuration: Configuration) -> Predicted:
        return self.model.predict(configuration, self.rate_per_s)

    def judge(self, configuration: Configuration, proposer: str = "") -> Candidate:
        """The configuration with its prediction, its costs, and what is wrong with it."""
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
            lost=_wrong(self, predicted, catch_up_s, cost),
        )


class Proposer(Protocol):
    """A scheduler of one's own: configurations it would like to see judged."""

    @property
    def name(self) -> str: ...

    def propose(self, question: Question) -> Iterable[Configuration]: ...


def _wrong(question: Question, predicted: Predicted, catch_up_s: float, cost: float) -> str:
    """Why it does not do; empty if it does."""
    goal, objective = question.goal, question.model.objective
    late = too_slow(question.model, predicted, goal.confidence) or too_late(question.model, predicted, goal.confidence)
    if late:
        return late
    if objective.cost_limit is not None and cost > objective.cost_limit:
        return f"costs {cost:g} instances, {objective.cost_limit:g} are allowed"
    if catch_up_s > goal.catch_up_s:
        return f"the backlog would take {_span(catch_up_s)} to be gone"
    return ""


def _late_s(question: Question, predicted: Predicted, catch_up_s: float) -> float:
    """From the beginning of a restart until what came meanwhile has been taken."""
    restart_s = question.model.restart_s(predicted.configuration)
    objective = question.model.objective
    room_s = (
        (objective.latency_p95_s or math.inf) - predicted.latency_s.get("p95", math.nan),
        (objective.lag_s or math.inf) - predicted.lag_s,
    )
    return restart_s + catch_up_s if any(restart_s > each_s for each_s in room_s) else 0.0


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if math.isfinite(seconds) else "for ever"
