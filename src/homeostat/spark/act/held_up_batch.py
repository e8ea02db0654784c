"""Whether a batch ends sooner if executors that leave are ended at once and others do their tasks again.

A batch that only waits for tasks on a slow executor takes several times as long as it needs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How many times sooner the tasks must end elsewhere. A new executor needs longer for its first tasks. A choice.
_MARGIN = 1.5
# How much sooner at least: to end an executor and to start its tasks elsewhere takes a moment. A choice.
_LEAST_GAIN_S = 1.0
# Stages from which the pace of executors is known: those of the last batch or two. A choice.
_RECENT_STAGES = 4
# With more running tasks than this, other executors run some of them too. A choice, which bounds the calls.
_MOST_TASKS = 64


@dataclass(frozen=True, slots=True)
class HeldUpStage:
    """A stage of which only leaving executors still run tasks: for how long, and how long the others took for one."""

    shortest_run_s: float
    usual_s: float


def ends_sooner_elsewhere(stages: Collection[HeldUpStage], pace: float) -> bool:
    """`pace` is how many times as long a task takes on the leaving executors as on others."""
    remaining_s = max((pace * stage.usual_s - stage.shortest_run_s for stage in stages), default=0.0)
    again_s = sum(stage.usual_s for stage in stages)
    return remaining_s > max(_MARGIN * again_s, again_s + _LEAST_GAIN_S)


class HeldUpBatch:
    """Reads the driver's status store, which is no public interface of Spark: if that fails, nothing ends sooner."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._store: Any = context._jsc.sc().statusStore()
        self._jvm: Any = context._jvm

    def pace(self, ids: Collection[str]) -> float:
        """How many times as long as on others a task took on these executors lately; 1 if that is not known."""
        try:
            stages = self._store.stageList(None, False, False, getattr(self._store, "stageList$default$4")(), None)
            recent = [stages.apply(index) for index in range(min(_RECENT_STAGES, stages.size()))]
            times = [self._task_times(stage, ids) for stage in recent]
        except Exception:  # whatever the bridge to the JVM raises
            return 1.0
        known = [(theirs_s, others_s) for theirs_s, others_s in times if theirs_s > 0 and others_s > 0]
        others_s = sum(other_s for _, other_s in known)
        return sum(their_s for their_s, _ in known) / others_s if others_s > 0 else 1.0

    def ends_sooner_without(self, ids: Collection[str], pace: float) -> bool:
        """Whether the running batches wait only for tasks on these executors, which others would end sooner."""
        if pace <= _MARGIN:
            return False
        try:
            stages = [self._held_up(stage, ids) for stage in self._stages()]
            held_up = [stage for stage in stages if stage is not None]
            return (
                bool(held_up)
                and len(held_up) == len(stages)
                and ends_sooner_elsewhere(held_up, pace)
                and not self._others_read_from(ids)
            )
        except Exception:  # whatever the bridge to the JVM raises
            return False

    def _stages(self) -> list[Any]:
        stages = self._store.activeStages()
        return [stages.apply(index) for index in range(stages.size())]

    def _held_up(self, stage: Any, ids: Collection[str]) -> HeldUpStage | None:
        """None if the stage has other tasks to do, or if no other executor has ended a task of it."""
        running = self._running_tasks(stage)
        left = int(stage.numTasks()) - int(stage.numCompleteTasks())
        if not running or left != len(running) or any(str(task.executorId()) not in ids for task in running):
            return None
        theirs_s, usual_s = self._task_times(stage, ids)
        if usual_s <= 0 or theirs_s > 0:
            return None  # tasks that they ended would have to be done again too
        now_ms = int(self._jvm.System.currentTimeMillis())
        return HeldUpStage(min(now_ms - int(task.launchTime().getTime()) for task in running) / 1000, usual_s)

    def _running_tasks(self, stage: Any) -> list[Any]:
        status: Any = self._jvm.java.util.ArrayList()
        status.add(self._jvm.org.apache.spark.status.api.v1.TaskStatus.RUNNING)
        order = self._jvm.org.apache.spark.status.api.v1.TaskSorting.valueOf("ID")
        tasks = self._store.taskList(stage.stageId(), stage.attemptId(), 0, _MOST_TASKS, order, status)
        return [tasks.apply(index) for index in range(tasks.size())]

    def _task_times(self, stage: Any, ids: Collection[str]) -> tuple[float, float]:
        """How long the mean task of a stage took on these executors, and on others; 0 where none has ended."""
        seconds, counts = [0.0, 0.0], [0, 0]
        summaries = self._store.executorSummary(stage.stageId(), stage.attemptId()).iterator()
        while summaries.hasNext():
            pair = summaries.next()
            place, summary = int(str(pair._1()) not in ids), pair._2()
            seconds[place] += int(summary.taskTime()) / 1000
            counts[place] += int(summary.succeededTasks())
        return tuple(spent_s / count if count else 0.0 for spent_s, count in zip(seconds, counts, strict=True))  # type: ignore[return-value]

    def _others_read_from(self, ids: Collection[str]) -> bool:
        """Whether an ended stage of a running job left data on these executors, which would have to be made again."""
        running: Any = self._jvm.java.util.ArrayList()
        running.add(self._jvm.org.apache.spark.JobExecutionStatus.RUNNING)
        jobs = self._store.jobsList(running)
        active = {int(stage.stageId()) for stage in self._stages()}
        for index in range(jobs.size()):
            numbers = jobs.apply(index).stageIds()
            for place in range(numbers.size()):
                number = int(numbers.apply(place))
                if number not in active and self._left_data(number, ids):
                    return True
        return False

    def _left_data(self, number: int, ids: Collection[str]) -> bool:
        stages = self._store.stageData(number, False, self._jvm.java.util.ArrayList(), False, self._no_quantiles())
        attempts = [stages.apply(index) for index in range(stages.size())]
        return any(int(stage.shuffleWriteBytes()) > 0 and self._task_times(stage, ids)[0] > 0 for stage in attempts)

    def _no_quantiles(self) -> Any:
        return getattr(self._store, "stageList$default$4")()
