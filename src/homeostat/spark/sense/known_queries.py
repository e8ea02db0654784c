"""The queries that the sensors know: their runs, the names of their stages, and the topology of them all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from homeostat.core.topology import Topology
from homeostat.spark.sense.plan_graph import exchanges
from homeostat.spark.sense.progress import Arrivals, Progress, RowShare
from homeostat.spark.sense.query_handle import QueryHandle
from homeostat.spark.sense.stage_names import NameBook, RanStage, plan_version, qualify

# How many runs that have ended are kept, over all queries: their last reports may still arrive. A choice. It bounds the
# memory of an application whose queries restart for years.
_ENDED_RUNS_KEPT = 100


@dataclass
class KnownQuery:
    """The data that a restart of a query keeps: the names of its stages, and how many rows had arrived at which time.

    `shares` is by the number of the source, for those whose offsets are not all rows.
    """

    names: NameBook
    arrived: Arrivals | None = None
    latest: Progress | None = None
    shares: dict[int, RowShare] = field(default_factory=dict)

    @property
    def rows_per_offset(self) -> dict[int, float]:
        return {index: share.rows_per_offset for index, share in self.shares.items()}

    def add_shares(self, newest: Mapping[int, RowShare]) -> None:
        """Add the shares of a batch."""
        for index, share in newest.items():
            self.shares[index] = self.shares.get(index, RowShare()).after(share)


@dataclass
class QueryRun:
    """One run of a query, from start to stop.

    `last_s` is the end of its last observation. `busy_s` is when it was first seen working on a batch without jobs.
    `losses_reported` counts the lost executors that its observations have already reported.
    """

    handle: QueryHandle
    query: KnownQuery
    last_batch: int = -1
    last_s: float | None = None
    idle: int = 0
    busy_s: float | None = None
    losses_reported: int = 0

    @property
    def next_batch(self) -> int:
        """The number of the batch after the last one that ended, in this run or the run before."""
        if self.last_batch >= 0 or self.query.latest is None:
            return self.last_batch + 1
        return self.query.latest.batch + 1


class QueryBook:
    """Safe to use from several threads. `on_change` gets a reason when the topology is first known or has changed."""

    def __init__(self, handles: Callable[[], Sequence[QueryHandle]], on_change: Callable[[str], None]) -> None:
        self._handles, self._on_change = handles, on_change
        self._queries: dict[str, KnownQuery] = {}
        self._runs: dict[str, QueryRun] = {}
        self._lock = threading.RLock()
        self.topology: Topology | None = None

    def running(self) -> list[QueryRun]:
        """The runs of the queries that run now."""
        handles = self._handles()
        with self._lock:
            for handle in handles:
                if handle.run_id not in self._runs:
                    query = self._queries.setdefault(handle.name, KnownQuery(NameBook(handle.name)))
                    if query.names.steps.repartitions != handle.steps.repartitions:
                        # Spreading rows adds a stage, so this is another plan with its own names.
                        query.names = NameBook(handle.name)
                    query.names.steps = handle.steps
                    self._runs[handle.run_id] = QueryRun(handle, query)
                    self._forget_old_runs({each.run_id for each in handles})
                self._runs[handle.run_id].handle = handle  # its trigger may have changed
            return [self._runs[handle.run_id] for handle in handles]

    def run(self, run_id: str) -> QueryRun | None:
        """None if the run belongs to a query that is not watched."""
        if run_id not in self._runs:
            self.running()
        return self._runs.get(run_id)

    def learn_plan(self, run: QueryRun) -> None:
        """Read the plan of the latest batch, as long as it can name more stages."""
        names = run.query.names
        if names.curious:
            plan_exchanges = exchanges(run.handle.plan())
            with self._lock:
                names.learn(plan_exchanges)

    def name(self, run: QueryRun, stages: Sequence[RanStage], *, whole: bool) -> dict[int, str]:
        """The component of each stage. `whole` means that these are all stages of a finished batch with rows."""
        with self._lock:
            book = run.query.names
            components = book.assign(stages) if whole else book.find(stages)
            if whole:
                self._rebuild_topology()
            return {stage: self._qualify(run, part.name) for stage, part in components.items()}

    def source_names(self, run: QueryRun, count: int) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._qualify(run, name) for name in run.query.names.source_names(count))

    def _forget_old_runs(self, running: Collection[str]) -> None:
        over = [run_id for run_id in self._runs if run_id not in running]
        for run_id in over[:-_ENDED_RUNS_KEPT]:
            del self._runs[run_id]

    @property
    def _several(self) -> bool:
        return len(self._queries) > 1

    def _qualify(self, run: QueryRun, name: str) -> str:
        return qualify(name, run.handle.name, prefixed=self._several)

    def _rebuild_topology(self) -> None:
        books = [query.names for query in self._queries.values() if query.names.parts]
        plan = plan_version(books, prefixed=self._several)
        before = self.topology
        if before is None or before.plan != plan:
            components = [part for book in books for part in book.components(prefixed=self._several)]
            self.topology = Topology(tuple(components), plan)
            self._on_change("the plan is known" if before is None else "the plan changed")
