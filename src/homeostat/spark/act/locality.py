"""Spreads state onto new executors: lowers Spark's locality wait until they have worked, then restores it.

A task of a stateful stage prefers the executor that holds its state, and Spark waits for a free slot there. Without
this, new executors stay idle for many batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from homeostat.spark.act.deadline import Deadline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WAITS = ("spark.locality.wait.process", "spark.locality.wait.node", "spark.locality.wait.rack")
_RECENT_STAGES = 8  # enough for the stages of the latest batch of a few queries

Worked = Callable[[frozenset[str]], frozenset[str]]
"""Which of these executors have run tasks of the slowest stage."""


class Locality:
    """The locality wait of the running application. Spark reads it again for each new set of tasks."""

    def __init__(self, spark: SparkSession) -> None:
        self._conf: Any = spark.sparkContext._jsc.sc().conf()

    @contextmanager
    def lower(self) -> Iterator[None]:
        before = {key: self._conf.get(key, "") for key in _WAITS}
        for key in _WAITS:
            self._conf.set(key, "0s")
        try:
            yield
        finally:
            for key, value in before.items():
                if value:
                    self._conf.set(key, value)
                else:
                    self._conf.remove(key)

    def spread(self, fresh: frozenset[str], worked: Worked, enough: Callable[[], bool], deadline: Deadline) -> str:
        """Wait until all new executors have worked, or until `enough` is true. Returns a sentence that names those that
        have not worked."""
        if not fresh:
            return ""
        with self.lower():
            deadline.wait_until(lambda: worked(fresh) >= fresh or enough(), poll_s=0.5)
        idle = sorted(fresh - worked(fresh))
        return f"no task of the slowest stage has run yet on executor {', '.join(idle)}" if idle else ""


def ran_slowest_stage(spark: SparkSession) -> Worked:
    """Reads the driver's status store."""
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    no_quantiles = getattr(store, "stageList$default$4")()

    def have_worked(ids: frozenset[str]) -> frozenset[str]:
        stages = store.stageList(None, False, False, no_quantiles, None)
        recent = [stages.apply(index) for index in range(min(_RECENT_STAGES, stages.size()))]
        if not recent:
            return frozenset()
        slowest = max(recent, key=lambda stage: int(stage.executorRunTime()))
        return frozenset(id for id in ids if tasks_on(id, slowest.stageId(), slowest.attemptId()))

    def tasks_on(id: str, stage: int, attempt: int) -> int:
        summary = store.executorSummary(stage, attempt).get(id)
        return int(summary.get().succeededTasks()) if summary.isDefined() else 0

    return have_worked
