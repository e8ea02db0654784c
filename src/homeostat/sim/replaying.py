"""How long recorded batches would take in the simulator, each with the rows, tasks and executors it really had."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from homeostat.core.observation import Array
from homeostat.sim.recording import RecordedBatch
from homeostat.sim.scheduling import makespan_s
from homeostat.sim.slowness import Slowness
from homeostat.sim.spec import ComponentSpec, MicrobatchSpec, Noise
from homeostat.sim.stages import Routing, stage_rows, work


def replay(
    components: tuple[ComponentSpec, ...],
    engine: MicrobatchSpec,
    noise: Noise,
    batches: Sequence[RecordedBatch],
    seeds: Sequence[int],
) -> Array:
    """Batch durations: a row per seed, a column per batch."""
    planned = [_plan(components, batch) for batch in batches]
    return np.array([_durations(planned, engine, Slowness(noise, engine, seed)) for seed in seeds])


# Name, seconds of the tasks without noise, and executors of each stage of a batch.
_Stage = tuple[str, Array, int]


def _plan(components: tuple[ComponentSpec, ...], batch: RecordedBatch) -> list[_Stage]:
    sources = [component.name for component in components if component.kind == "source"]
    partitions = {each.name: len(batch.tasks[each.name].rows) if each.name in batch.tasks else 1 for each in components}
    rows = stage_rows(components, {name: round(batch.rows / len(sources)) for name in sources}, partitions)
    stages: list[_Stage] = []
    for component in components:
        if (tasks := batch.tasks.get(component.name)) is not None:
            planned = work(component, rows[component.name], Routing(len(tasks.rows)))
            stages.append((component.name, planned.seconds, len(set(tasks.executor.tolist()))))
    return stages


def _durations(planned: Sequence[Sequence[_Stage]], engine: MicrobatchSpec, slowness: Slowness) -> list[float]:
    found = []
    for number, stages in enumerate(planned):
        factor = slowness.next_batch()
        seconds = engine.driver_s * slowness.driver(number) + engine.commit_s
        for name, tasks, executors in stages:
            noisy = tasks * factor * slowness.tasks(name, number, len(tasks))
            seconds += makespan_s(noisy, executors * engine.slots)
        found.append(seconds)
    return found
