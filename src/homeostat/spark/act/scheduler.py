"""Direct calls to the scheduler in Spark's driver: which executors there are, and how to start and end them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALLOCATION_THREAD = "spark-dynamic-executor-allocation"


@dataclass(frozen=True, slots=True)
class ExecutorInfo:
    id: str
    host: str
    cores: int
    since_s: float

    @property
    def number(self) -> int:
        """Spark counts the executors of an application; a later one has a higher number."""
        return int(self.id) if self.id.isdigit() else 0


class Scheduler:
    """The return value of a call proves nothing: look at `active` or `present` for the effect."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self._context: Any = context._jsc.sc()
        self._jvm: Any = context._jvm
        self._backend: Any = self._context.schedulerBackend()

    def active(self) -> list[ExecutorInfo]:
        """The executors that take tasks: registered, and neither draining nor about to be killed. Oldest first."""
        ids = {id for id in self.registered_ids() if self._backend.isExecutorActive(id)}
        executors = [executor for executor in self._executors() if executor.id in ids]
        return sorted(executors, key=lambda executor: executor.number)

    def present(self) -> frozenset[str]:
        """Registered with the scheduler, or still listed as alive by the REST API."""
        return self.registered_ids() | {executor.id for executor in self._executors()}

    def busy(self, ids: Iterable[str]) -> bool:
        scheduler = self._context.taskScheduler()
        return any(scheduler.isExecutorBusy(id) for id in ids)

    def request(self, count: int) -> None:
        """Ask the cluster manager for this many executors. It starts missing ones and kills none."""
        self._context.requestTotalExecutors(count, 0, self._jvm.PythonUtils.toScalaMap({}))

    def decommission(self, ids: Iterable[str]) -> None:
        """Give these executors no new tasks. Running tasks continue."""
        for id in sorted(ids):
            if self._backend.isExecutorActive(id):
                info = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
                    "retired by homeostat", self._jvm.scala.Option.empty()
                )
                self._backend.decommissionExecutor(id, info, False, False)

    def kill(self, ids: Collection[str]) -> None:
        """End these processes, even if they are running tasks."""
        self._backend.killExecutors(self._jvm.PythonUtils.toSeq(sorted(ids)), False, False, True)

    def stop_dynamic_allocation(self) -> None:
        """Ask Spark's own allocation manager to stop; `allocates` tells when it has."""
        manager = self._context.executorAllocationManager()
        if manager.isDefined():
            manager.get().stop()

    def allocates(self) -> bool:
        """Whether the thread of Spark's dynamic allocation runs."""
        if not self._context.executorAllocationManager().isDefined():
            return False
        threads = self._jvm.java.lang.Thread.getAllStackTraces().keySet().iterator()
        while threads.hasNext():
            if str(threads.next().getName()).startswith(_ALLOCATION_THREAD):
                return True
        return False

    def registered_ids(self) -> frozenset[str]:
        """Those that have reported to the driver, draining ones included."""
        ids = str(self._backend.getExecutorIds().mkString(","))
        return frozenset(ids.split(",")) if ids else frozenset()

    def _executors(self) -> list[ExecutorInfo]:
        entries = self._context.statusStore().executorList(True).iterator()
        executors = []
        while entries.hasNext():
            entry = entries.next()
            host = str(entry.hostPort()).rpartition(":")[0] or str(entry.hostPort())
            executors.append(ExecutorInfo(entry.id(), host, entry.totalCores(), entry.addTime().getTime() / 1000))
        return executors
