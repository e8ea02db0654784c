"""A model of a micro-batch application that is simple enough to plan for by hand."""

from __future__ import annotations

import numpy as np

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    STATE_PARTITIONS,
    TRIGGER_S,
    Capabilities,
    Configuration,
    Knob,
    KnobSpec,
)
from homeostat.core.objective import Objective
from homeostat.core.observation import Array
from homeostat.core.topology import Component, Topology
from homeostat.models.application_model import ApplicationModel
from homeostat.models.batch_replay import BatchModel, Setup, Stage
from homeostat.models.plan_choice import Plan
from homeostat.models.task_cost_model import NO_SLOWING, TaskCost

STATE = Knob(STATE_PARTITIONS, "main")

TRIGGER = Knob(TRIGGER_S, "main")

STEADY = np.zeros(3)


def batches(
    objective: Objective | None = None,
    *,
    executors: int = 3,
    backlog: float = 0.0,
    trigger_s: float = 10.0,
    common: Array = STEADY,
) -> ApplicationModel:
    """A millisecond a row in 48 tasks, half a second of driver; `common` is ln of what whole batches had in common."""
    stage = Stage("count", TaskCost(0.0, 0.001, slowing=NO_SLOWING), np.full(48, 1 / 48), 1.0, np.zeros((3, 48)))
    model = BatchModel((stage,), np.full(3, 0.5), common, 1, Setup(executors, trigger_s))
    knobs = {
        EXECUTORS_KNOB: KnobSpec(1, 40, apply_s=10.0, cost=1.0),
        STATE: KnobSpec(1, 1000, live=False, apply_s=30.0),
        TRIGGER: KnobSpec(0, 3600, live=False, apply_s=5.0),
    }
    return ApplicationModel(
        at_s=0.0,
        topology=Topology((Component("count", "source", EXECUTORS_KNOB, partitions=STATE),)),
        configuration=Configuration({EXECUTORS_KNOB: executors, STATE: 48, TRIGGER: trigger_s}),
        capabilities=Capabilities(knobs),
        objective=objective or Objective(),
        performance=model,
        arrival_per_s=2_000.0,
        backlog_rows=backlog,
    )


def chosen_values(plan: Plan) -> dict[Knob, float]:
    assert plan.chosen is not None
    return dict(plan.chosen.configuration.values)
