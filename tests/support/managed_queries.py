"""Streaming queries on real Spark, each with a manager that may act, and what their managers decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.core.configuration import EXECUTORS
from homeostat.core.cycle import Trace
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.loop_state import State
from homeostat.core.objective import Objective
from homeostat.core.observation import Observation
from homeostat.core.records import AlertContent, with_content
from homeostat.policies import registry
from homeostat.runtime.loop_thread import Loop
from homeostat.runtime.manager import Manager
from homeostat.spark.application import Application
from homeostat.store.in_memory import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

LIMIT_S = 300.0
LOOK_AGAIN_S = 0.05
INTERVAL_S = 0.2
JOIN_S = 30.0
# The first batches of a query compile code and start Python workers.
COLD_BATCHES = 2
# Batches after them that are compared. A choice: more take longer.
WARM_BATCHES = 2

Build = Callable[["SparkSession", Path], "DataStreamWriter"]


@dataclass
class ManagedRun:
    """What the manager of one query saw and decided so far. `cycles` has the diagnoses of each cycle, `scalings` the
    proposals to change the number of executors. Alerts are by cause."""

    batches: list[Observation] = field(default_factory=list)
    cycles: list[tuple[Diagnosis, ...]] = field(default_factory=list)
    scalings: list[str] = field(default_factory=list)
    alerts: dict[str, str] = field(default_factory=dict)

    def note(self, trace: Trace, state: State) -> None:
        """After each step of the loop."""
        last = self.batches[-1].at_s if self.batches else float("-inf")
        self.batches += [each for each in state.window if each.at_s > last]
        self.cycles.append(trace.diagnoses)
        self.scalings += [f"{each.kind} for {each.cause}" for each in trace.proposals if _scales(each)]
        for record, alert in with_content(trace.records, AlertContent):
            self.alerts.setdefault(alert.cause, record.text)

    @property
    def warm(self) -> list[Observation]:
        """The batches with rows, without the first few."""
        return [each for each in self.batches if any(flow.rows > 0 for flow in each.flows)][COLD_BATCHES:]


def _scales(proposal: Proposal) -> bool:
    return any(knob.kind == EXECUTORS for knob in proposal.patch.values)


def run_managed(
    spark: SparkSession,
    directory: Path,
    builds: Mapping[str, Build],
    until: Callable[[str, ManagedRun], bool],
    trigger_s: float = 1.0,
) -> dict[str, ManagedRun]:
    """Run the queries beside each other, each until the condition holds for it. Afterwards all have stopped.

    On a busy machine an executor can really be slow, and is replaced. There are as many as before.
    """
    runs = {name: ManagedRun() for name in builds}
    with ExitStack() as stack:
        queries = {name: _start(spark, directory, name, build, trigger_s, stack) for name, build in builds.items()}
        application = Application.around(spark, list(queries.values()), Objective(), directory / "managed")
        stack.callback(application.stop, session=False)
        application.start()
        complaints: list[str] = []
        loop = Loop(partial(_managers, application, runs), complaints.append, INTERVAL_S)
        stack.callback(loop.thread.join, JOIN_S)
        stack.callback(loop.stop)
        loop.start()
        _wait(queries, lambda name: until(name, runs[name]), lambda: _summary(runs))
        assert not complaints
    return runs


def _start(
    spark: SparkSession, directory: Path, name: str, build: Build, trigger_s: float, stack: ExitStack
) -> StreamingQuery:
    own = directory / name
    own.mkdir(parents=True)
    writer = build(spark, own).queryName(name).option("checkpointLocation", str(own / "checkpoint"))
    query = writer.trigger(processingTime=f"{round(1000 * trigger_s)} milliseconds").start()
    stack.callback(query.stop)
    return query


def _managers(application: Application, runs: Mapping[str, ManagedRun]) -> Sequence[Manager]:
    policy, store = registry.build("provisioning"), MemoryStore()
    return [Manager(application.engine(name), policy, store, name, on_step=run.note) for name, run in runs.items()]


def _wait(queries: Mapping[str, StreamingQuery], condition: Callable[[str], bool], describe: Callable[[], str]) -> None:
    """Stop each query when its condition holds, so that it leaves the machine to the others."""
    deadline = time.monotonic() + LIMIT_S
    running = dict(queries)
    while running:
        for name, query in queries.items():
            if name in running and condition(name):
                running.pop(name).stop()
            assert name not in running or query.isActive, query.exception()
        assert time.monotonic() < deadline, f"waited {LIMIT_S:.0f} s, but it was not recorded: {describe()}"
        time.sleep(LOOK_AGAIN_S)


def _summary(runs: Mapping[str, ManagedRun]) -> str:
    return "; ".join(f"{name}: {len(run.batches)} batches, alerts {sorted(run.alerts)}" for name, run in runs.items())
