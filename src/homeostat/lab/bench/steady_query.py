"""A query that costs almost nothing to simulate: for measurements of the manager over many simulated days."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np

from homeostat.core.configuration import EXECUTORS_KNOB, Capabilities, Configuration, KnobSpec
from homeostat.core.events import Apply, EngineChanged, Event, Observed, Receipt
from homeostat.core.observation import Array, FlowSample, Observation, TaskSample, WorkerSample
from homeostat.core.topology import Component, Topology

DAY_S, HOUR_S = 86_400.0, 3_600.0
# Tasks of a batch for each executor, one after the other.
TASKS_EACH = 2
# The rows that one executor processes in a second, and the base of the load, which varies from 0.5 to 2.5 times that:
# about three executors, six at the daily peak.
_ROWS_PER_S, _MEAN_PER_S = 100.0, 200.0
_MOST_EXECUTORS = 12
_START_S = 15.0
# A new run of the query begins this often, as after a restart.
_RUN_S = 6 * HOUR_S


class SteadyQuery:
    """Batches with a daily wave of load and some noise, on the requested number of executors."""

    def __init__(self, seed: int, start_s: float) -> None:
        self._dice = random.Random(seed)
        self._batch_s = 0.0
        self.now_s = start_s
        self._start_s, self._phase = start_s, seed
        self._executors, self._pending_rows, self._batch = 3, 0.0, 0
        self._receipts: list[Receipt] = []

    def describe(self) -> EngineChanged:
        component = Component("work", "source", EXECUTORS_KNOB)
        knobs = {EXECUTORS_KNOB: KnobSpec(1, _MOST_EXECUTORS, apply_s=_START_S, cost=1.0)}
        return EngineChanged(Topology((component,)), self._configuration(), Capabilities(knobs), self.now_s)

    def load_per_s(self, at_s: float) -> float:
        return _MEAN_PER_S * (1.5 + math.sin(2 * math.pi * (at_s / DAY_S + self._phase / 20)))

    def wait(self, until_s: float) -> Sequence[Event]:
        """One batch, which lasts until `until_s`: the caller advances all queries together."""
        self.now_s, self._batch_s = until_s, until_s - self.now_s
        arrival_per_s = self.load_per_s(until_s) * self._dice.uniform(0.95, 1.05)
        waiting = self._pending_rows + arrival_per_s * self._batch_s
        rows = min(waiting, self._executors * _ROWS_PER_S * self._batch_s * self._dice.uniform(0.97, 1.03))
        self._pending_rows = waiting - rows
        self._batch += 1
        receipts, self._receipts = self._receipts, []
        return [Observed(self._observation(rows, arrival_per_s)), *receipts]

    def apply(self, command: Apply) -> None:
        self._executors = int(command.desired.get(EXECUTORS_KNOB, self._executors))
        self._receipts.append(Receipt(command.id, self.now_s, self._configuration()))

    def close(self) -> None:
        """Nothing to close."""

    def _configuration(self) -> Configuration:
        return Configuration({EXECUTORS_KNOB: self._executors})

    def _observation(self, rows: float, arrival_per_s: float) -> Observation:
        run = str(int((self.now_s - self._start_s) // _RUN_S))
        tasks = TASKS_EACH * self._executors
        each = np.full(tasks, rows / tasks)
        run_s = each / _ROWS_PER_S * np.array([self._dice.uniform(0.9, 1.1) for _ in range(tasks)])
        finish_s = run_s.reshape(TASKS_EACH, -1).cumsum(axis=0).ravel()
        seconds = float(finish_s.max()) + 0.5
        unknown: Array = np.full(tasks, np.nan)
        ids = tuple(f"{number}" for number in range(self._executors))
        return Observation(
            at_s=self.now_s,
            span_s=self._batch_s,
            batch=self._batch,
            flows=(
                FlowSample(
                    "work",
                    rows=rows,
                    seconds=seconds,
                    trigger_s=self._batch_s,
                    arrival_per_s=arrival_per_s,
                    pending_rows=self._pending_rows,
                    phases_s={"addBatch": seconds - 0.4, "walCommit": 0.1, "commitOffsets": 0.1},
                ),
            ),
            tasks={
                "work": TaskSample(each, run_s, each, unknown, unknown, finish_s, np.arange(tasks) % self._executors)
            },
            workers=WorkerSample(
                ids, tuple(f"host-{id}" for id in ids), np.ones(len(ids)), np.ones(len(ids), dtype=np.bool_)
            ),
            run=run,
        )
