"""Rules that choose how many rows the next batch may have, so that it takes as long as its budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from homeostat.core.view import View
from homeostat.models.model_fitting import batch_model
from homeostat.models.performance import rows_within

# The defaults of spark.streaming.backpressure.pid.*, and its unit of time.
PROPORTIONAL, INTEGRAL, DERIVATIVE, LEAST_PER_S = 1.0, 0.2, 0.0, 100.0


class EndedBatch(NamedTuple):
    """`waited_s` is how long after its trigger the batch began."""

    at_s: float
    rows: float
    seconds: float
    waited_s: float


class AdmissionRule(Protocol):
    def rows(self, batch: EndedBatch, view: View) -> float:
        """The limit for the next batch, after this one; NaN for the same limit as before."""
        ...


@dataclass(frozen=True, slots=True)
class StaticLimit:
    """A limit that nobody changes."""

    def rows(self, batch: EndedBatch, view: View) -> float:
        return math.nan


@dataclass(slots=True)
class PidRateEstimator:
    """The rule that Spark has for DStreams, with its default gains: a reimplementation of `PIDRateEstimator` of Apache
    Spark. Structured Streaming does not have it. Its rate times the budget is the limit."""

    budget_s: float
    latest_s: float = -math.inf
    latest_per_s: float = -1.0
    latest_error: float = -1.0
    first: bool = True

    def rows(self, batch: EndedBatch, view: View) -> float:
        if not (batch.at_s > self.latest_s and batch.rows > 0 and batch.seconds > 0):
            return math.nan
        processed_per_s = batch.rows / batch.seconds
        error = self.latest_per_s - processed_per_s
        past_error = batch.waited_s * processed_per_s / self.budget_s
        error_slope = (error - self.latest_error) / (batch.at_s - self.latest_s)
        corrected = self.latest_per_s - PROPORTIONAL * error - INTEGRAL * past_error - DERIVATIVE * error_slope
        self.latest_s = batch.at_s
        if self.first:
            self.first, self.latest_per_s, self.latest_error = False, processed_per_s, 0.0
            return math.nan
        self.latest_per_s, self.latest_error = max(corrected, LEAST_PER_S), error
        return self.latest_per_s * self.budget_s


@dataclass(slots=True)
class ByModel:
    """As many rows as the model of batches expects to take the budget, on the executors that are up. The model is
    fitted anew after every batch."""

    budget_s: float
    least_rows: float = field(default=1.0)

    def rows(self, batch: EndedBatch, view: View) -> float:
        model = batch_model(view)
        if model is None:
            return math.nan
        return max(self.least_rows, rows_within(model, model.setup, self.budget_s))
