"""What arrives and what waits are part of the model of an application."""

from __future__ import annotations

import math
from functools import cache

import pytest

from homeostat.core.configuration import TRIGGER_S, Knob
from homeostat.lab.scenario_model import from_scenario
from homeostat.models.application_model import ApplicationModel
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec

TRIGGER = Knob(TRIGGER_S, "main")


def scenario(
    rate_per_s: float = 2_000.0,
    *,
    executors: int = 6,
    partitions: int = 24,
    trigger_s: float = 10.0,
    noise: float = 0.05,
    varied: bool = True,
    faults: tuple[FaultSpec, ...] = (),
    zipf: float = 0.0,
) -> Scenario:
    """Words are split and counted: a second of work for 500 lines, and for 1,000 keys of the state."""
    steps = ((0.0, rate_per_s), (200.0, 1.3 * rate_per_s), (400.0, 0.8 * rate_per_s)) if varied else ()
    return Scenario(
        name="words",
        title="words",
        engine=MicrobatchSpec(trigger_s=trigger_s, executors=executors, locality_wait_s=0.0),
        duration_s=600.0,
        components=(
            ComponentSpec("lines", "source", parallelism=partitions, rate_per_s=5_000.0, selectivity=3.0),
            ComponentSpec(
                "count",
                inputs=("lines",),
                parallelism=partitions,
                rate_per_s=3_000.0,
                key_s=0.0004,
                keyed=True,
                keys=20_000,
                stateful=True,
                task_s=0.05,
                zipf=zipf,
            ),
        ),
        workload=WorkloadSpec("steps" if varied else "constant", rate_per_s, steps=steps, noise=Noise(0.05, 0.3)),
        service_noise=Noise(noise, 0.3),
        faults=faults,
    )


@cache
def fitted() -> ApplicationModel:
    return from_scenario(scenario())


def test_what_arrives_and_what_waits_are_part_of_the_model() -> None:
    model = fitted()
    assert model.arrival_per_s == pytest.approx(1_600.0, rel=0.1)
    assert model.backlog_rows == 0.0
    behind = from_scenario(scenario(9_000.0, varied=False))
    assert behind.backlog_rows > 100_000
    assert math.isinf(behind.catch_up_s(behind.configuration, 9_000.0, behind.backlog_rows))
