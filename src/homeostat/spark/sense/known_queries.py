"""What the sensors remember about the queries: their runs, the names of their stages, and the topology they make up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from homeostat.core.topology import Topology
from homeostat.spark.sense.plan_graph import exchanges
from homeostat.spark.sense.progress import Arrivals, Progress
from homeostat.spark.sense.query_handle import QueryHandle
from homeostat.spark.sense.stage_names import NameBook, Part, RanStage, plan_version, qualified


@dataclass
class Query:
    """What outlives a restart of the query: the names of its stages, and what had arrived when."""

    names: NameBook
    arrived: Arrivals | None = None
    latest: Progress | None = None


@dataclass
class Run:
    """One run of a query, from start to stop.

    `last_s` is when its last observation ended, `busy_s` since when it was seen at work on a batch without jobs.
    """

    handle: QueryHandle
    query: Query
    last_batch: int = -1
    last_s: float | None = None
    idle: int = 0
    busy_s: float | None = None

    @property
    def next_batch(self) -> int:
        """The number of the batch after those that ended, in this run or the one before."""
        if self.last_batch >= 0 or self.query.latest is None:
            return self.last_batch + 1
        return self.query.latest.batch + 1


class QueryBook:
    """Used by several threads. `on_change` is told when the topology is first known and when it changes."""

    def __init__(self, handles: Callable[[], Sequence[QueryHandle]], on_change: Callable[[str], None]) -> None:
        self._handles, self._on_change = handles, on_change
        self._queries: dict[str, Query] = {}
        self._runs: dict[str, Run] = {}
        self._lock = threading.RLock()
        self.topology: Topology | None = None

    def running(self) -> list[Run]:
        """The runs of the present."""
        handles = self._handles()
        with self._lock:
            for handle in handles:
                if handle.run_id not in self._runs:
                    query = self._queries.setdefault(handle.name, Query(NameBook(handle.name)))
                    if query.names.steps.repartitions != handle.steps.repartitions:
                        # Spreading rows adds a stage, so this is another plan with its own names.
                        query.names = NameBook(handle.name)
                    query.names.steps = handle.steps
                    self._runs[handle.run_id] = Run(handle, query)
            return [self._runs[handle.run_id] for handle in handles]

    def run(self, run_id: str) -> Run | None:
        """None for queries that nobody asked us to watch."""
        if run_id not in self._runs:
            self.running()
        return self._runs.get(run_id)

    def learn_plan(self, run: Run) -> None:
        """As long as the plan has something to tell; it is that of the batch that was planned last."""
        names = run.query.names
        if names.curious:
            found = exchanges(run.handle.plan())
            with self._lock:
                names.learn(found)

    def name(self, run: Run, stages: Sequence[RanStage], *, whole: bool) -> dict[int, str]:
        """The component of each stage. Only a whole batch, with rows in it, shows what stages there are."""
        with self._lock:
            parts: dict[int, Part] = run.query.names.assign(stages) if whole else run.query.names.find(stages)
            if whole:
                self._rebuild_topology()
            return {stage: self._qualified(run, part.name) for stage, part in parts.items()}

    def source_names(self, run: Run, count: int) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._qualified(run, name) for name in run.query.names.source_names(count))

    @property
    def _several(self) -> bool:
        return len(self._queries) > 1

    def _qualified(self, run: Run, name: str) -> str:
        return qualified(name, run.handle.name, prefixed=self._several)

    def _rebuild_topology(self) -> None:
        books = [query.names for query in self._queries.values() if query.names.parts]
        plan = plan_version(books, prefixed=self._several)
        before = self.topology
        if before is None or before.plan != plan:
            components = [part for book in books for part in book.components(prefixed=self._several)]
            self.topology = Topology(tuple(components), plan)
            self._on_change("the plan is known" if before is None else "the plan changed")
