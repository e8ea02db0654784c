"""Reads the driver's status store inside the driver. This works without a web UI.

The store has the data that the REST API shows. Spark's own writer turns it into the same JSON, so that one reader
serves both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from homeostat.spark.sense.bounded_calls import BoundedCalls
from homeostat.spark.sense.rest_answers import Executor, Job, StageAttempt
from homeostat.spark.sense.sensor_error import SensorError
from homeostat.spark.sense.status_source import (
    FIRST_TIMEOUT_S,
    LARGEST_ANSWER_BYTES,
    TIMEOUT_S,
    read_attempts,
    read_attempts_with_tasks,
    read_each,
    read_jobs,
    read_page,
)
from homeostat.spark.sense.task_answers import TaskList
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WAY = "the driver's status store"
_MEMORY = "spark.memory."
_UNKNOWN = "java.util.NoSuchElementException"
_JOBS = {"RUNNING": "runningJobIds", "SUCCEEDED": "successJobIds"}
_T = TypeVar("_T")


class StatusStore:
    """A StatusSource for Spark 3.5 and newer. The store is not a public interface of Spark: if it changes, calls raise
    SensorError. Reading takes no lock that the scheduler needs: Spark's UI reads it in the same way."""

    way = _WAY

    def __init__(
        self, spark: SparkSession, *, first_timeout_s: float = FIRST_TIMEOUT_S, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._spark = spark
        self._first_timeout_s, self._timeout_s = first_timeout_s, timeout_s
        self._has_answered = False
        self._calls = BoundedCalls("status store")

    def close(self) -> None:
        self._calls.close()

    def executors(self) -> list[Executor]:
        return self._ask(lambda jvm: jvm.json(jvm.store.executorList(False)), read_each(Executor.read))

    def properties(self) -> dict[str, str]:
        """Only those about memory: the others may contain secrets."""
        return self._ask(
            lambda jvm: jvm.json(jvm.context.conf().getAllWithPrefix(_MEMORY)),
            lambda answer: {_MEMORY + name: value for name, value in answer},
        )

    def jobs(self) -> list[Job]:
        return self._ask(lambda jvm: jvm.json(jvm.store.jobsList(jvm.any)), read_jobs)

    def job(self, number: int) -> Job | None:
        return self._ask(lambda jvm: jvm.job(number), lambda answer: None if answer is None else Job.read(answer))

    def stage(self, number: int) -> list[StageAttempt]:
        return self._ask(lambda jvm: jvm.json(jvm.stage(number, tasks=False)), read_attempts)

    def stage_with_tasks(self, number: int) -> list[tuple[StageAttempt, TaskList]]:
        return self._ask(lambda jvm: jvm.json(jvm.stage(number, tasks=True)), read_attempts_with_tasks)

    def tasks(self, number: int, attempt: int, offset: int, length: int) -> tuple[int, TaskList]:
        return self._ask(
            lambda jvm: jvm.json(jvm.store.taskList(number, attempt, offset, length, jvm.by_number, jvm.any)),
            read_page,
            missing=(0, TaskList()),
        )

    def newest_sql(self) -> int:
        return self._ask(lambda jvm: jvm.newest_sql(), int)

    def sql(self, number: int, read: Callable[[Any], _T]) -> _T | None:
        return self._ask(lambda jvm: jvm.sql(number), lambda answer: None if answer is None else read(answer))

    @cached_property
    def _jvm(self) -> _DriverJvm:
        return _DriverJvm(self._spark)

    def _ask(self, ask: Callable[[_DriverJvm], Any], read: Callable[[Any], _T], **missing: _T) -> _T:
        limit_s = self._timeout_s if self._has_answered else self._first_timeout_s
        try:
            answer = self._calls.run(lambda: ask(self._jvm), limit_s)
        except SensorError:
            raise
        except Exception as error:  # any error of the bridge to the JVM
            if "missing" in missing and _java_class(error) == _UNKNOWN:
                return missing["missing"]
            kind = _java_class(error) or type(error).__name__
            raise SensorError(f"the call failed: {first_line(error)}", where=_WAY, kind=kind) from error
        self._has_answered = True
        try:
            return read(answer)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise SensorError(f"unexpected answer ({error!r})", where=_WAY, kind="garbage") from error


class _DriverJvm:
    """The calls into the driver's JVM, all in the thread of BoundedCalls."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        jvm = context._jvm
        self.context = context._jsc.sc()
        self.store = self.context.statusStore()
        self.any = jvm.java.util.ArrayList()
        self.by_number = jvm.org.apache.spark.status.api.v1.TaskSorting.valueOf("ID")
        self._no_quantiles = context._gateway.new_array(jvm.double, 0)
        self._spark = spark
        indented = jvm.com.fasterxml.jackson.databind.SerializationFeature.INDENT_OUTPUT
        self._writer = jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper().writer().without(indented)

    @cached_property
    def _plans(self) -> Any:
        return self._spark._jsparkSession.sharedState().statusStore()

    def json(self, value: Any) -> Any:
        text = self._writer.writeValueAsString(value)
        if len(text) > LARGEST_ANSWER_BYTES:
            raise ValueError(f"the answer has {len(text):,} characters")
        return json.loads(text)

    def job(self, number: int) -> Any:
        """Spark's tracker knows whether the job exists. Asking the store for a missing job throws an exception, which
        costs ten more calls, and Homeostat keeps asking for the next job."""
        is_there = self.context.statusTracker().getJobInfo(number).isDefined()
        return self.json(self.store.job(number)) if is_there else None

    def stage(self, number: int, *, tasks: bool) -> Any:
        return self.store.stageData(number, tasks, self.any, False, self._no_quantiles)

    def newest_sql(self) -> int:
        last = self._plans.executionsList(max(0, self._plans.executionsCount() - 1), 1).lastOption()
        return int(last.get().executionId()) if last.isDefined() else -1

    def sql(self, number: int) -> Any:
        """In the form of the REST API, which Spark assembles outside the store."""
        option = self._plans.execution(number)
        if not option.isDefined():
            return None
        execution = option.get()
        values = self.json(self._plans.executionMetrics(number))
        metrics = [
            {"name": metric["name"], "value": values[str(metric["accumulatorId"])]}
            for node in self.json(self._plans.planGraph(number).allNodes())
            for metric in node["metrics"]
            if str(metric["accumulatorId"]) in values
        ]
        jobs: dict[str, list[int]] = {}
        for job, status in self.json(execution.jobs()).items():
            jobs.setdefault(_JOBS.get(status, "failedJobIds"), []).append(int(job))
        return {"id": number, "description": execution.description(), "nodes": [{"metrics": metrics}], **jobs}


def _java_class(error: BaseException) -> str:
    """The class of the exception that a call threw in the JVM; empty if the error came from elsewhere."""
    thrown: Any = getattr(error, "java_exception", None)
    try:
        return str(thrown.getClass().getName()) if thrown is not None else ""
    except Exception:  # the JVM has ended
        return ""
