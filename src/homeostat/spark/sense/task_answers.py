"""The tasks of a stage as Spark lists them: those that succeeded, and the other attempts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from homeostat.core.observation import NAN
from homeostat.spark.sense.failure_reasons import short_reason
from homeostat.spark.sense.rest_answers import moment_s

Json = Mapping[str, Any]
LOCALITIES = {"PROCESS_LOCAL": 0.0, "NODE_LOCAL": 1.0, "NO_PREF": 2.0, "RACK_LOCAL": 3.0, "ANY": 4.0}


@dataclass(frozen=True, slots=True)
class TaskCost:
    """One task's entry in the columns of TaskCosts, which have the same names."""

    cpu_s: float = NAN
    gc_s: float = NAN
    fetch_wait_s: float = NAN
    shuffle_write_s: float = NAN
    deserialise_s: float = NAN
    serialise_s: float = NAN
    delay_s: float = NAN
    peak_memory_bytes: float = NAN
    spilled_memory_bytes: float = NAN
    spilled_disk_bytes: float = NAN
    input_bytes: float = NAN
    output_bytes: float = NAN
    shuffle_read_bytes: float = NAN
    shuffle_write_bytes: float = NAN
    locality: float = NAN

    @classmethod
    def read(cls, answer: Json) -> Self:
        metrics = answer["taskMetrics"]
        read, write = metrics["shuffleReadMetrics"], metrics["shuffleWriteMetrics"]
        return cls(
            cpu_s=metrics.get("executorCpuTime", NAN) / 1e9,
            gc_s=metrics.get("jvmGcTime", NAN) / 1000,
            fetch_wait_s=read["fetchWaitTime"] / 1000,
            shuffle_write_s=write.get("writeTime", NAN) / 1e9,
            deserialise_s=metrics.get("executorDeserializeTime", NAN) / 1000,
            serialise_s=metrics.get("resultSerializationTime", NAN) / 1000,
            delay_s=answer.get("schedulerDelay", NAN) / 1000,
            peak_memory_bytes=float(metrics.get("peakExecutionMemory", NAN)),
            spilled_memory_bytes=float(metrics.get("memoryBytesSpilled", NAN)),
            spilled_disk_bytes=float(metrics.get("diskBytesSpilled", NAN)),
            input_bytes=float(metrics["inputMetrics"].get("bytesRead", NAN)),
            output_bytes=float(metrics["outputMetrics"].get("bytesWritten", NAN)),
            shuffle_read_bytes=float(read.get("localBytesRead", NAN) + read.get("remoteBytesRead", NAN)),
            shuffle_write_bytes=float(write.get("bytesWritten", NAN)),
            locality=LOCALITIES.get(str(answer.get("taskLocality")), NAN),
        )


@dataclass(frozen=True, slots=True)
class Task:
    """A successful attempt at one partition of a stage. `run_s` excludes waiting for shuffle blocks.

    `index` counts the tasks of an attempt at the stage, and `partition` the partitions of the stage. They differ if the
    attempt computes only what an earlier one did not.
    """

    index: int
    executor: str
    launched_s: float
    ended_s: float
    run_s: float
    rows_read: float
    rows_shuffled_in: float
    rows_shuffled_out: float
    rows_written: float
    cost: TaskCost = TaskCost()
    partition: int = -1

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
            cost=TaskCost.read(answer),
            partition=int(answer.get("partitionId", answer["index"])),
        )


@dataclass(frozen=True, slots=True)
class OtherAttempt:
    """An attempt that did not succeed. If it has a reason, it failed. Otherwise it still runs, or it was killed because
    another attempt was faster or the stage was cancelled."""

    index: int
    partition: int
    seconds: float
    reason: str = ""

    @classmethod
    def read(cls, answer: Json) -> Self:
        index = int(answer["index"])
        return cls(
            index=index,
            partition=int(answer.get("partitionId", index)),
            seconds=answer.get("duration", NAN) / 1000,
            reason=short_reason(str(answer.get("errorMessage") or "")) if answer["status"] == "FAILED" else "",
        )


@dataclass(frozen=True, slots=True)
class TaskList:
    """The attempts at the tasks of a stage."""

    successful: tuple[Task, ...] = ()
    others: tuple[OtherAttempt, ...] = ()

    @classmethod
    def read(cls, answers: Iterable[Json]) -> Self:
        successful: list[Task] = []
        others: list[OtherAttempt] = []
        for answer in answers:
            if answer["status"] != "SUCCESS":
                others.append(OtherAttempt.read(answer))
            elif "taskMetrics" in answer:
                successful.append(Task.read(answer))
        return cls(tuple(successful), tuple(others))

    def __add__(self, other: TaskList) -> TaskList:
        return TaskList(self.successful + other.successful, self.others + other.others)
