"""Random simulated runs with known faults, for `homeostat bench diagnosis` and `homeostat learn`.

Topology, load, noise, layout, kind and strength of the fault, and missing metrics vary from run to run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from homeostat.sim.microbatch.disturbances import LISTING_PART
from homeostat.sim.scenario.spec import (
    ComponentSpec,
    FaultSpec,
    MicrobatchSpec,
    Noise,
    Scenario,
    WorkloadSpec,
)

TRIGGER_S = 10.0
CLEAN = "clean"
# A run has no fault for the first of these times, so that there is something to compare with. It ends after the second.
QUIET_S, DURATION_S = 400.0, 900.0
# A batch has at most this many times the usual rows, as in most applications. Without a limit, late batches would grow
# forever.
_MOST_BATCH = 2.0
_SOURCE, _WORK, _COUNT = "read", "parse", "count"
# The files of a batch, if they are small.
_FILES = 200
# If a larger share of attempts failed, some tasks would fail for good, and the query would end.
_MOST_FAILING = 0.2


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario, and the kinds of fault in it. `CLEAN` has none."""

    scenario: Scenario
    kinds: tuple[str, ...]

    @property
    def trigger_s(self) -> float:
        engine = self.scenario.engine
        return engine.trigger_s if isinstance(engine, MicrobatchSpec) else math.nan


@dataclass(frozen=True, slots=True)
class Draw:
    """The values that a fault may depend on. `strength` is the share of the trigger interval that it should cost.

    Each executor has `slots`. Faults of tasks hit the component `work`, those of keys and state `keyed`.
    """

    random: np.random.Generator
    strength: float
    rows: float
    executors: int
    partitions: int
    at_s: float
    trigger_s: float = TRIGGER_S
    slots: int = 1
    stages: int = 3
    work: str = _WORK
    keyed: str = _COUNT

    @property
    def seconds(self) -> float:
        return self.strength * self.trigger_s

    @property
    def tasks_at_once(self) -> int:
        return min(self.executors * self.slots, self.partitions)


def _driver(kind: str) -> Callable[[Draw], FaultSpec]:
    return lambda draw: FaultSpec(kind, draw.at_s, seconds=draw.seconds)  # type: ignore[arg-type]


def waiting_fault(kind: str, place: Callable[[Draw], str]) -> Callable[[Draw], FaultSpec]:
    """A fault that makes each row wait, in the component that `place` returns."""

    def fault(draw: Draw) -> FaultSpec:
        row_s = draw.seconds * draw.tasks_at_once / draw.rows
        return FaultSpec(kind, draw.at_s, component=place(draw), row_s=row_s)  # type: ignore[arg-type]

    return fault


def _spill(draw: Draw) -> FaultSpec:
    fits = 0.3 * draw.rows / draw.partitions
    row_s = draw.seconds * draw.tasks_at_once / (0.7 * draw.rows)
    return FaultSpec("spill", draw.at_s, component=draw.keyed, rows=fits, row_s=row_s)


def _state_store(draw: Draw) -> FaultSpec:
    task_s = draw.seconds * draw.tasks_at_once / draw.partitions
    return FaultSpec("state-store", draw.at_s, component=draw.keyed, task_s=task_s)


def _scheduling(draw: Draw) -> FaultSpec:
    return FaultSpec("slow-scheduling", draw.at_s, task_s=draw.seconds / (draw.stages * draw.partitions))


def _memory(draw: Draw) -> FaultSpec:
    in_use = min(0.95, 0.7 + 0.2 * draw.strength)
    at_once = min(draw.slots, math.ceil(draw.partitions / draw.executors))
    rows = at_once * draw.rows / draw.partitions / in_use
    return FaultSpec("memory", draw.at_s, component=draw.keyed, rows=rows)


def partition_fault(kind: str) -> Callable[[Draw], FaultSpec]:
    """A fault of one partition of the keyed component."""

    def fault(draw: Draw) -> FaultSpec:
        instance = int(draw.random.integers(draw.partitions))
        factor = 2.0 + 6.0 * draw.strength
        return FaultSpec(kind, draw.at_s, component=draw.keyed, instance=instance, factor=factor)  # type: ignore[arg-type]

    return fault


def _slow_instance(draw: Draw) -> FaultSpec:
    instance = int(draw.random.integers(draw.executors))
    return FaultSpec("slow-instance", draw.at_s, instance=instance, factor=1.5 + 3.0 * draw.strength)


def _small_files(draw: Draw) -> FaultSpec:
    file_s = draw.seconds / (_FILES * (LISTING_PART + 1 / draw.tasks_at_once))
    return FaultSpec("small-files", draw.at_s, rows=draw.rows / _FILES, file_s=file_s)


def _failures(draw: Draw) -> FaultSpec:
    return FaultSpec("task-failures", draw.at_s, share=min(_MOST_FAILING, 0.05 + 0.08 * draw.strength))


def _dying(draw: Draw) -> FaultSpec:
    every_s = max(40.0, 4.0 * draw.trigger_s) / max(0.5, draw.strength)
    return FaultSpec("dying-executors", draw.at_s, every_s=every_s)


FAULTS: dict[str, Callable[[Draw], FaultSpec]] = {
    "slow-sink": lambda draw: FaultSpec(
        "slow-sink", draw.at_s, seconds=draw.seconds, job=bool(draw.random.integers(2))
    ),
    "slow-commit": _driver("slow-commit"),
    "slow-planning": _driver("slow-planning"),
    "slow-source": _driver("slow-source"),
    "slow-scheduling": _scheduling,
    "collecting": lambda draw: FaultSpec("collecting", draw.at_s, row_s=draw.seconds / draw.rows),
    "small-files": _small_files,
    "outside-system": waiting_fault("outside-system", lambda draw: draw.work),
    "slow-network": waiting_fault("slow-network", lambda draw: draw.keyed),
    "contention": lambda draw: FaultSpec("contention", draw.at_s, share=min(0.8, 0.3 + 0.4 * draw.strength)),
    "memory": _memory,
    "spill": _spill,
    "state-store": _state_store,
    "task-failures": _failures,
    "poison-row": lambda draw: FaultSpec("poison-row", draw.at_s, component=draw.work, instance=0, attempts=3),
    "dying-executors": _dying,
    "stalled-watermark": lambda draw: FaultSpec("stalled-watermark", draw.at_s),
    "costly-keys": partition_fault("costly-keys"),
    "slow-instance": _slow_instance,
    "hot-key": lambda draw: FaultSpec(
        "hot-key", draw.at_s, component=draw.keyed, share=min(0.7, 0.2 + 0.4 * draw.strength)
    ),
}


def draw_case(seed: int, kinds: tuple[str, ...]) -> Case:
    """Return a run with these kinds of fault. The seed determines everything else."""
    random = np.random.default_rng([seed, 2026])
    executors = int(random.integers(3, 11))
    partitions = executors * int(random.integers(1, 5))
    load, rate = float(random.uniform(0.3, 0.6)), float(random.choice([300.0, 2000.0, 20_000.0]))
    rows = rate * TRIGGER_S
    noise = float(random.choice([0.02, 0.05, 0.1]))
    at_s = QUIET_S + float(random.uniform(0.0, 100.0))
    faults = [
        FAULTS[kind](Draw(random, float(random.uniform(0.35, 1.5)), rows, executors, partitions, at_s))
        for kind in kinds
        if kind != CLEAN
    ]
    if random.random() < 0.2:
        faults.append(FaultSpec("metric-gap", 0.0, share=float(random.uniform(0.02, 0.1))))
    scenario = Scenario(
        name=f"{'+'.join(kinds)}-{seed}",
        title="a random run",
        engine=MicrobatchSpec(
            trigger_s=TRIGGER_S, executors=executors, max_executors=40, rows_per_trigger=_MOST_BATCH * rows
        ),
        duration_s=DURATION_S,
        components=_components(random, load, rows, executors, partitions),
        workload=WorkloadSpec(rate_per_s=rate, noise=Noise(noise, float(random.uniform(0.0, 0.6)))),
        service_noise=Noise(noise, 0.3),
        faults=tuple(faults),
        seed=seed,
    )
    return Case(scenario, kinds)


def _components(
    random: np.random.Generator, load: float, rows: float, executors: int, partitions: int
) -> tuple[ComponentSpec, ...]:
    """A source, a stage that works and one with state, which take `load` of the trigger interval together."""
    busy_s = load * TRIGGER_S * executors
    parts = random.dirichlet([2.0, 4.0, 4.0])
    rates = [rows / max(busy_s * float(part), 1e-3) for part in parts]
    stateful = ComponentSpec(
        _COUNT,
        inputs=(_WORK,),
        parallelism=partitions,
        rate_per_s=rates[2],
        keyed=True,
        keys=5000,
        stateful=True,
    )
    return (
        ComponentSpec(_SOURCE, "source", parallelism=partitions, rate_per_s=rates[0]),
        ComponentSpec(_WORK, inputs=(_SOURCE,), parallelism=partitions, rate_per_s=rates[1]),
        stateful,
    )
