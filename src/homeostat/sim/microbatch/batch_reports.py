"""A finished batch: the observation that Spark's sensors would give, and whether the batch kept up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.objective import Objective
from homeostat.core.observation import FlowSample, Observation, WorkerSample
from homeostat.sim.microbatch.batches import Batch
from homeostat.sim.microbatch.executors import Executor
from homeostat.sim.truth import REACHED_SHARE

# A batch is late from this many trigger intervals on. The margin allows for a driver that starts a little late.
LATE_FROM = 1.05
# The rows of this many batches may wait: those that arrived during the last one, and as many again. Both are choices.
MOST_PENDING_BATCHES = 2


@dataclass(frozen=True, slots=True)
class Finished:
    """A batch that ended at `at_s`. `span_s` and `arrived_rows` (at each source) count from the previous batch."""

    batch: Batch
    at_s: float
    span_s: float
    trigger_s: float
    arrived_rows: int
    pending_rows: Mapping[str, int]

    @property
    def seconds(self) -> float:
        return self.at_s - self.batch.started_s

    @property
    def arrival_per_s(self) -> float:
        return len(self.batch.taken_rows) * self.arrived_rows / self.span_s

    @property
    def taken_per_s(self) -> float:
        return sum(self.batch.taken_rows.values()) / self.span_s

    def kept_up(self, objective: Objective) -> bool:
        """Whether the batch kept up with the load, or at least with the objective."""
        pending_rows, taken_rows = sum(self.pending_rows.values()), sum(self.batch.taken_rows.values())
        if self.trigger_s > 0:
            in_time = self.seconds <= LATE_FROM * self.trigger_s
            keeps_up = in_time and pending_rows <= max(1.0, MOST_PENDING_BATCHES * self.arrival_per_s * self.trigger_s)
        else:
            keeps_up = pending_rows <= MOST_PENDING_BATCHES * max(
                1, taken_rows, len(self.batch.taken_rows) * self.arrived_rows
            )
        asked_per_s = objective.throughput_per_s
        if keeps_up or asked_per_s is None:
            return keeps_up
        return self.taken_per_s >= REACHED_SHARE * min(asked_per_s, self.arrival_per_s)


def observation(
    finished: Finished, alive: Sequence[Executor], dead: Sequence[Executor], slots: int, run: str
) -> Observation:
    """The batch as sensors would report it. A micro-batch has no inner queues and no back-pressure."""
    batch = finished.batch
    workers = [*alive, *dead]
    index = {executor.number: i for i, executor in enumerate(workers)}
    phases_s = batch.phases_s(finished.at_s)
    updated_keys = float(sum(stage.work.keys.sum() for stage in batch.stages if stage.homes is not None))
    flows = tuple(
        FlowSample(
            source,
            rows=float(rows),
            seconds=finished.seconds,
            trigger_s=finished.trigger_s,
            arrival_per_s=finished.arrived_rows / finished.span_s,
            pending_rows=float(finished.pending_rows[source]),
            updated_keys=updated_keys,
            phases_s=phases_s,
        )
        for source, rows in batch.taken_rows.items()
    )
    return Observation(
        at_s=finished.at_s,
        span_s=finished.span_s,
        batch=batch.number,
        flows=flows,
        tasks={stage.spec.name: stage.sample(index) for stage in batch.stages},
        workers=WorkerSample(
            ids=tuple(executor.id for executor in workers),
            hosts=tuple(executor.host for executor in workers),
            slots=np.full(len(workers), float(slots)),
            alive=np.arange(len(workers)) < len(alive),
        ),
        run=run,
        keys={stage.spec.name: stage.keys for stage in batch.stages if stage.spec.keyed},
    )
