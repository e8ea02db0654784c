"""Asks Spark through the first of several sources that answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from homeostat.spark.sense.rest_answers import Executor, Job, StageAttempt
from homeostat.spark.sense.sensor_error import LATE, SensorError
from homeostat.spark.sense.status_source import StatusSource
from homeostat.spark.sense.task_answers import TaskList

_T = TypeVar("_T")


class AnsweringSource:
    """A StatusSource over several others, the preferred one first. It asks the one that answered last. If that one
    fails, it asks the others."""

    def __init__(self, *sources: StatusSource) -> None:
        self._sources = sources
        self._errors: dict[str, str] = {}

    @property
    def way(self) -> str:
        return self._sources[0].way

    @property
    def errors(self) -> Mapping[str, str]:
        """The latest error of each way that has failed and has not answered since."""
        return dict(self._errors)

    def close(self) -> None:
        for source in self._sources:
            source.close()

    def executors(self) -> list[Executor]:
        return self._ask(lambda source: source.executors())

    def properties(self) -> dict[str, str]:
        return self._ask(lambda source: source.properties())

    def jobs(self) -> list[Job]:
        return self._ask(lambda source: source.jobs())

    def job(self, number: int) -> Job | None:
        return self._ask(lambda source: source.job(number))

    def stage(self, number: int) -> list[StageAttempt]:
        return self._ask(lambda source: source.stage(number))

    def stage_with_tasks(self, number: int) -> list[tuple[StageAttempt, TaskList]]:
        return self._ask(lambda source: source.stage_with_tasks(number))

    def tasks(self, number: int, attempt: int, offset: int, length: int) -> tuple[int, TaskList]:
        return self._ask(lambda source: source.tasks(number, attempt, offset, length))

    def newest_sql(self) -> int:
        return self._ask(lambda source: source.newest_sql())

    def sql(self, number: int, read: Callable[[Any], _T]) -> _T | None:
        return self._ask(lambda source: source.sql(number, read))

    def _ask(self, ask: Callable[[StatusSource], _T]) -> _T:
        errors: list[SensorError] = []
        for source in self._sources:
            try:
                answer = ask(source)
            except SensorError as error:
                errors.append(error)
                self._errors[source.way] = error.line
                if error.kind == LATE:
                    break  # the driver is busy: the other ways lead to the same driver, and the caller has waited
            else:
                self._errors.pop(source.way, None)
                if errors:
                    # Two threads may get here at once. Each then puts a source first that has answered.
                    self._sources = (source, *(other for other in self._sources if other is not source))
                return answer
        raise (
            errors[0] if len(errors) == 1 else SensorError("; ".join(each.line for each in errors), kind=errors[0].kind)
        )
