"""Random simulated runs with two or three problems at almost the same time, for `homeostat bench mixes`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from homeostat.sim.scenario.spec import (
    ComponentSpec,
    DataflowSpec,
    FaultSpec,
    MicrobatchSpec,
    Noise,
    Scenario,
    Spike,
    WorkloadSpec,
)

DATAFLOW, MICROBATCH = "dataflow", "microbatch"
ENGINES = (DATAFLOW, MICROBATCH)
SLOW_WORKER, HOT_KEY, DOUBLED_LOAD, LOST_EXECUTOR = "slow-worker", "hot-key", "doubled-load", "lost-executor"
SLOW_SINK, HASH_IMBALANCE, SOURCE_SKEW = "slow-sink", "hash-imbalance", "source-skew"
KINDS = (SLOW_WORKER, HOT_KEY, DOUBLED_LOAD, LOST_EXECUTOR, SLOW_SINK, HASH_IMBALANCE, SOURCE_SKEW)
# The sources of the dataflow engine always give each instance the same number of rows.
MISSING = {DATAFLOW: (SOURCE_SKEW,), MICROBATCH: ()}
SOURCE, WORK, COUNT = "read", "parse", "count"
INTERVAL_S = 10.0
# A run begins without trouble, so that there is something to compare with. Then it lasts for twice
# the time in which a backlog should be worked off.
QUIET_S, TROUBLED_S = 600.0, 1200.0
# In half of the runs, all problems begin at the same time; in the others, they begin within about this time.
_APART_S = 60.0
# Many keys of the same size: rows are even unless a problem makes them uneven.
_KEYS = 20_000
_NOISE = Noise(0.03, 0.3)


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario with these kinds of problems. They begin at `begins_s`, in the order of `kinds`."""

    scenario: Scenario
    kinds: tuple[str, ...]
    begins_s: tuple[float, ...]

    @property
    def first_s(self) -> float:
        return min(self.begins_s)

    @property
    def name(self) -> str:
        return " + ".join(self.kinds)


class _Draw(NamedTuple):
    random: np.random.Generator
    executors: int
    partitions: int
    at_s: float

    def between(self, low: float, high: float) -> float:
        return float(self.random.uniform(low, high))


def mixes(engine: str, sizes: tuple[int, ...] = (2, 3)) -> list[tuple[str, ...]]:
    """All combinations of this many kinds of problems that the engine can have."""
    kinds = [kind for kind in KINDS if kind not in MISSING[engine]]
    return [mix for size in sizes for mix in combinations(kinds, size)]


def draw_case(engine: str, kinds: tuple[str, ...], seed: int) -> Case:
    """Return a run with these kinds of problems. The seed determines everything else."""
    random = np.random.default_rng([seed, 31])
    executors = int(random.integers(4, 9))
    partitions = executors * int(random.integers(2, 5))
    apart_s = _APART_S if random.random() < 0.5 else 0.0
    begins_s = tuple(QUIET_S + float(random.uniform(0.0, INTERVAL_S + apart_s)) for _ in kinds)
    if not apart_s:
        begins_s = begins_s[:1] * len(kinds)
    build = _microbatch if engine == MICROBATCH else _dataflow
    scenario = build(random, executors, partitions, kinds)
    faults, spikes = [], []
    for kind, at_s in zip(kinds, begins_s, strict=True):
        draw = _Draw(random, executors, partitions, at_s)
        if kind == DOUBLED_LOAD:
            spikes.append(Spike(at_s, scenario.duration_s, draw.between(1.8, 2.2)))
        else:
            faults.append(_FAULTS[engine][kind](draw))
    scenario = replace(
        scenario,
        name=f"{'+'.join(kinds)}-{seed}",
        faults=tuple(faults),
        workload=replace(scenario.workload, spikes=tuple(spikes)),
        seed=seed,
    )
    return Case(scenario, kinds, begins_s)


def _slow(component: str) -> Callable[[_Draw], FaultSpec]:
    return lambda draw: FaultSpec(
        "slow-instance",
        draw.at_s,
        component=component,
        instance=int(draw.random.integers(draw.executors)),
        factor=draw.between(2.5, 6.0),
    )


def _lost(component: str) -> Callable[[_Draw], FaultSpec]:
    """An instance that is lost. The cluster replaces it after one to five minutes."""
    return lambda draw: FaultSpec(
        "crash",
        draw.at_s,
        draw.at_s + draw.between(60.0, 300.0),
        component=component,
        instance=int(draw.random.integers(draw.executors)),
    )


def _hot(component: str) -> Callable[[_Draw], FaultSpec]:
    return lambda draw: FaultSpec("hot-key", draw.at_s, component=component, share=draw.between(0.3, 0.6))


def _imbalance(partitions: Callable[[_Draw], int]) -> Callable[[_Draw], FaultSpec]:
    """Half of the partitions that could be busy at once, or fewer, get all rows."""

    def fault(draw: _Draw) -> FaultSpec:
        count = partitions(draw)
        divisors = [n for n in range(2, count + 1) if count % n == 0 and 1 <= count // n <= max(1, draw.executors // 2)]
        stride = int(draw.random.choice(divisors[:2]))
        return FaultSpec("hash-imbalance", draw.at_s, component=COUNT, stride=stride)

    return fault


_FAULTS: dict[str, dict[str, Callable[[_Draw], FaultSpec]]] = {
    MICROBATCH: {
        SLOW_WORKER: _slow(""),
        HOT_KEY: _hot(COUNT),
        LOST_EXECUTOR: _lost(""),
        SLOW_SINK: lambda draw: FaultSpec("slow-sink", draw.at_s, seconds=draw.between(0.2, 0.45) * INTERVAL_S),
        HASH_IMBALANCE: _imbalance(lambda draw: draw.partitions),
        SOURCE_SKEW: _hot(SOURCE),
    },
    DATAFLOW: {
        SLOW_WORKER: _slow(WORK),
        HOT_KEY: _hot(COUNT),
        LOST_EXECUTOR: _lost(WORK),
        SLOW_SINK: lambda draw: FaultSpec("stuck-sink", draw.at_s, draw.at_s + draw.between(60.0, 180.0)),
        HASH_IMBALANCE: _imbalance(lambda draw: draw.executors),
    },
}


def _microbatch(random: np.random.Generator, executors: int, partitions: int, kinds: tuple[str, ...]) -> Scenario:
    """A source, a stage that works and one with state. Together they take `busy` of the trigger interval."""
    rate = float(random.choice([1_000.0, 5_000.0, 20_000.0]))
    busy_s = float(random.uniform(0.45, 0.6)) * INTERVAL_S * executors
    source, work, count = (rate * INTERVAL_S / (busy_s * float(part)) for part in random.dirichlet([3.0, 5.0, 8.0]))
    skews = SOURCE_SKEW in kinds
    return Scenario(
        name="mix",
        title="several problems at once",
        engine=MicrobatchSpec(
            trigger_s=INTERVAL_S,
            executors=executors,
            max_executors=40,
            rows_per_trigger=4.0 * rate * INTERVAL_S,
            executor_start_s=float(random.uniform(8.0, 20.0)),
        ),
        duration_s=QUIET_S + TROUBLED_S,
        components=(
            ComponentSpec(SOURCE, "source", parallelism=partitions, rate_per_s=source, keyed=skews, keys=_KEYS),
            ComponentSpec(WORK, inputs=(SOURCE,), parallelism=partitions, rate_per_s=work),
            ComponentSpec(
                COUNT, inputs=(WORK,), parallelism=partitions, rate_per_s=count, keyed=True, keys=_KEYS, stateful=True
            ),
        ),
        workload=WorkloadSpec(rate_per_s=rate, noise=_NOISE),
        service_noise=_NOISE,
    )


def _dataflow(random: np.random.Generator, executors: int, partitions: int, kinds: tuple[str, ...]) -> Scenario:
    """A word count with `executors` instances of each stage, so that every instance matters."""
    rate, load = float(random.choice([1_000.0, 5_000.0, 20_000.0])), float(random.uniform(0.6, 0.75))
    per_instance = rate / (load * executors)
    return Scenario(
        name="mix",
        title="several problems at once",
        engine=DataflowSpec(tick_s=INTERVAL_S, redeploy_s=float(random.uniform(20.0, 40.0))),
        duration_s=QUIET_S + TROUBLED_S,
        components=(
            ComponentSpec(SOURCE, "source", parallelism=2, rate_per_s=3.0 * rate, minimum=2, maximum=20),
            ComponentSpec(WORK, inputs=(SOURCE,), parallelism=executors, rate_per_s=per_instance, maximum=60),
            ComponentSpec(
                COUNT,
                inputs=(WORK,),
                parallelism=executors,
                rate_per_s=per_instance,
                keyed=True,
                keys=_KEYS,
                maximum=60,
            ),
        ),
        workload=WorkloadSpec(rate_per_s=rate, noise=_NOISE),
        service_noise=_NOISE,
    )
