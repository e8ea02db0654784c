"""The jobs and stages of a batch, read over REST. Job numbers are counted up, so that no long list is requested."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from homeostat.spark.sense.plan_graph import StageGraph
from homeostat.spark.sense.rest_answers import Job, StageAttempt, Task
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.stage_names import RanStage
from homeostat.spark.sense.task_columns import StageRun
from homeostat.spark.sense.task_pages import MOST_TASKS, WHOLE_TASKS, read_attempt

# Spark reports progress a moment before it has recorded the end of the last task. A choice: this is far longer than
# that moment, and still short enough that a lost task does not delay the observation much.
_SETTLE_S = 2.0
_SETTLE_POLL_S = 0.05
_JOBS_KEPT = 2_000  # a choice: more than the batches of 50 queries under way have; older ones were read or missed


class JobBook:
    """Which jobs belong to which batch. Spark numbers the jobs of an application consecutively."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest
        self._next: int | None = None
        self._jobs: dict[int, Job] = {}
        self._lock = threading.Lock()

    def follow(self) -> None:
        """Read the jobs that were started since the last call."""
        with self._lock:
            if self._next is None:
                self._list()
            assert self._next is not None
            while (job := self._rest.job(self._next)) is not None:
                self._note(job)

    def list_anew(self) -> None:
        """Read the whole list. Needed if a number was skipped: Spark forgets old jobs."""
        with self._lock:
            self._list()

    def of_batch(self, run: str, batch: int) -> list[Job]:
        with self._lock:
            return [job for job in self._jobs.values() if job.group == run and job.batch == batch]

    def newest_batch(self, run: str) -> int | None:
        with self._lock:
            batches = [job.batch for job in self._jobs.values() if job.group == run and job.batch is not None]
        return max(batches, default=None)

    def forget(self, run: str, batch: int) -> None:
        """Drop the jobs of this batch and of earlier ones."""
        with self._lock:
            mine = [job for job in self._jobs.values() if job.group == run]
            for number in [job.id for job in mine if job.batch is not None and job.batch <= batch]:
                del self._jobs[number]

    def _list(self) -> None:
        self._next = self._next or 0
        for job in self._rest.jobs():
            self._note(job)

    def _note(self, job: Job) -> None:
        self._next = max(self._next or 0, job.id + 1)
        self._jobs[job.id] = job
        while len(self._jobs) > _JOBS_KEPT:
            del self._jobs[next(iter(self._jobs))]


def read_stages(
    rest: RestClient, jobs: list[Job], graph_of: Callable[[int], StageGraph | None]
) -> tuple[StageRun, ...]:
    """The stages that ran in these jobs, with their tasks. A stage shared by several jobs ran in the first of them."""
    deadline = time.monotonic() + _SETTLE_S
    runs = []
    for job in jobs:
        for number in job.stages:
            attempts = _settled_attempts(rest, number, deadline, whole=job.tasks <= WHOLE_TASKS)
            if attempts:
                tasks = {task.index: task for _, tasks_done in attempts for task in tasks_done}
                stage = RanStage(number, job.id, graph_of(number))
                partitions = attempts[-1][0].tasks
                left_out = 0 if partitions <= MOST_TASKS else partitions - len(tasks)
                runs.append(StageRun(stage, partitions, _in_order(tasks), left_out))
    return tuple(runs)


def _in_order(tasks: dict[int, Task]) -> tuple[Task, ...]:
    return tuple(tasks[index] for index in sorted(tasks))


def _settled_attempts(
    rest: RestClient, number: int, deadline: float, *, whole: bool
) -> list[tuple[StageAttempt, list[Task]]]:
    """The attempts that ran, once none is open any more. Without `whole` their tasks are read in pages."""
    while True:
        attempts = rest.stage_with_tasks(number) if whole else [(attempt, []) for attempt in rest.stage(number)]
        if not any(attempt.open for attempt, _ in attempts) or time.monotonic() > deadline:
            ran = [(attempt, tasks) for attempt, tasks in attempts if attempt.ran]
            return ran if whole else [(attempt, read_attempt(rest, attempt)) for attempt, _ in ran]
        time.sleep(_SETTLE_POLL_S)
