"""A stage that ran in a batch, with its tasks and when it ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from homeostat.core.observation import NAN
from homeostat.spark.sense.stage_names import RanStage
from homeostat.spark.sense.task_answers import OtherAttempt, Task, TaskList


@dataclass(frozen=True, slots=True)
class StageRun:
    """A stage that ran in a batch, and its successful tasks (the last attempt at each partition).

    `left_out` tasks were not read, because there are too many. `attempts` counts the attempts at each partition, and
    `failures` are the attempts that failed. `began_s` is when the first task was launched, and `ended_s` when the stage
    was complete, both by the driver's clock.
    """

    stage: RanStage
    partitions: int
    tasks: tuple[Task, ...]
    left_out: int = 0
    attempts: Mapping[int, int] = field(default_factory=dict)
    failures: tuple[OtherAttempt, ...] = ()
    began_s: float = NAN
    ended_s: float = NAN

    @property
    def feeds(self) -> bool:
        """Whether its rows go into an exchange."""
        return self.stage.graph is not None and self.stage.graph.feeds


def stage_run(
    stage: RanStage, partitions: int, lists: Sequence[TaskList], began_s: float, ended_s: float, most_tasks: int
) -> StageRun:
    """From the tasks of each attempt at the stage. A later attempt numbers only the tasks that it runs, so tasks are
    then told apart by their partitions."""
    retried = len(lists) > 1
    attempts: Counter[int] = Counter()
    tasks: dict[int, Task] = {}
    failures: list[OtherAttempt] = []
    for each in lists:
        for task in each.successful:
            place = task.partition if retried else task.index
            tasks[place] = replace(task, index=place) if place != task.index else task
            attempts[place] += 1
        for other in each.others:
            place = other.partition if retried else other.index
            attempts[place] += 1
            if other.reason:
                failures.append(replace(other, index=place))
    return StageRun(
        stage,
        partitions,
        tuple(tasks[place] for place in sorted(tasks)),
        0 if partitions <= most_tasks else partitions - len(tasks),
        attempts,
        tuple(failures),
        began_s if began_s == began_s else min((task.launched_s for task in tasks.values()), default=NAN),
        ended_s if ended_s == ended_s else max((task.ended_s for task in tasks.values()), default=NAN),
    )
