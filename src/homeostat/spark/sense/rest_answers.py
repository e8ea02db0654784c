"""Answers of Spark's REST API as values. An unexpected answer raises ValueError, KeyError or TypeError."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from homeostat.core.observation import NAN

Json = Mapping[str, Any]
_BROADCAST_TAG = "broadcast exchange"
_RESERVED_BYTES = 300 * 2**20  # Spark's own constant
_MOST_CHARACTERS = 100  # a choice: a line in a table
_BATCH = re.compile(r"^batch = (\d+)$", re.MULTILINE)


def moment_s(text: str) -> float:
    """Seconds since the epoch, from `2026-11-15T05:08:17.504GMT` or, as in progress reports, `...Z`."""
    return datetime.fromisoformat(text.removesuffix("GMT").removesuffix("Z")).replace(tzinfo=UTC).timestamp()


def _optional_s(text: str | None) -> float:
    return moment_s(text) if text else NAN


def job_name(description: str, call_site: str) -> str:
    """The first line of the description that the user set, or where in the code the job was started."""
    return (description.partition("\n")[0] or call_site)[:_MOST_CHARACTERS]


def is_broadcast(tags: Iterable[str]) -> bool:
    """Whether a job collects the small side of a join, by Spark's own tags."""
    return any(tag.startswith(_BROADCAST_TAG) for tag in tags)


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
    """`group` is the run id of the query that started it. `batch` is None if its description names none. `name` is the
    user's own description, or else where in the code it was started. `broadcasts` is true if it collects the small side
    of a join."""

    id: int
    group: str
    batch: int | None
    query: str
    stages: tuple[int, ...]
    running: bool
    submitted_s: float
    ended_s: float = NAN
    tasks: int = 0
    name: str = ""
    broadcasts: bool = False

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
            ended_s=_optional_s(answer.get("completionTime")),
            tasks=int(answer.get("numTasks", 0)),
            name=job_name("" if batch else description, str(answer.get("name") or "")),
            broadcasts=is_broadcast(answer.get("jobTags") or ()),
        )


@dataclass(frozen=True, slots=True)
class StageAttempt:
    """`began_s` is when its first task was launched, or else when it was submitted."""

    id: int
    attempt: int
    status: str
    tasks: int
    tasks_done: int
    began_s: float = NAN
    ended_s: float = NAN

    @classmethod
    def read(cls, answer: Json) -> Self:
        return cls(
            id=int(answer["stageId"]),
            attempt=int(answer["attemptId"]),
            status=str(answer["status"]),
            tasks=int(answer["numTasks"]),
            tasks_done=int(answer["numCompleteTasks"]),
            began_s=_optional_s(answer.get("firstTaskLaunchedTime") or answer.get("submissionTime")),
            ended_s=_optional_s(answer.get("completionTime")),
        )

    @property
    def ran(self) -> bool:
        """Skipped stages were computed by an earlier job, where their tasks are counted."""
        return self.status not in ("SKIPPED", "PENDING")

    @property
    def open(self) -> bool:
        return self.status in ("ACTIVE", "PENDING")


@dataclass(frozen=True, slots=True)
class Executor:
    """`heap_bytes` is the largest use of its heap so far, and `storage_bytes` the part of the heap that Spark gives to
    caches and operators. `gc_s` is its time of garbage collection so far. `loss` is the reason why it is gone."""

    id: str
    host: str
    slots: int
    alive: bool
    heap_bytes: float = NAN
    storage_bytes: float = NAN
    gc_s: float = NAN
    loss: str = ""

    @classmethod
    def read(cls, answer: Json) -> Self:
        cores = int(answer["totalCores"])
        peak = answer.get("peakMemoryMetrics") or {}
        memory = answer.get("memoryMetrics") or {}
        return cls(
            id=str(answer["id"]),
            host=str(answer["hostPort"]).rpartition(":")[0],
            slots=int(answer.get("maxTasks", cores)),
            alive=bool(answer["isActive"]),
            # Zero until the first heartbeat.
            heap_bytes=float(peak.get("JVMHeapMemory") or NAN),
            storage_bytes=float(memory.get("totalOnHeapStorageMemory") or NAN),
            gc_s=max(answer.get("totalGCTime", NAN), peak.get("TotalGCTime", 0)) / 1000,
            loss=str(answer.get("removeReason") or ""),
        )

    def heap_limit_bytes(self, memory_fraction: float) -> float:
        """The size of its heap. Spark gives a fraction of it, after a fixed reserve, to caches and operators."""
        return self.storage_bytes / memory_fraction + _RESERVED_BYTES
