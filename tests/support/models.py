"""A small scenario, and the model that watching it gives."""

from __future__ import annotations

from functools import cache

from homeostat.lab.scenario_model import from_scenario
from homeostat.models.application_model import ApplicationModel
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec


def scenario(duration_s: float = 600.0) -> Scenario:
    return Scenario(
        name="small",
        title="Two stages in micro-batches",
        engine=MicrobatchSpec(executors=2),
        duration_s=duration_s,
        components=(
            ComponentSpec("lines", "source", parallelism=2, rate_per_s=1000.0),
            ComponentSpec("count", inputs=("lines",), parallelism=4, rate_per_s=500.0, keyed=True, stateful=True),
        ),
        workload=WorkloadSpec("constant", rate_per_s=200.0, noise=Noise(0.1)),
    )


@cache
def watched_model() -> ApplicationModel:
    return from_scenario(scenario())
