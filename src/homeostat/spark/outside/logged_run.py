"""Builds the record of a query's run from the event log of its application."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import NAN
from homeostat.recorded_data.run import (
    RecordedBatch,
    RecordedComponent,
    RecordedExecutor,
    RecordedRun,
    RecordedSource,
    RecordedTasks,
)
from homeostat.spark.outside import event_log
from homeostat.spark.outside.event_log import Event, EventLog
from homeostat.spark.sense.plan_graph import StageGraph
from homeostat.spark.sense.progress import Progress, read_progress
from homeostat.spark.sense.stage_names import NameBook, RanStage

UPDATED_KEYS = "number of updated state rows"
_SECONDS = {"": 0.001, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

BatchKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Task:
    rows: float
    rows_out: float
    keys: float
    start_s: float
    finish_s: float
    executor: str


def record(path: str | Path) -> RecordedRun:
    """The record of the query that has the most batches in the log."""
    recorder = Recorder()
    log = EventLog(path)
    recorder.take(log.new_events())
    if not recorder.progress:
        raise ConfigError(
            "the log has no finished batch of a streaming query",
            where=str(path),
            fix="log an application until some of its batches have ended",
        )
    run = recorder.run()
    if damaged_count := log.damaged_lines + recorder.damaged_events:
        run = replace(run, notes=(*run.notes, f"skipped {damaged_count} damaged lines of the log"))
    return run


@dataclass
class Recorder:
    """Takes events in their order. `run` builds the record from the events so far."""

    application: str = ""
    driver_up_s: float = NAN
    damaged_events: int = 0
    progress: dict[BatchKey, Progress] = field(default_factory=dict)
    executors: dict[str, RecordedExecutor] = field(default_factory=dict)
    _properties: Mapping[str, str] = field(default_factory=dict)
    _stages: dict[int, RanStage] = field(default_factory=dict)
    _batch_of: dict[int, BatchKey] = field(default_factory=dict)
    _job_of: dict[int, int] = field(default_factory=dict)
    _tasks: dict[int, list[_Task]] = field(default_factory=dict)

    def take(self, events: Iterable[Event]) -> None:
        handlers: Mapping[str, Callable[[Event], None]] = {
            event_log.APPLICATION_START: self._application_started,
            event_log.ENVIRONMENT: self._environment,
            event_log.BLOCK_MANAGER_ADDED: self._block_manager_added,
            event_log.EXECUTOR_ADDED: self._executor_added,
            event_log.EXECUTOR_REMOVED: self._executor_removed,
            event_log.JOB_START: self._job_started,
            event_log.STAGE_SUBMITTED: self._stage_submitted,
            event_log.TASK_END: self._task_ended,
            event_log.QUERY_PROGRESS: self._on_progress,
        }
        for event in events:
            try:
                if handler := handlers.get(event["Event"]):
                    handler(event)
            except (KeyError, TypeError, ValueError):
                self.damaged_events += 1

    def run(self) -> RecordedRun:
        counts = Counter(progress.query for progress in self.progress.values())
        query = counts.most_common(1)[0][0]
        batches_of_query = [progress for progress in self.progress.values() if progress.query == query]
        book = NameBook(query)
        batches = [
            _batch(progress, self._tasks_by_component(book, (progress.run, progress.batch)))
            for progress in sorted(batches_of_query, key=lambda progress: progress.started_s)
        ]
        others = sorted(set(counts) - {query})
        return RecordedRun(
            application=self.application,
            query=query,
            components=_components(book),
            batches=tuple(batches),
            executors=tuple(self.executors.values()),
            driver_up_s=self.driver_up_s,
            locality_wait_s=_duration_s(self._properties.get("spark.locality.wait", "3s")),
            notes=(f"left out the other queries of the application: {', '.join(others)}",) if others else (),
            sources=book.source_names(len(batches[-1].sources)),
        )

    def _tasks_by_component(self, book: NameBook, batch: BatchKey) -> dict[str, RecordedTasks]:
        stages = [self._stages[stage] for stage, key in self._batch_of.items() if key == batch and stage in self._tasks]
        by_component: dict[str, list[_Task]] = {}
        for stage, part in book.assign(stages).items():
            by_component.setdefault(part.name, []).extend(self._tasks[stage])
        return {name: _columns(tasks) for name, tasks in by_component.items()}

    def _application_started(self, event: Event) -> None:
        self.application = str(event["App Name"])

    def _environment(self, event: Event) -> None:
        self._properties = event["Spark Properties"]

    def _block_manager_added(self, event: Event) -> None:
        if event["Block Manager ID"]["Executor ID"] == "driver":
            self.driver_up_s = event["Timestamp"] / 1000

    def _executor_added(self, event: Event) -> None:
        info, identity = event["Executor Info"], str(event["Executor ID"])
        slots = int(info["Total Cores"]) // int(self._properties.get("spark.task.cpus", "1"))
        self.executors[identity] = RecordedExecutor(identity, info["Host"], max(1, slots), event["Timestamp"] / 1000)

    def _executor_removed(self, event: Event) -> None:
        if executor := self.executors.get(str(event["Executor ID"])):
            self.executors[executor.id] = replace(executor, removed_s=event["Timestamp"] / 1000)

    def _job_started(self, event: Event) -> None:
        properties = event.get("Properties") or {}
        if "streaming.sql.batchId" in properties:
            key = (str(properties["spark.jobGroup.id"]), int(properties["streaming.sql.batchId"]))
            for stage in event["Stage IDs"]:
                # A later job of the batch that has the same stage skips it.
                self._batch_of.setdefault(int(stage), key)
                self._job_of.setdefault(int(stage), int(event["Job ID"]))

    def _stage_submitted(self, event: Event) -> None:
        stage = int(event["Stage Info"]["Stage ID"])
        if stage in self._batch_of:
            self._stages[stage] = RanStage(stage, self._job_of[stage], _graph(event["Stage Info"]))

    def _task_ended(self, event: Event) -> None:
        stage = int(event["Stage ID"])
        if stage in self._stages and event["Task End Reason"]["Reason"] == "Success":
            self._tasks.setdefault(stage, []).append(_task(event["Task Info"], event["Task Metrics"]))

    def _on_progress(self, event: Event) -> None:
        progress = read_progress(event_log.progress_of(event))
        # A batch without rows has fewer stages than others, or none.
        if sum(source.rows for source in progress.sources) > 0:
            self.progress[progress.run, progress.batch] = progress


def _graph(stage_info: Mapping[str, Any]) -> StageGraph | None:
    """None if the operators cannot be read. The stage is then named by its position."""
    try:
        return event_log.graph_of(stage_info)
    except (KeyError, ValueError, TypeError):
        return None


def _task(info: Mapping[str, Any], metrics: Mapping[str, Any]) -> _Task:
    updated_keys = [float(a["Update"]) for a in info.get("Accumulables", ()) if a.get("Name") == UPDATED_KEYS]
    return _Task(
        rows=metrics["Input Metrics"]["Records Read"] + metrics["Shuffle Read Metrics"]["Total Records Read"],
        rows_out=metrics["Shuffle Write Metrics"]["Shuffle Records Written"],
        keys=sum(updated_keys) if updated_keys else NAN,
        start_s=info["Launch Time"] / 1000,
        finish_s=info["Finish Time"] / 1000,
        executor=str(info["Executor ID"]),
    )


def _columns(tasks: list[_Task]) -> RecordedTasks:
    numbers = np.array(
        [(task.rows, task.rows_out, task.keys, task.start_s, task.finish_s) for task in tasks], dtype=np.float64
    )
    rows, rows_out, keys, start_s, finish_s = numbers.T
    return RecordedTasks(rows, rows_out, keys, start_s, finish_s, np.array([task.executor for task in tasks]))


def _batch(progress: Progress, tasks: Mapping[str, RecordedTasks]) -> RecordedBatch:
    arrived_rows = sum(source.latest for source in progress.sources)
    return RecordedBatch(
        run=progress.run,
        number=progress.batch,
        started_s=progress.started_s,
        seconds=progress.seconds,
        rows=sum(source.rows for source in progress.sources),
        commit_s=progress.phases_s.get("commitOffsets", NAN),
        arrived_rows=arrived_rows,
        pending_rows=arrived_rows - sum(source.end for source in progress.sources),
        state_rows=progress.state_rows,
        tasks=tasks,
        sources=tuple(RecordedSource(source.rows, source.latest) for source in progress.sources),
    )


def _components(book: NameBook) -> tuple[RecordedComponent, ...]:
    """Each component comes after those it reads from."""
    components = book.components(prefixed=False)
    return tuple(
        RecordedComponent(component.name, component.inputs, component.keyed, part.stateful)
        for component, part in zip(components, book.parts.values(), strict=True)
    )


def _duration_s(text: str) -> float:
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz")
    return float(digits) * _SECONDS.get(text.strip()[len(digits) :], 0.001)
