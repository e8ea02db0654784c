"""The stages and tasks of a batch, as Spark shows them, under the names of their components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from homeostat.core.observation import FileSample, JobSpan, TaskFailure, TaskSample, WorkerSample
from homeostat.spark.sense.executor_watch import ExecutorWatch
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.jobs import JobBook, read_stages
from homeostat.spark.sense.known_queries import QueryBook, QueryRun
from homeostat.spark.sense.other_jobs import MOST_JOBS, job_spans, split_jobs
from homeostat.spark.sense.plan_graph import StageGraph
from homeostat.spark.sense.progress import Progress
from homeostat.spark.sense.rest_answers import Job, StageAttempt
from homeostat.spark.sense.sql_executions import SqlBook, handles_files
from homeostat.spark.sense.stage_names import RanStage
from homeostat.spark.sense.stage_run import StageRun
from homeostat.spark.sense.status_source import StatusSource
from homeostat.spark.sense.task_columns import task_sample
from homeostat.spark.sense.task_failures import task_failures

_GRAPHS_KEPT = 500  # more stages than the batches of a poll have: a graph is read once per stage
GraphReader = Callable[[int], StageGraph | None]


@dataclass(frozen=True, slots=True)
class BatchTasks:
    """The tasks of a batch by component, how many of each were not read, the failures, and jobs outside the query.

    `failures_left_out` counts attempts that failed and are not among the `failures`.
    """

    samples: Mapping[str, TaskSample] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[TaskFailure, ...] = ()
    failures_left_out: int = 0
    other_jobs: tuple[JobSpan, ...] = ()
    files: FileSample = FileSample()


def batch_tasks(
    by_component: Mapping[str, Sequence[StageRun]], others: Sequence[Job], workers: WorkerSample, began_s: float
) -> BatchTasks:
    """From the stages of each component, and the jobs that have none, of the batch that began at `began_s`."""
    left_out = {component: sum(each.left_out for each in runs) for component, runs in by_component.items()}
    failures, failures_left_out = task_failures(by_component)
    return BatchTasks(
        {component: task_sample(runs, workers, began_s) for component, runs in by_component.items()},
        {component: count for component, count in left_out.items() if count},
        failures,
        failures_left_out,
        job_spans(others, began_s),
    )


class StageReader:
    """`graph_of` returns the operators of a stage; None where only the numbers of stages are known."""

    def __init__(
        self,
        status: StatusSource,
        queries: QueryBook,
        executors: ExecutorWatch,
        guard: GuardedWork,
        graph_of: GraphReader | None,
    ) -> None:
        self._status, self._queries, self._executors, self._guard = status, queries, executors, guard
        self.jobs = JobBook(status)
        self._sql = SqlBook(status)
        self.graph_of = graph_of
        self._graphs: dict[int, StageGraph] = {}

    def tasks(self, run: QueryRun, progress: Progress) -> BatchTasks:
        """By component. Empty while Spark does not answer, so that a batch does not wait for it."""
        if not self._guard.spark_answers:
            return BatchTasks()
        stages, others = self._stages(run, progress)
        if {task.executor for stage in stages for task in stage.tasks} - set(self._executors.workers.ids):
            self._executors.read()
        names = self._queries.name(run, [stage.stage for stage in stages], whole=_has_rows(progress))
        by_component: dict[str, list[StageRun]] = {}
        for stage in stages:
            if stage.stage.id in names:
                by_component.setdefault(names[stage.stage.id], []).append(stage)
        tasks = batch_tasks(by_component, others, self._executors.workers, progress.timestamp_s)
        graphs = [stage.stage.graph for stage in stages] + [
            self.graph(number) for job in others for number in job.stages
        ]
        if not handles_files(graphs):
            return tasks
        jobs = {stage.stage.job for stage in stages} | {job.id for job in others}
        return replace(tasks, files=self._sql.files(progress.run, progress.batch, jobs))

    def begun_stages(self, jobs: list[Job]) -> list[tuple[RanStage, StageAttempt]]:
        """The stages of a running batch that have begun, each with its latest attempt."""
        return [
            (RanStage(number, job.id, self.graph(number)), attempt)
            for job in jobs
            for number in job.stages
            for attempt in [attempt for attempt in self._status.stage(number) if attempt.ran][-1:]
        ]

    def graph(self, stage: int) -> StageGraph | None:
        if self.graph_of is None:
            return None
        if stage not in self._graphs and (graph := self.graph_of(stage)) is not None:
            self._graphs[stage] = graph
            for old in list(self._graphs)[:-_GRAPHS_KEPT]:
                self._graphs.pop(old, None)
        return self._graphs.get(stage)

    def _stages(self, run: QueryRun, progress: Progress) -> tuple[tuple[StageRun, ...], list[Job]]:
        """The stages of the query that ran, and the jobs without stages of the query."""
        span = (progress.timestamp_s, progress.timestamp_s + progress.seconds)
        self.jobs.follow()
        jobs = self.jobs.of_batch(progress.run, progress.batch, span)
        if not jobs and _has_rows(progress):
            self.jobs.list_anew()
            jobs = self.jobs.of_batch(progress.run, progress.batch, span)
        self._queries.learn_plan(run)
        of_query, others = split_jobs(jobs, self.graph)
        return read_stages(self._status, of_query, self.graph), [self.jobs.ended(job) for job in others[:MOST_JOBS]]


def _has_rows(progress: Progress) -> bool:
    """NaN counts as rows: over REST alone the number is not known."""
    return any(source.rows != 0 for source in progress.sources)
