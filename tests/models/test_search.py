"""The configurations that the search proposes: triggers, partitions, and all components at once."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    Capabilities,
    KnobSpec,
)
from homeostat.core.objective import Objective
from homeostat.lab.bench import planning_time
from homeostat.models.batch_replay import BatchModel
from homeostat.models.plan_choice import plan
from homeostat.models.planning_question import Goal
from homeostat.models.task_cost_model import NO_SLOWING, TaskCost
from support.batch_plans import STATE, TRIGGER, batches, chosen_values


def test_a_latency_objective_shortens_the_trigger_and_pays_for_it() -> None:
    plain = plan(batches())
    quick = plan(batches(Objective(latency_p95_s=6.0)))
    assert quick.chosen is not None
    assert quick.chosen.predicted.latency_s["p95"] <= 6.0
    assert chosen_values(quick)[TRIGGER] < 10.0
    assert quick.chosen.cost >= plain.best.cost


def test_only_an_objective_for_the_latency_makes_a_trigger_longer_than_the_user_chose() -> None:
    """2.5 s of every batch are fixed, so that a longer trigger needs fewer executors."""

    def trigger_s(objective: Objective, promise: float | None) -> float:
        model = batches(objective, trigger_s=3.0)
        knobs = {**model.capabilities.knobs, TRIGGER: KnobSpec(0, 3600, promise=promise)}
        assert isinstance(model.performance, BatchModel)
        slow = replace(model.performance, driver_s=np.full(3, 2.5))
        chosen_plan = plan(replace(model, capabilities=Capabilities(knobs), performance=slow))
        return chosen_plan.best.configuration[TRIGGER]

    lag, latency = Objective(lag_s=40.0), Objective(latency_p95_s=40.0)
    assert trigger_s(lag, None) > 3.0
    assert trigger_s(lag, 3.0) == 3.0
    assert 3.0 < trigger_s(lag, 12.0) <= 12.0
    assert trigger_s(latency, 3.0) > 3.0


@pytest.mark.parametrize("trigger_s", [60.0, 600.0])
def test_a_trigger_far_from_what_the_objective_needs_is_found_in_one_step(trigger_s: float) -> None:
    chosen_plan = plan(batches(Objective(latency_p95_s=3.0), trigger_s=trigger_s))
    assert chosen_plan.chosen is not None
    assert chosen_plan.chosen.predicted.latency_s["p95"] <= 3.0


def test_tasks_that_cost_more_than_their_rows_are_made_fewer() -> None:
    """48 tasks of 0.5 s each on at most 2 slots take 12 s whatever their rows; 24 of them 6 s."""
    model = batches(executors=2)
    assert isinstance(model.performance, BatchModel)
    (stage,) = model.performance.stages
    dear = replace(stage, cost=TaskCost(0.5, 0.0001, slowing=NO_SLOWING))
    chosen_plan = plan(
        replace(
            model,
            performance=replace(model.performance, stages=(dear,)),
            capabilities=Capabilities({**model.capabilities.knobs, EXECUTORS_KNOB: KnobSpec(1, 2, cost=1.0)}),
        ),
        goal=Goal(catch_up_s=math.inf),
    )
    assert chosen_values(chosen_plan)[STATE] == 24


def test_all_components_of_a_dataflow_are_sized_at_once() -> None:
    model = planning_time.dataflow(3, 200)
    chosen_plan = plan(replace(model, arrival_per_s=50_000.0))
    assert chosen_plan.chosen is not None
    counts = [int(value) for _, value in sorted(chosen_plan.chosen.configuration.values.items())]
    # 50 for the load, one and a bit for the doubt, 5 % more for what arrives during the redeployment.
    assert counts[0] == counts[2] == 54
    assert 54 < counts[1] <= 57
    assert plan(replace(model, arrival_per_s=50_000.0, replays=False)).best.cost < chosen_plan.best.cost
    assert chosen_plan.present.lost == ""
