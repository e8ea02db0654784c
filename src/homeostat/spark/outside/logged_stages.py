"""The jobs and stages of batches, collected from the events of a log until their batch has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from homeostat.core.observation import NAN
from homeostat.spark.outside import event_log
from homeostat.spark.outside.event_log import Event
from homeostat.spark.outside.logged_tasks import read_attempt
from homeostat.spark.sense.plan_graph import StageGraph
from homeostat.spark.sense.rest_answers import Job, is_broadcast, job_name
from homeostat.spark.sense.stage_names import RanStage
from homeostat.spark.sense.stage_run import StageRun, stage_run
from homeostat.spark.sense.task_answers import OtherAttempt, Task, TaskList

Json = Mapping[str, Any]
# The most jobs that are kept: the end of a batch may be missing from the log. A choice: more than the batches under way
# have.
_MOST_JOBS = 2_000


@dataclass
class _Attempt:
    successful: list[Task] = field(default_factory=list)
    others: list[OtherAttempt] = field(default_factory=list)

    @property
    def tasks(self) -> TaskList:
        return TaskList(tuple(self.successful), tuple(self.others))


@dataclass
class _Stage:
    graph: StageGraph | None
    partitions: int
    submitted_s: float
    first_launch_s: float = NAN
    ended_s: float = NAN
    attempts: dict[int, _Attempt] = field(default_factory=dict)


class LoggedStages:
    """Takes events in their order."""

    def __init__(self) -> None:
        self._runs: dict[str, str] = {}
        self._jobs: dict[int, Job] = {}
        self._stages: dict[int, _Stage] = {}

    def query_started(self, event: Event) -> None:
        self._runs[str(event["id"])] = str(event["runId"])

    def job_started(self, event: Event) -> None:
        """The properties of a job name its query and its batch, even if the user gave it another description."""
        properties = event.get("Properties") or {}
        number = properties.get("streaming.sql.batchId")
        if number is None:
            return
        stages = sorted(event.get("Stage Infos") or (), key=lambda stage: int(stage["Stage ID"]))
        group = str(properties.get("spark.jobGroup.id") or "")
        description = str(properties.get("spark.job.description") or "")
        job = Job(
            id=int(event["Job ID"]),
            group=self._runs.get(str(properties.get("sql.streaming.queryId")), group),
            batch=int(number),
            query=description.partition("\n")[0],
            stages=tuple(sorted(int(stage) for stage in event["Stage IDs"])),
            running=True,
            submitted_s=event["Submission Time"] / 1000,
            name=job_name(
                "" if f"\nbatch = {number}" in description else description,
                str(stages[-1]["Stage Name"]) if stages else "",
            ),
            broadcasts=is_broadcast(str(properties.get("spark.job.tags") or "").split(",")),
        )
        self._jobs[job.id] = job
        while len(self._jobs) > _MOST_JOBS:
            self._drop(next(iter(self._jobs.values())))

    def job_ended(self, event: Event) -> None:
        if job := self._jobs.get(int(event["Job ID"])):
            self._jobs[job.id] = replace(job, running=False, ended_s=event["Completion Time"] / 1000)

    def stage_submitted(self, event: Event) -> None:
        info = event["Stage Info"]
        number = int(info["Stage ID"])
        if number not in self._stages and any(number in job.stages for job in self._jobs.values()):
            submitted_s = info.get("Submission Time", NAN) / 1000
            self._stages[number] = _Stage(_graph(info), int(info["Number of Tasks"]), submitted_s)

    def stage_completed(self, event: Event) -> None:
        info = event["Stage Info"]
        if stage := self._stages.get(int(info["Stage ID"])):
            stage.ended_s = info.get("Completion Time", NAN) / 1000

    def task_ended(self, event: Event) -> None:
        if stage := self._stages.get(int(event["Stage ID"])):
            ended = read_attempt(event)
            launched_s = event["Task Info"]["Launch Time"] / 1000
            stage.first_launch_s = min(launched_s, stage.first_launch_s) if stage.attempts else launched_s
            attempt = stage.attempts.setdefault(int(event.get("Stage Attempt ID", 0)), _Attempt())
            if isinstance(ended, Task):
                attempt.successful.append(ended)
            else:
                attempt.others.append(ended)

    def of_batch(self, run: str, batch: int) -> list[Job]:
        return [job for job in self._jobs.values() if job.group == run and job.batch == batch]

    def graph(self, stage: int) -> StageGraph | None:
        return self._stages[stage].graph if stage in self._stages else None

    def stage_runs(self, jobs: list[Job]) -> tuple[StageRun, ...]:
        """The stages that ran in these jobs. A stage shared by several jobs ran in the first of them."""
        first_jobs: dict[int, int] = {}
        for job in jobs:
            for number in job.stages:
                if number in self._stages:
                    first_jobs.setdefault(number, job.id)
        return tuple(self._stage_run(number, job, self._stages[number]) for number, job in first_jobs.items())

    def forget(self, run: str, batch: int) -> None:
        """Drop the jobs of this batch and of earlier ones."""
        for job in list(self._jobs.values()):
            if job.group == run and job.batch is not None and job.batch <= batch:
                self._drop(job)

    def _stage_run(self, number: int, job: int, stage: _Stage) -> StageRun:
        began_s = stage.first_launch_s if stage.attempts else stage.submitted_s
        lists = [stage.attempts[attempt].tasks for attempt in sorted(stage.attempts)]
        return stage_run(
            RanStage(number, job, stage.graph), stage.partitions, lists, began_s, stage.ended_s, stage.partitions
        )

    def _drop(self, job: Job) -> None:
        del self._jobs[job.id]
        for number in job.stages:
            self._stages.pop(number, None)


def _graph(stage_info: Json) -> StageGraph | None:
    """None if the operators cannot be read. The stage is then named by its position."""
    try:
        return event_log.graph_of(stage_info)
    except (KeyError, ValueError, TypeError):
        return None
