"""Simulate recorded batches, each with the rows, tasks and executors that it really had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from homeostat.core.observation import Array
from homeostat.recorded_data.run import RecordedBatch
from homeostat.sim.microbatch.slowness import Slowness
from homeostat.sim.microbatch.stages import Routing, busy_executors, stage_rows, work
from homeostat.sim.microbatch.task_scheduling import makespan_s
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Noise

# A prime, so that the seeds of different runs do not coincide.
SEEDS_APART = 1_000_003
# A stage of a batch: its name, the seconds of its tasks without noise, and its executors.
_Stage = tuple[str, Array, int]


def replay(
    components: tuple[ComponentSpec, ...],
    engine: MicrobatchSpec,
    noise: Noise,
    batches: Sequence[RecordedBatch],
    seeds: Sequence[int],
) -> Array:
    """Batch durations: a row per seed, a column per batch. Each recorded run has its own noise."""
    driver_s, tasks_s = replay_parts(components, engine, noise, batches, seeds)
    return driver_s + tasks_s


def replay_parts(
    components: tuple[ComponentSpec, ...],
    engine: MicrobatchSpec,
    noise: Noise,
    batches: Sequence[RecordedBatch],
    seeds: Sequence[int],
) -> tuple[Array, Array]:
    """The driver's part of each duration, and the part of the tasks."""
    by_run = groupby(batches, key=lambda batch: batch.run)
    runs = [[_plan(components, engine, batch) for batch in run] for _, run in by_run]

    def parts(seed: int) -> Iterator[tuple[float, float]]:
        for number, run in enumerate(runs):
            yield from _parts(run, engine, Slowness(noise, engine, seed + number * SEEDS_APART))

    driver_s, tasks_s = np.moveaxis(np.array([list(parts(seed)) for seed in seeds]), 2, 0)
    return driver_s, tasks_s


def _plan(components: tuple[ComponentSpec, ...], engine: MicrobatchSpec, batch: RecordedBatch) -> list[_Stage]:
    sources = [component.name for component in components if component.kind == "source"]
    partitions = {each.name: len(batch.tasks[each.name].rows) if each.name in batch.tasks else 1 for each in components}
    rows = stage_rows(components, {name: round(batch.rows / len(sources)) for name in sources}, partitions)
    stages: list[_Stage] = []
    for component in components:
        if (tasks := batch.tasks.get(component.name)) is not None:
            busy = busy_executors(tasks.executors, len(tasks.rows), engine.slots)
            planned = work(component, rows[component.name], Routing(len(tasks.rows)), busy)
            stages.append((component.name, planned.seconds, tasks.executors))
    return stages


def _parts(
    planned: Sequence[Sequence[_Stage]], engine: MicrobatchSpec, slowness: Slowness
) -> Iterator[tuple[float, float]]:
    for number, stages in enumerate(planned):
        factor = slowness.next_batch()
        noisy = ((tasks * slowness.tasks(name, number, len(tasks)), executors) for name, tasks, executors in stages)
        tasks_s = factor * sum(makespan_s(tasks, executors * engine.slots) for tasks, executors in noisy)
        yield engine.driver_s * slowness.driver(number) + engine.commit_s, tasks_s
