"""A recorded batch that is simple enough to replay by hand."""

from __future__ import annotations

import numpy as np

from homeostat.core.observation import Array
from homeostat.models.batch_replay import BatchModel, Setup, Stage
from homeostat.models.task_cost_model import NO_SLOWING, TaskCost

EVEN = np.full(12, 1.0 / 12)

SETUP = Setup(executors=3, trigger_s=10.0)


def stage(name: str = "count", *, row_s: float = 0.001, task_s: float = 0.0, shares: Array = EVEN) -> Stage:
    return Stage(name, TaskCost(task_s, row_s, slowing=NO_SLOWING), shares, 1.0, np.zeros((3, len(shares))))


def model(*stages: Stage, driver_s: float = 0.5, slots: int = 1, slow: tuple[float, ...] = ()) -> BatchModel:
    return BatchModel(stages or (stage(),), np.full(3, driver_s), np.zeros(3), slots, SETUP, slow)
