"""Batches with phases, stages and costs of tasks, for tests of what takes the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from homeostat.core.observation import NAN, FlowSample, Observation, TaskCosts, TaskSample, WorkerSample

TRIGGER_S = 10.0


def stage(
    run_s: Sequence[float], *, rows: Sequence[float] = (), began_s: float = 1.0, slots: int = 2, **costs: float
) -> TaskSample:
    """One stage whose tasks run on `slots` workers in turn. `costs` are the same for all of its tasks."""
    count = len(run_s)
    seconds = np.array(run_s)
    columns: dict[str, Any] = {name: np.full(count, value) for name, value in costs.items()}
    task_costs = replace(TaskCosts.unknown(count), **columns)
    free_s = [0.0] * slots
    finish_s, worker = [], []
    for task_s in run_s:
        slot = int(np.argmin(free_s))
        free_s[slot] += task_s
        finish_s.append(free_s[slot])
        worker.append(slot)
    unknown = np.full(count, NAN)
    return TaskSample(
        rows=np.array(rows) if len(rows) else np.full(count, 100.0),
        run_s=seconds,
        rows_out=unknown,
        pending_rows=unknown,
        pressured_s=unknown,
        finish_s=np.array(finish_s),
        worker=np.array(worker, dtype=np.int64),
        costs=task_costs,
        began_s=began_s,
        ended_s=began_s + max(free_s),
    )


def batch(
    tasks: Mapping[str, TaskSample],
    *,
    number: int = 1,
    seconds: float,
    phases_s: Mapping[str, float],
    trigger_s: float = TRIGGER_S,
    slots: int = 2,
    **others: Any,
) -> Observation:
    ids = tuple(str(id) for id in range(slots))
    flow = FlowSample(
        "read", rows=1000.0, seconds=seconds, trigger_s=trigger_s, arrival_per_s=100.0, pending_rows=0.0,
        updated_keys=0.0, phases_s=phases_s,
    )  # fmt: skip
    workers = WorkerSample(ids, tuple(f"host-{id}" for id in ids), np.ones(slots), np.ones(slots, dtype=np.bool_))
    return Observation(20.0 * number, max(seconds, trigger_s), number, (flow,), tasks, workers, run="run", **others)


def slow_sink(sink_s: float, count: int = 6, **others: Any) -> list[Observation]:
    """Batches of a tenth of a second of planning, two seconds of tasks and a sink."""
    phases_s = {"queryPlanning": 0.1, "addBatch": 2.0 + sink_s}
    tasks = {"read": stage([1.0, 1.0, 1.0, 1.0], began_s=0.1)}
    return [
        batch(tasks, number=number, seconds=2.1 + sink_s, phases_s=phases_s, **others) for number in range(1, count + 1)
    ]
