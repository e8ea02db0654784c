"""What the resolvers are shown: a stage of a dataflow, and one of micro-batches."""

from __future__ import annotations

from collections.abc import Sequence

from homeostat.core.objective import Objective
from homeostat.core.observation import Array, TaskSample
from homeostat.core.view import View
from homeostat.testing import instances, observations, view_of


def stage(
    arrival_per_s: float | Sequence[float] | Array,
    split: TaskSample | int = 4,
    *,
    pending_rows: float = 0.0,
    objective: Objective | None = None,
    count: int = 20,
) -> View:
    """lines → split, whose instances take 100/s each unless given."""
    sample = split if isinstance(split, TaskSample) else instances([100.0] * split, 1.0)
    tasks = {"lines": instances(100.0, 0.01), "split": sample}
    observed = observations(count, tasks, arrival_per_s=arrival_per_s, pending_rows=pending_rows)
    return view_of(observed, objective=objective)


def batches(arrival_per_s: float) -> View:
    """60 partitions of one second on 10 executors: 6 waves, and 2 s beside them."""
    tasks = {"lines": instances([100.0] * 4, 0.1, finish_s=0.1), "split": instances([10.0] * 60, 1.0, finish_s=6.0)}
    flow = {"arrival_per_s": arrival_per_s, "rows": 600.0, "seconds": 8.1, "trigger_s": 10.0}
    return view_of(observations(8, tasks, executors=10, **flow))
