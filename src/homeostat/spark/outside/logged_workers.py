"""The executors of an application, and its driver, from the events of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.core.observation import NAN, DriverSample, WorkerLoss, WorkerSample
from homeostat.spark.outside.event_log import Event
from homeostat.spark.sense.executor_watch import asked_to_leave, memory_fraction, short_loss
from homeostat.spark.sense.gc_share import GcShare
from homeostat.spark.sense.rest_answers import Executor
from homeostat.spark.sense.task_columns import worker_sample

Json = Mapping[str, Any]
_DRIVER = "driver"


class LoggedWorkers:
    """Takes events in their order. `losses` grows; a reader remembers how many it has read."""

    def __init__(self) -> None:
        self.properties: Mapping[str, str] = {}
        self.losses: list[WorkerLoss] = []
        self._executors: dict[str, Executor] = {}
        self._gc = GcShare()
        self._driver = Executor(_DRIVER, "", 0, alive=True)

    def environment(self, event: Event) -> None:
        self.properties = event["Spark Properties"]

    def executor_added(self, event: Event) -> None:
        info, identity = event["Executor Info"], str(event["Executor ID"])
        slots = int(info["Total Cores"]) // int(self.properties.get("spark.task.cpus", "1"))
        executor = self._executors.get(identity, Executor(identity, "", 0, alive=True))
        self._executors[identity] = replace(executor, host=str(info["Host"]), slots=max(1, slots), alive=True)

    def executor_removed(self, event: Event) -> None:
        if executor := self._executors.pop(str(event["Executor ID"]), None):
            reason = str(event.get("Removed Reason") or "")
            if not asked_to_leave(reason):
                self.losses.append(WorkerLoss(executor.id, executor.host, short_loss(reason)))

    def block_manager_added(self, event: Event) -> None:
        manager = event["Block Manager ID"]
        storage_bytes = float(event.get("Maximum Onheap Memory") or NAN)
        self._update(str(manager["Executor ID"]), str(manager["Host"]), storage_bytes=storage_bytes)

    def task_ended(self, event: Event) -> None:
        """Take the peak values of the executor while the task ran. They are missing if it was too short for a
        heartbeat."""
        self._measure(str(event["Task Info"]["Executor ID"]), event.get("Task Executor Metrics") or {})

    def stage_metrics(self, event: Event) -> None:
        """Logged if spark.eventLog.logStageExecutorMetrics is set, also for the driver."""
        self._measure(str(event["Executor ID"]), event["Executor Metrics"])

    def workers(self) -> WorkerSample:
        """The executors that are there now."""
        return worker_sample(self._executors.values(), memory_fraction=memory_fraction(self.properties))

    def driver(self, at_s: float, batch_s: float) -> DriverSample:
        """At the end of a batch that took `batch_s`."""
        driver = self._executors.get(_DRIVER, self._driver)
        self._gc.note(at_s, driver.gc_s)
        limit_bytes = driver.heap_limit_bytes(memory_fraction(self.properties))
        return DriverSample(driver.heap_bytes, limit_bytes, self._gc.seconds_of(batch_s))

    def _measure(self, identity: str, metrics: Json) -> None:
        executor = self._of(identity)
        if executor is not None and metrics.get("JVMHeapMemory"):
            heap_bytes = float(metrics["JVMHeapMemory"])
            self._put(
                replace(
                    executor,
                    heap_bytes=max(heap_bytes, executor.heap_bytes) if executor.heap_bytes > 0 else heap_bytes,
                    gc_s=metrics.get("TotalGCTime", NAN) / 1000,
                )
            )

    def _update(self, identity: str, host: str, *, storage_bytes: float) -> None:
        executor = self._of(identity) or Executor(identity, host, 0, alive=True)
        self._put(replace(executor, storage_bytes=storage_bytes))

    def _of(self, identity: str) -> Executor | None:
        return self._executors.get(identity, self._driver if identity == _DRIVER else None)

    def _put(self, executor: Executor) -> None:
        if executor.id == _DRIVER and _DRIVER not in self._executors:
            self._driver = executor
        else:
            self._executors[executor.id] = executor
