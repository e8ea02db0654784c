"""Measures how long planning takes, for a large dataflow and a large batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

import numpy as np

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    PARALLELISM,
    STATE_PARTITIONS,
    Capabilities,
    Configuration,
    Knob,
    KnobSpec,
)
from homeostat.core.objective import Objective
from homeostat.core.topology import Component, Topology
from homeostat.models.application_model import ApplicationModel
from homeostat.models.batch_replay import BatchModel, Setup, Stage
from homeostat.models.plan_choice import plan
from homeostat.models.saturation import FlowModel, KeyShares, Operator
from homeostat.models.task_cost_model import TaskCost

COMPONENTS, INSTANCES = 50, 10_000
MOST_S = 1.0
_RECORDED = 12


def seconds(repeats: int, components: int = COMPONENTS, instances: int = INSTANCES) -> dict[str, float]:
    """The median time of a plan, for each kind of engine."""
    each = instances // components
    models = {"dataflow": dataflow(components, each), "microbatch": batches(components, each)}
    return {name: median(_seconds(model, repeats)) for name, model in models.items()}


def _seconds(model: ApplicationModel, repeats: int) -> Iterator[float]:
    for _ in range(repeats):
        started_s = time.perf_counter()
        plan(model)
        yield time.perf_counter() - started_s


def dataflow(components: int, instances: int) -> ApplicationModel:
    """A chain of components, every other one keyed, each with this many instances."""
    names = [f"c{number}" for number in range(components)]
    inputs = {name: (before,) for before, name in pairwise(names)}
    operators = tuple(
        Operator(
            name,
            inputs.get(name, ()),
            instances,
            1_000.0,
            1.0,
            KeyShares(instances, 1.05) if number % 2 else None,
            error=0.01,
        )
        for number, name in enumerate(names)
    )
    shape = tuple(
        Component(name, "operator" if name in inputs else "source", Knob(PARALLELISM, name), inputs.get(name, ()))
        for name in names
    )
    knobs = {component.scaled_by: KnobSpec(1, 10_000, live=False, apply_s=30.0, cost=1.0) for component in shape}
    return ApplicationModel(
        at_s=0.0,
        topology=Topology(shape),
        configuration=Configuration(dict.fromkeys(knobs, instances)),
        capabilities=Capabilities(knobs),
        objective=Objective(),
        performance=FlowModel(operators, {names[0]: 1.0}),
        arrival_per_s=150_000.0,
    )


def batches(stages: int, tasks: int) -> ApplicationModel:
    """A batch of this many stages in a row, each with this many tasks."""
    chance = np.random.default_rng(1)
    parts = tuple(
        Stage(
            f"s{number}",
            TaskCost(0.01, 0.0001),
            np.full(tasks, 1 / tasks),
            1.0,
            chance.normal(0, 0.1, (_RECORDED, tasks)),
        )
        for number in range(stages)
    )
    state = Knob(STATE_PARTITIONS, "main")
    return ApplicationModel(
        at_s=0.0,
        topology=Topology((Component("s0", "source", EXECUTORS_KNOB, partitions=state),)),
        configuration=Configuration({EXECUTORS_KNOB: 3, state: tasks}),
        capabilities=Capabilities(
            {
                EXECUTORS_KNOB: KnobSpec(1, 1_000, apply_s=10.0, cost=1.0),
                state: KnobSpec(1, 10_000, live=False, apply_s=30.0),
            }
        ),
        objective=Objective(),
        performance=BatchModel(parts, np.full(_RECORDED, 0.5), np.zeros(_RECORDED), 1, Setup(3, 10.0)),
        arrival_per_s=3_000.0,
    )
