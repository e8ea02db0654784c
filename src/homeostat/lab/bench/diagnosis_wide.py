"""Random simulated runs far beyond those of `diagnosis_cases`, for `homeostat bench diagnosis --draw wide`.

Nothing is learned from these runs, and no threshold was chosen with them. They show how good a diagnosis is for
applications that differ from those it was developed with: triggers of a second to five minutes, 2 to 64 executors, one
to six stages, faults from hardly noticeable to several times the trigger interval, up to three of them, which begin
early or late, come again, grow, or end, with other noise and more missing metrics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from homeostat.lab.bench.diagnosis_cases import CLEAN, FAULTS, Case, Draw, partition_fault, waiting_fault
from homeostat.sim.microbatch.disturbances import GC_SHARE
from homeostat.sim.scenario.spec import (
    ComponentSpec,
    FaultSpec,
    MicrobatchSpec,
    Noise,
    Scenario,
    Spike,
    WorkloadSpec,
)

MORE_LOAD = "more-load"
_SOURCE, _OTHER_SOURCE, _LAST = "read", "lookup", "count"
_SHORTEST_TRIGGER_S, _LONGEST_TRIGGER_S = 1.0, 300.0
_FEWEST_EXECUTORS, _MOST_EXECUTORS, _MOST_SLOTS, _MOST_STAGES = 2, 64, 128, 6
_WEAKEST, _STRONGEST = 0.1, 5.0
_QUIETEST, _NOISIEST, _USUAL_NOISE = 0.3, 3.0, (0.02, 0.05, 0.1)
# The numbers of batches before the first fault and after it, and the least time after it.
_EARLY_BATCHES, _LATE_BATCHES, _BATCHES_AFTER, _LEAST_AFTER_S = (8, 20), (40, 100), (25, 45), 200.0
# The shares of runs with two or with three kinds of fault.
_PAIRS, _TRIPLES = 0.25, 0.15
# The shares of faults that stop for a while and come again, that end before the run does, and that grow.
_COMES_AGAIN, _ENDS, _GROWS = 0.15, 0.08, 0.15
_STATE_KINDS = frozenset({"state-store", "stalled-watermark"})
_GROWING_KINDS = frozenset(
    {"slow-sink", "slow-commit", "slow-planning", "slow-source", "slow-scheduling", "collecting", "small-files"}
)
_JOIN_KIND = "skewed-join"


@dataclass(frozen=True, slots=True)
class _Shape:
    """The application. `works` are the stages between the source and the last one."""

    trigger_s: float
    executors: int
    slots: int
    partitions: int
    rows: float
    load: float
    works: tuple[str, ...]
    has_keys: bool
    stateful: bool
    joins: bool

    @property
    def stages(self) -> int:
        return 1 + len(self.works) + self.has_keys + self.joins


def _slow_host(draw: Draw) -> FaultSpec:
    return FaultSpec("slow-host", draw.at_s, host="host-0", factor=1.5 + 3.0 * draw.strength)


def _driver_memory(draw: Draw) -> FaultSpec:
    """The heap is so full that garbage collection costs `draw.seconds`, for a driver that plans for half a second."""
    cost = draw.seconds / (GC_SHARE * 0.5)
    return FaultSpec("driver-memory", draw.at_s, share=min(0.98, cost / (1.0 + cost)))


def _rising_cost(draw: Draw) -> FaultSpec:
    """Within thirty batches, or more if they are short, the cost grows to 1.5 + `strength` times its value."""
    growth = (0.5 + draw.strength) * 3600.0 / max(_LEAST_AFTER_S, 30 * draw.trigger_s)
    return FaultSpec("rising-cost", draw.at_s, component=draw.keyed, growth=growth)


def _imbalance(draw: Draw) -> FaultSpec:
    divisors = [n for n in range(2, draw.partitions + 1) if draw.partitions % n == 0]
    stride = int(draw.random.choice(divisors[:3])) if divisors else 2
    return FaultSpec("hash-imbalance", draw.at_s, component=draw.keyed, stride=stride)


# State that grows is left out: detecting it takes hours.
WIDE_FAULTS: dict[str, Callable[[Draw], FaultSpec]] = {
    **FAULTS,
    "slow-host": _slow_host,
    "slow-fetch": waiting_fault("slow-fetch", lambda draw: _SOURCE),
    "driver-memory": _driver_memory,
    "rising-cost": _rising_cost,
    "hash-imbalance": _imbalance,
    _JOIN_KIND: partition_fault(_JOIN_KIND),
}
WIDE_KINDS = (*WIDE_FAULTS, MORE_LOAD)


def wide_cases(runs: int, first_seed: int) -> Iterator[Case]:
    """Each kind of fault in turn, often with one or two others, and clean runs as often as one kind."""
    for seed in range(first_seed, first_seed + runs):
        random = np.random.default_rng([seed, 41])
        kinds = [(CLEAN, *WIDE_KINDS)[seed % (1 + len(WIDE_KINDS))]]
        others = [kind for kind in WIDE_KINDS if kind not in kinds]
        drawn = random.random()
        more = 2 if drawn < _TRIPLES else int(drawn < _TRIPLES + _PAIRS)
        kinds += random.choice(others, more, replace=False).tolist() if kinds != [CLEAN] else []
        yield draw_wide_case(seed, tuple(kinds))


def draw_wide_case(seed: int, kinds: tuple[str, ...]) -> Case:
    """Return a run with these kinds of fault. The seed determines everything else."""
    random = np.random.default_rng([seed, 2027])
    shape = _shape(random, kinds)
    quiet = _EARLY_BATCHES if random.random() < 0.4 else _LATE_BATCHES
    began_s = shape.trigger_s * int(random.integers(*quiet))
    strengths = {kind: _logarithmic(random, _WEAKEST, _STRONGEST) for kind in kinds if kind != CLEAN}
    # Late batches are long: with the strongest faults, fewer of them fit into the same time.
    longest = 1.0 + sum(strengths.values())
    after_s = max(_LEAST_AFTER_S, shape.trigger_s * int(random.integers(*_BATCHES_AFTER)) * longest)
    faults: list[FaultSpec] = []
    spikes: list[Spike] = []
    for kind, strength in strengths.items():
        at_s = began_s + float(random.uniform(0.0, 5.0)) * shape.trigger_s
        if kind == MORE_LOAD:
            spikes.append(Spike(at_s, began_s + after_s, 1.0 + strength))
        else:
            fault = WIDE_FAULTS[kind](_draw(random, shape, strength, at_s))
            faults += _over_time(random, fault, began_s + after_s)
    if random.random() < 0.3:
        faults.append(FaultSpec("metric-gap", 0.0, share=float(random.uniform(0.02, 0.3))))
    noise = float(random.choice(_USUAL_NOISE)) * _logarithmic(random, _QUIETEST, _NOISIEST)
    scenario = Scenario(
        name=f"wide-{'+'.join(kinds)}-{seed}",
        title="a random run of an unusual application",
        engine=_engine(random, shape),
        duration_s=began_s + after_s,
        components=_components(random, shape),
        workload=WorkloadSpec(
            rate_per_s=shape.rows / shape.trigger_s,
            noise=Noise(noise, float(random.uniform(0.0, 0.6))),
            spikes=tuple(spikes),
        ),
        service_noise=Noise(noise, 0.3),
        faults=tuple(faults),
        seed=seed,
    )
    return Case(scenario, kinds)


def _logarithmic(random: np.random.Generator, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))


def _shape(random: np.random.Generator, kinds: tuple[str, ...]) -> _Shape:
    trigger_s = round(_logarithmic(random, _SHORTEST_TRIGGER_S, _LONGEST_TRIGGER_S), 1)
    executors = round(_logarithmic(random, _FEWEST_EXECUTORS, _MOST_EXECUTORS))
    slots = min(int(random.choice([1, 1, 2, 4])), _MOST_SLOTS // executors)
    partitions = max(2, round(executors * slots * float(random.choice([0.6, 1.0, 1.5, 2.0, 3.0]))))
    rows = max(trigger_s * _logarithmic(random, 50.0, 50_000.0), 50.0 * partitions)
    only_source = kinds == (CLEAN,) and random.random() < 0.2
    works = 0 if only_source else int(random.integers(0, _MOST_STAGES - 1))
    joins = _JOIN_KIND in kinds or (works > 0 and random.random() < 0.15)
    return _Shape(
        trigger_s=trigger_s,
        executors=executors,
        slots=slots,
        partitions=partitions,
        rows=rows,
        load=float(random.uniform(0.15, 0.65)),
        works=tuple(f"step-{number}" for number in range(1, works + 1)),
        has_keys=not only_source,
        stateful=bool(_STATE_KINDS & set(kinds)) or random.random() < 0.6,
        joins=joins and not only_source,
    )


def _draw(random: np.random.Generator, shape: _Shape, strength: float, at_s: float) -> Draw:
    return Draw(
        random,
        strength,
        shape.rows,
        shape.executors,
        shape.partitions,
        at_s,
        trigger_s=shape.trigger_s,
        slots=shape.slots,
        stages=shape.stages,
        work=str(random.choice(shape.works)) if shape.works else _SOURCE,
        keyed=_LAST,
    )


def _over_time(random: np.random.Generator, fault: FaultSpec, end_s: float) -> list[FaultSpec]:
    """The fault as it is; or one that stops and comes again, that ends, or that grows to the same strength."""
    drawn, left_s = random.random(), end_s - fault.at_s
    if drawn < _COMES_AGAIN:
        return [replace(fault, until_s=fault.at_s + 0.25 * left_s), replace(fault, at_s=fault.at_s + 0.5 * left_s)]
    if drawn < _COMES_AGAIN + _ENDS:
        return [replace(fault, until_s=fault.at_s + 0.3 * left_s)]
    if drawn < _COMES_AGAIN + _ENDS + _GROWS and fault.kind in _GROWING_KINDS:
        times = float(random.uniform(2.0, 6.0))
        first = {name: getattr(fault, name) / times for name in ("seconds", "row_s", "task_s", "file_s")}
        return [replace(fault, growth=(times - 1.0) * 3600.0 / left_s, **first)]
    return [fault]


def _engine(random: np.random.Generator, shape: _Shape) -> MicrobatchSpec:
    return MicrobatchSpec(
        trigger_s=shape.trigger_s,
        executors=shape.executors,
        slots=shape.slots,
        max_executors=4 * shape.executors + 10,
        rows_per_trigger=float(random.choice([1.5, 2.0, 5.0])) * shape.rows,
        driver_s=min(0.5, 0.05 * shape.trigger_s),
        commit_s=min(0.2, 0.02 * shape.trigger_s),
        hosts=int(random.choice([2, 4, 8])),
        straggler_share=float(random.choice([0.0, 0.0, 0.0, 0.01])),
    )


def _components(random: np.random.Generator, shape: _Shape) -> tuple[ComponentSpec, ...]:
    """One stage after the other, which together take `load` of the trigger interval."""
    names = [_SOURCE, *([_OTHER_SOURCE] if shape.joins else []), *shape.works, *([_LAST] if shape.has_keys else [])]
    busy_s = shape.load * shape.trigger_s * min(shape.executors * shape.slots, shape.partitions)
    parts = random.dirichlet([3.0] * len(names))
    keys = shape.partitions * int(random.choice([50, 500]))
    components: list[ComponentSpec] = []
    before = ""
    for name, part in zip(names, parts.tolist(), strict=True):
        is_source, is_last = name in (_SOURCE, _OTHER_SOURCE), name == _LAST
        components.append(
            ComponentSpec(
                name,
                "source" if is_source else "operator",
                inputs=() if is_source else (before, _OTHER_SOURCE) if is_last and shape.joins else (before,),
                parallelism=shape.partitions,
                rate_per_s=shape.rows / max(busy_s * part, 1e-6),
                keyed=is_last,
                keys=keys if is_last else 1000,
                stateful=is_last and shape.stateful,
                task_s=min(0.02, 0.002 * shape.trigger_s),
            )
        )
        before = name if name != _OTHER_SOURCE else before
    return tuple(components)
