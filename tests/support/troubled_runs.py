"""Short runs of a simulated word count with faults, and what its sensors show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from homeostat.core.events import Observed
from homeostat.core.observation import Observation, TaskCosts
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Scenario, WorkloadSpec

ENGINE = MicrobatchSpec(
    executors=4, slots=2, executor_start_s=12.0, warm_up=1.0, hosts=2, locality_wait_s=0.0, max_executors=40
)
SCENARIO = Scenario(
    name="word-count",
    title="",
    engine=ENGINE,
    duration_s=3600.0,
    components=(
        ComponentSpec("lines", kind="source", parallelism=8, rate_per_s=1000.0),
        ComponentSpec(
            "count", inputs=("lines",), parallelism=16, rate_per_s=500.0, keyed=True, keys=100_000, stateful=True
        ),
    ),
    workload=WorkloadSpec(rate_per_s=400.0),
)


def with_faults(*faults: FaultSpec, partitions: int = 16, executors: int = 4, slots: int = 2) -> Scenario:
    source, count = SCENARIO.components
    return replace(
        SCENARIO,
        faults=faults,
        engine=replace(ENGINE, executors=executors, slots=slots),
        components=(source, replace(count, parallelism=partitions)),
    )


def observe(scenario: Scenario, until_s: float = 100.0) -> list[Observation]:
    """The batches that had rows."""
    samples = [event.observation for event in Microbatch(scenario).wait(until_s) if isinstance(event, Observed)]
    return [sample for sample in samples if sample.tasks]


def last(*faults: FaultSpec, partitions: int = 16, executors: int = 4, slots: int = 2) -> Observation:
    """The last batch of a run with these faults."""
    return observe(with_faults(*faults, partitions=partitions, executors=executors, slots=slots))[-1]


def costs(sample: Observation, component: str = "count") -> TaskCosts:
    columns = sample.tasks[component].costs
    assert columns is not None
    return columns


def seconds(sample: Observation) -> float:
    return sample.flows[0].seconds


def run_s(sample: Observation, component: str = "count") -> float:
    return float(np.sum(sample.tasks[component].run_s))
