"""The jobs and stages of a batch, as Spark shows them. Jobs are read one by one, by number, to avoid long lists."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from homeostat.spark.sense.plan_graph import StageGraph
from homeostat.spark.sense.rest_answers import Job, StageAttempt
from homeostat.spark.sense.stage_names import RanStage
from homeostat.spark.sense.stage_run import StageRun, stage_run
from homeostat.spark.sense.status_source import StatusSource
from homeostat.spark.sense.task_answers import TaskList
from homeostat.spark.sense.task_pages import MOST_TASKS, WHOLE_TASKS, read_attempt

# Spark reports progress a moment before it has recorded the end of the last task. A choice: this is far longer than
# that moment, and still short enough that a lost task does not delay the observation much.
_SETTLE_S = 2.0
_SETTLE_POLL_S = 0.05
_JOBS_KEPT = 2_000  # a choice: more than 50 queries have in their current batches; older jobs were read or missed
NO_SPAN = (math.inf, -math.inf)


class JobBook:
    """Which jobs belong to which batch. Spark numbers the jobs of an application consecutively."""

    def __init__(self, status: StatusSource) -> None:
        self._status = status
        self._next: int | None = None
        self._jobs: dict[int, Job] = {}
        self._lock = threading.Lock()

    def follow(self) -> None:
        """Read the jobs that were started since the last call."""
        with self._lock:
            if self._next is None:
                self._list()
            assert self._next is not None
            while (job := self._status.job(self._next)) is not None:
                self._note(job)

    def list_anew(self) -> None:
        """Read the whole list. This is necessary if a number was skipped, because Spark forgets old jobs."""
        with self._lock:
            self._list()

    def of_batch(self, run: str, batch: int, span: tuple[float, float] = NO_SPAN) -> list[Job]:
        """The jobs whose description names the batch. A job with a description by the user names no batch. It belongs
        to the batch if it was submitted within `span`, by the driver's clock."""
        with self._lock:
            return [
                job
                for job in self._jobs.values()
                if job.group == run
                and (job.batch == batch or (job.batch is None and span[0] <= job.submitted_s <= span[1]))
            ]

    def ended(self, job: Job) -> Job:
        """Read the job again, because it was first read when it began."""
        return self._status.job(job.id) or job

    def newest_batch(self, run: str) -> int | None:
        with self._lock:
            batches = [job.batch for job in self._jobs.values() if job.group == run and job.batch is not None]
        return max(batches, default=None)

    def forget(self, run: str, batch: int, before_s: float = -math.inf) -> None:
        """Drop the jobs of this batch and of earlier ones, and those without a batch that began before this moment."""
        with self._lock:
            mine = [job for job in self._jobs.values() if job.group == run]
            for job in mine:
                if job.submitted_s <= before_s if job.batch is None else job.batch <= batch:
                    del self._jobs[job.id]

    def _list(self) -> None:
        self._next = self._next or 0
        for job in self._status.jobs():
            self._note(job)

    def _note(self, job: Job) -> None:
        self._next = max(self._next or 0, job.id + 1)
        self._jobs[job.id] = job
        while len(self._jobs) > _JOBS_KEPT:
            del self._jobs[next(iter(self._jobs))]


def read_stages(
    status: StatusSource, jobs: list[Job], graph_of: Callable[[int], StageGraph | None]
) -> tuple[StageRun, ...]:
    """The stages that ran in these jobs, with their tasks. A stage shared by several jobs ran in the first of them."""
    deadline = time.monotonic() + _SETTLE_S
    runs = []
    for job in jobs:
        for number in job.stages:
            attempts = _settled_attempts(status, number, deadline, whole=job.tasks <= WHOLE_TASKS)
            if attempts:
                runs.append(
                    stage_run(
                        RanStage(number, job.id, graph_of(number)),
                        max(attempt.tasks for attempt, _ in attempts),
                        [tasks for _, tasks in attempts],
                        attempts[0][0].began_s,
                        attempts[-1][0].ended_s,
                        MOST_TASKS,
                    )
                )
    return tuple(runs)


def _settled_attempts(
    status: StatusSource, number: int, deadline: float, *, whole: bool
) -> list[tuple[StageAttempt, TaskList]]:
    """The attempts that ran, once none is open any more. Without `whole` their tasks are read in pages."""
    while True:
        attempts = (
            status.stage_with_tasks(number) if whole else [(attempt, TaskList()) for attempt in status.stage(number)]
        )
        if not any(attempt.open for attempt, _ in attempts) or time.monotonic() > deadline:
            attempts = [(attempt, tasks) for attempt, tasks in attempts if attempt.ran]
            return attempts if whole else [(attempt, read_attempt(status, attempt)) for attempt, _ in attempts]
        time.sleep(_SETTLE_POLL_S)
