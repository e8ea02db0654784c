"""The stages and tasks of a batch, from the REST API, under the names of their components."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from homeostat.core.observation import TaskSample
from homeostat.spark.sense.executor_watch import ExecutorWatch
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.jobs import JobBook, read_stages
from homeostat.spark.sense.known_queries import QueryBook, QueryRun
from homeostat.spark.sense.plan_graph import StageGraph
from homeostat.spark.sense.progress import Progress
from homeostat.spark.sense.rest_answers import Job, StageAttempt
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.stage_names import RanStage
from homeostat.spark.sense.task_columns import StageRun, task_sample

_GRAPHS_KEPT = 500  # more stages than the batches of a poll have: a graph is read once per stage
GraphReader = Callable[[int], StageGraph | None]


@dataclass(frozen=True, slots=True)
class BatchTasks:
    """The tasks of a batch by component, and how many of each were not read."""

    samples: Mapping[str, TaskSample]
    left_out: Mapping[str, int] = field(default_factory=dict)


class StageReader:
    """`graph_of` returns the operators of a stage; None where only the numbers of stages are known."""

    def __init__(
        self,
        rest: RestClient,
        queries: QueryBook,
        executors: ExecutorWatch,
        guard: GuardedWork,
        graph_of: GraphReader | None,
    ) -> None:
        self._rest, self._queries, self._executors, self._guard = rest, queries, executors, guard
        self.jobs = JobBook(rest)
        self.graph_of = graph_of
        self._graphs: dict[int, StageGraph] = {}

    def tasks(self, run: QueryRun, progress: Progress) -> BatchTasks:
        """By component. Empty while the REST API does not answer, so that a batch does not wait for it."""
        if not self._guard.rest_answers:
            return BatchTasks({})
        stages = self._stages(run, progress)
        if {task.executor for stage in stages for task in stage.tasks} - set(self._executors.workers.ids):
            self._executors.read()
        names = self._queries.name(run, [stage.stage for stage in stages], whole=_has_rows(progress))
        by_component: dict[str, list[StageRun]] = {}
        for stage in stages:
            if stage.stage.id in names:
                by_component.setdefault(names[stage.stage.id], []).append(stage)
        samples = {component: task_sample(runs, self._executors.workers) for component, runs in by_component.items()}
        left_out = {component: sum(each.left_out for each in runs) for component, runs in by_component.items()}
        return BatchTasks(samples, {component: count for component, count in left_out.items() if count})

    def begun_stages(self, jobs: list[Job]) -> list[tuple[RanStage, StageAttempt]]:
        """The stages of a running batch that have begun, each with its latest attempt."""
        return [
            (RanStage(number, job.id, self.graph(number)), attempt)
            for job in jobs
            for number in job.stages
            for attempt in [attempt for attempt in self._rest.stage(number) if attempt.ran][-1:]
        ]

    def graph(self, stage: int) -> StageGraph | None:
        if self.graph_of is None:
            return None
        if stage not in self._graphs and (graph := self.graph_of(stage)) is not None:
            self._graphs[stage] = graph
            for old in list(self._graphs)[:-_GRAPHS_KEPT]:
                self._graphs.pop(old, None)
        return self._graphs.get(stage)

    def _stages(self, run: QueryRun, progress: Progress) -> tuple[StageRun, ...]:
        self.jobs.follow()
        jobs = self.jobs.of_batch(progress.run, progress.batch)
        if not jobs and _has_rows(progress):
            self.jobs.list_anew()
            jobs = self.jobs.of_batch(progress.run, progress.batch)
        self._queries.learn_plan(run)
        return read_stages(self._rest, jobs, self.graph)


def _has_rows(progress: Progress) -> bool:
    """NaN counts as rows: over REST alone the number is not known."""
    return any(source.rows != 0 for source in progress.sources)
