"""The interface through which the sensors read jobs, stages, tasks and executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from homeostat.spark.sense.rest_answers import Executor, Job, StageAttempt
from homeostat.spark.sense.task_answers import TaskList

_T = TypeVar("_T")
# Every source gives answers of the same form, so the same limits apply to all of them.
FIRST_TIMEOUT_S = 15.0  # measured: Spark's UI can take over 4 s for its first answer
TIMEOUT_S = 3.0  # a choice: a slow answer is as good as none, since the next batch comes soon
# A choice: several times the answer about a stage with as many tasks as are read at once, or about 10,000 executors.
LARGEST_ANSWER_BYTES = 32_000_000


class StatusSource(Protocol):
    """Every problem raises SensorError, and no call exceeds its time limit. Safe to use from several threads."""

    @property
    def way(self) -> str:
        """Where the answers come from, in words."""

    def close(self) -> None: ...

    def executors(self) -> list[Executor]:
        """All executors, including those that have ended, and the driver, which has slots only in local mode."""

    def properties(self) -> dict[str, str]:
        """The settings of the application, at least those about memory. Empty if they are not shown."""

    def jobs(self) -> list[Job]:
        """All jobs that Spark still remembers, oldest first. The answer can be long: prefer `job`."""

    def job(self, number: int) -> Job | None:
        """None if Spark does not know the job yet, or has forgotten it."""

    def stage(self, number: int) -> list[StageAttempt]:
        """Its attempts, oldest first. Empty if Spark does not know the stage."""

    def stage_with_tasks(self, number: int) -> list[tuple[StageAttempt, TaskList]]:
        """Its attempts with their tasks, in one request, since every request costs the driver time."""

    def tasks(self, number: int, attempt: int, offset: int, length: int) -> tuple[int, TaskList]:
        """How many tasks an attempt has from `offset` on, at most `length`, and these tasks."""

    def newest_sql(self) -> int:
        """The number of the newest execution of a plan; -1 if there was none."""

    def sql(self, number: int, read: Callable[[Any], _T]) -> _T | None:
        """One execution of a plan with its metrics; None if Spark does not know it yet, or has forgotten it."""


def read_each(read: Callable[[Any], _T]) -> Callable[[Any], list[_T]]:
    return lambda answer: [read(entry) for entry in _as_list(answer)]


def read_jobs(answer: Any) -> list[Job]:
    return sorted(read_each(Job.read)(answer), key=lambda job: job.id)


def read_attempts(answer: Any) -> list[StageAttempt]:
    return sorted(read_each(StageAttempt.read)(answer), key=lambda attempt: attempt.attempt)


def read_attempts_with_tasks(answer: Any) -> list[tuple[StageAttempt, TaskList]]:
    return sorted(read_each(_attempt_with_tasks)(answer), key=lambda entry: entry[0].attempt)


def read_page(answer: Any) -> tuple[int, TaskList]:
    return len(_as_list(answer)), TaskList.read(answer)


def _as_list(answer: Any) -> list[Any]:
    if not isinstance(answer, list):
        raise TypeError("expected a list")
    return answer


def _attempt_with_tasks(answer: Any) -> tuple[StageAttempt, TaskList]:
    return StageAttempt.read(answer), TaskList.read(answer.get("tasks", {}).values())
