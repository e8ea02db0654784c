"""Tells whether a batch ends sooner if slow executors are killed now, so that others repeat their tasks.

A batch that only waits for tasks on a slow executor takes several times as long as it needs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The remaining time must be this many times the time that other executors need to repeat the tasks. With a smaller
# ratio, executors would be killed for a gain within the noise. A choice.
_MARGIN = 1.5
# The batch must end at least this much sooner, because it takes a moment to start the tasks elsewhere. A choice.
_LEAST_GAIN_S = 1.0
# The pace of executors is measured over this many stages: those of the last batch or two. A choice.
_RECENT_STAGES = 4
# The largest number of running tasks that is read. It limits the number of calls. A choice.
_MOST_TASKS = 64


@dataclass(frozen=True, slots=True)
class HeldUpStage:
    """A stage in which only leaving executors still run tasks.

    `shortest_run_s` is how long the newest of these tasks has run, `usual_s` how long a task took on other executors.
    """

    shortest_run_s: float
    usual_s: float


def ends_sooner_elsewhere(stages: Collection[HeldUpStage], pace: float) -> bool:
    """`pace` is how many times as long a task takes on the leaving executors as on others."""
    remaining_s = max((pace * stage.usual_s - stage.shortest_run_s for stage in stages), default=0.0)
    again_s = sum(stage.usual_s for stage in stages)
    return remaining_s > max(_MARGIN * again_s, again_s + _LEAST_GAIN_S)


class HeldUpBatch:
    """Reads the driver's status store, which is not a public interface of Spark. If that fails, no executor is
    killed."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._store: Any = context._jsc.sc().statusStore()
        self._jvm: Any = context._jvm

    def pace(self, ids: Collection[str]) -> float:
        """The time of a task on these executors divided by its time on the others, in the last stages; 1 if unknown."""
        try:
            stages = self._store.stageList(None, False, False, getattr(self._store, "stageList$default$4")(), None)
            recent = [stages.apply(index) for index in range(min(_RECENT_STAGES, stages.size()))]
            times = [self._task_times(stage, ids) for stage in recent]
        except Exception:  # whatever the bridge to the JVM raises
            return 1.0
        both_s = [(theirs_s, others_s) for theirs_s, others_s in times if theirs_s > 0 and others_s > 0]
        others_s = sum(other_s for _, other_s in both_s)
        return sum(their_s for their_s, _ in both_s) / others_s if others_s > 0 else 1.0

    def ends_sooner_without(self, ids: Collection[str], pace: float) -> bool:
        """Whether the running batches wait only for tasks on these executors, and other executors would finish them
        sooner."""
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
        """None if other tasks of the stage are still to be done, or no other executor has finished one."""
        running = self._running_tasks(stage)
        left = int(stage.numTasks()) - int(stage.numCompleteTasks())
        if not running or left != len(running) or any(str(task.executorId()) not in ids for task in running):
            return None
        theirs_s, usual_s = self._task_times(stage, ids)
        if usual_s <= 0 or theirs_s > 0:
            return None  # their finished tasks would have to be repeated too
        now_ms = int(self._jvm.System.currentTimeMillis())
        return HeldUpStage(min(now_ms - int(task.launchTime().getTime()) for task in running) / 1000, usual_s)

    def _running_tasks(self, stage: Any) -> list[Any]:
        status: Any = self._jvm.java.util.ArrayList()
        status.add(self._jvm.org.apache.spark.status.api.v1.TaskStatus.RUNNING)
        order = self._jvm.org.apache.spark.status.api.v1.TaskSorting.valueOf("ID")
        tasks = self._store.taskList(stage.stageId(), stage.attemptId(), 0, _MOST_TASKS, order, status)
        return [tasks.apply(index) for index in range(tasks.size())]

    def _task_times(self, stage: Any, ids: Collection[str]) -> tuple[float, float]:
        """The mean time of the finished tasks on these executors, and on the others; 0 if there are none."""
        seconds, counts = [0.0, 0.0], [0, 0]
        summaries = self._store.executorSummary(stage.stageId(), stage.attemptId()).iterator()
        while summaries.hasNext():
            pair = summaries.next()
            place, summary = int(str(pair._1()) not in ids), pair._2()
            seconds[place] += int(summary.taskTime()) / 1000
            counts[place] += int(summary.succeededTasks())
        return tuple(spent_s / count if count else 0.0 for spent_s, count in zip(seconds, counts, strict=True))  # type: ignore[return-value]

    def _others_read_from(self, ids: Collection[str]) -> bool:
        """Whether a finished stage of a running job left shuffle output on these executors, which would be lost."""
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
