"""The load that is planned for, and the backlog that must be worked off."""

from __future__ import annotations

import math

import numpy as np
import pytest

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
)
from homeostat.core.objective import Objective
from homeostat.models.forecast import Forecast
from homeostat.models.plan_choice import plan
from homeostat.models.planning_question import Forecasted, Goal, Steady
from support.batch_plans import batches, chosen_values


def test_more_confidence_plans_for_more_of_a_load_that_varies() -> None:
    load = Steady(5_000.0, variation=0.2)
    sure, surer = (plan(batches(), arrivals=load, goal=Goal(confidence=c)) for c in (0.5, 0.99))
    assert sure.rate_per_s == pytest.approx(5_000.0)
    assert surer.rate_per_s == pytest.approx(5_000.0 * math.exp(0.2 * 2.326), rel=0.01)
    assert chosen_values(surer)[EXECUTORS_KNOB] > chosen_values(sure)[EXECUTORS_KNOB]


def test_what_is_forecast_within_the_horizon_is_planned_for_and_a_fall_is_not() -> None:
    def forecast(*per_s: float) -> Forecasted:
        values = np.repeat(np.array(per_s)[:, np.newaxis], 3, axis=1)
        return Forecasted(Steady(2_000.0), Forecast(0.0, 300.0, (0.1, 0.5, 0.9), values, "profile", True, ""))

    rise = plan(batches(), arrivals=forecast(2_000.0, 2_500.0, 6_000.0, 3_000.0, 3_000.0, 3_000.0))
    assert rise.rate_per_s == pytest.approx(6_000.0)
    assert chosen_values(rise)[EXECUTORS_KNOB] == 7
    fall = plan(batches(), arrivals=forecast(*(500.0,) * 6))
    assert fall.rate_per_s == pytest.approx(2_000.0)
    assert fall.patch.values == {}


def test_a_backlog_has_to_be_worked_off_in_time() -> None:
    chosen_plan = plan(batches(backlog=1_000_000.0), goal=Goal(catch_up_s=600.0))
    assert chosen_plan.present.lost.startswith("processing the backlog would take")
    patient, hasty = (plan(batches(Objective(catch_up_s=s), backlog=1_000_000.0)) for s in (1_200.0, 300.0))
    assert chosen_values(patient)[EXECUTORS_KNOB] < chosen_values(chosen_plan)[EXECUTORS_KNOB]
    assert chosen_values(chosen_plan)[EXECUTORS_KNOB] < chosen_values(hasty)[EXECUTORS_KNOB]
    by_executors = {int(c.configuration[EXECUTORS_KNOB]): c.catch_up_s for c in chosen_plan.candidates}
    assert sorted(by_executors.values(), reverse=True) == [by_executors[n] for n in sorted(by_executors)]
