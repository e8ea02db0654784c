"""A scenario that splits and counts words, and the model that is fitted to its simulation."""

from __future__ import annotations

from functools import cache

from homeostat.lab.scenario_model import from_scenario
from homeostat.models.application_model import ApplicationModel
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec


def words_scenario(
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
def words_model() -> ApplicationModel:
    return from_scenario(words_scenario())
