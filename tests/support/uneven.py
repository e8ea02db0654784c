"""Batches whose partitions are uneven, for the diagnoser that explains it and the resolver that fixes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from homeostat.core.configuration import EXECUTORS_KNOB, STATE_PARTITIONS, Capabilities, Knob, KnobSpec
from homeostat.core.observation import Balance, TaskSample
from homeostat.core.topology import Component, Topology
from homeostat.core.view import View
from homeostat.testing import instances, observations, view_of

STATE = Knob(STATE_PARTITIONS, "main")
SHAPE = Topology(
    (
        Component("lines", "source", EXECUTORS_KNOB),
        Component("count", "operator", EXECUTORS_KNOB, ("lines",), keyed=True, partitions=STATE),
    )
)
EMPTY_ONES = [800.0, 0.0, 0.0, 0.0, 800.0, 0.0, 0.0, 0.0]
HOT = [1600.0, *[100.0] * 7]
TASK_S, ROW_S = 0.1, 0.01
Rows = Sequence[float] | Callable[[int], Sequence[float]]


def view(rows: Rows, *, imbalance: Mapping[int, float] | None = None, spec: KnobSpec | None = None) -> View:
    """Batches whose tasks take 0.1 s and 10 ms a row, on four executors."""

    def tasks(number: int) -> dict[str, TaskSample]:
        task_rows = np.asarray(rows(number) if callable(rows) else rows, dtype=np.float64)
        run_s = TASK_S + ROW_S * task_rows
        return {
            "lines": instances([400.0] * 4, 0.1, finish_s=0.1),
            "count": instances(task_rows, run_s, finish_s=run_s),
        }

    longest_s = max(TASK_S + ROW_S * each for each in (rows(0) if callable(rows) else rows))
    flow = {"arrival_per_s": 200.0, "rows": 1600.0, "seconds": 1.1 + longest_s, "trigger_s": 10.0}
    observed = observations(8, tasks, executors=4, **flow)
    if imbalance is not None:
        observed = tuple(replace(one, balance=Balance(imbalance)) for one in observed)
    knobs = {EXECUTORS_KNOB: KnobSpec(1, 100, cost=1.0), STATE: spec or KnobSpec(1, 100, live=False, apply_s=30.0)}
    return view_of(observed, topology=SHAPE, values={STATE: 8}, capabilities=Capabilities(knobs))
