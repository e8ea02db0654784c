"""Answers of Spark's REST API as values. An unexpected answer raises ValueError, KeyError or TypeError."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from homeostat.core.observation import NAN

Json = Mapping[str, Any]
_BATCH = re.compile(r"^batch = (\d+)$", re.MULTILINE)


def moment_s(text: str) -> float:
    """Seconds since the epoch, from `2026-11-15T05:08:17.504GMT` or, as in progress reports, `...Z`."""
    return datetime.fromisoformat(text.removesuffix("GMT").removesuffix("Z")).replace(tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class ListedApplication:
    id: str
    name: str
    version: str

    @classmethod
    def read(cls, answer: Json) -> Self:
        attempts = answer.get("attempts") or [{}]
        return cls(str(answer["id"]), str(answer["name"]), str(attempts[-1].get("appSparkVersion", "")))


@dataclass(frozen=True, slots=True)
class Job:
    """`group` is the run id of the query that started it. `batch` is None if it belongs to no batch."""

    id: int
    group: str
    batch: int | None
    query: str
    stages: tuple[int, ...]
    running: bool
    submitted_s: float
    ended_s: float = NAN
    tasks: int = 0

    @classmethod
    def read(cls, answer: Json) -> Self:
        description = str(answer.get("description") or "")
        batch = _BATCH.search(description)
        return cls(
            id=int(answer["jobId"]),
            group=str(answer.get("jobGroup") or ""),
            batch=int(batch.group(1)) if batch else None,
            query=description.partition("\n")[0] if batch else "",
            stages=tuple(sorted(int(stage) for stage in answer["stageIds"])),
            running=answer["status"] == "RUNNING",
            submitted_s=moment_s(answer["submissionTime"]),
            ended_s=moment_s(answer["completionTime"]) if answer.get("completionTime") else NAN,
            tasks=int(answer.get("numTasks", 0)),
        )


@dataclass(frozen=True, slots=True)
class StageAttempt:
    id: int
    attempt: int
    status: str
    tasks: int
    tasks_done: int

    @classmethod
    def read(cls, answer: Json) -> Self:
        return cls(
            id=int(answer["stageId"]),
            attempt=int(answer["attemptId"]),
            status=str(answer["status"]),
            tasks=int(answer["numTasks"]),
            tasks_done=int(answer["numCompleteTasks"]),
        )

    @property
    def ran(self) -> bool:
        """Skipped stages were computed by an earlier job, where their tasks are counted."""
        return self.status not in ("SKIPPED", "PENDING")

    @property
    def open(self) -> bool:
        return self.status in ("ACTIVE", "PENDING")


@dataclass(frozen=True, slots=True)
class Task:
    """A successful attempt at one partition of a stage. `run_s` excludes waiting for shuffle blocks."""

    index: int
    executor: str
    launched_s: float
    ended_s: float
    run_s: float
    rows_read: float
    rows_shuffled_in: float
    rows_shuffled_out: float
    rows_written: float

    @classmethod
    def read(cls, answer: Json) -> Self:
        metrics = answer["taskMetrics"]
        shuffle = metrics["shuffleReadMetrics"]
        launched_s = moment_s(answer["launchTime"])
        return cls(
            index=int(answer["index"]),
            executor=str(answer["executorId"]),
            launched_s=launched_s,
            ended_s=launched_s + answer["duration"] / 1000,
            run_s=max(0.0, (metrics["executorRunTime"] - shuffle["fetchWaitTime"]) / 1000),
            rows_read=float(metrics["inputMetrics"]["recordsRead"]),
            rows_shuffled_in=float(shuffle["recordsRead"]),
            rows_shuffled_out=float(metrics["shuffleWriteMetrics"]["recordsWritten"]),
            rows_written=float(metrics["outputMetrics"]["recordsWritten"]),
        )


@dataclass(frozen=True, slots=True)
class Executor:
    id: str
    host: str
    slots: int
    alive: bool

    @classmethod
    def read(cls, answer: Json) -> Self:
        cores = int(answer["totalCores"])
        return cls(
            id=str(answer["id"]),
            host=str(answer["hostPort"]).rpartition(":")[0],
            slots=int(answer.get("maxTasks", cores)),
            alive=bool(answer["isActive"]),
        )
