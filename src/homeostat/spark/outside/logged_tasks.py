"""The tasks of a stage from the events of a log, as the REST API would list them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeostat.core.observation import NAN
from homeostat.spark.outside.event_log import Event
from homeostat.spark.sense.failure_reasons import executor_lost, fetch_failed, short_reason
from homeostat.spark.sense.task_answers import LOCALITIES, OtherAttempt, Task, TaskCost

Json = Mapping[str, Any]
_SUCCESS = "Success"


def read_attempt(event: Event) -> Task | OtherAttempt:
    """From the event that reports the end of an attempt at a task."""
    info, end = event["Task Info"], event["Task End Reason"]
    index = int(info["Index"])
    partition = int(info.get("Partition ID", index))
    if end["Reason"] == _SUCCESS:
        return _task(index, partition, info, event["Task Metrics"])
    return OtherAttempt(index, partition, _duration_ms(info) / 1000, _reason(end))


def _task(index: int, partition: int, info: Json, metrics: Json) -> Task:
    shuffle = metrics["Shuffle Read Metrics"]
    return Task(
        index=index,
        executor=str(info["Executor ID"]),
        launched_s=info["Launch Time"] / 1000,
        ended_s=info["Launch Time"] / 1000 + _duration_ms(info) / 1000,
        run_s=max(0.0, (metrics["Executor Run Time"] - shuffle["Fetch Wait Time"]) / 1000),
        rows_read=float(metrics["Input Metrics"]["Records Read"]),
        rows_shuffled_in=float(shuffle["Total Records Read"]),
        rows_shuffled_out=float(metrics["Shuffle Write Metrics"]["Shuffle Records Written"]),
        rows_written=float(metrics["Output Metrics"]["Records Written"]),
        cost=_cost(info, metrics),
        partition=partition,
    )


def _cost(info: Json, metrics: Json) -> TaskCost:
    read, write = metrics["Shuffle Read Metrics"], metrics["Shuffle Write Metrics"]
    return TaskCost(
        cpu_s=metrics.get("Executor CPU Time", NAN) / 1e9,
        gc_s=metrics.get("JVM GC Time", NAN) / 1000,
        fetch_wait_s=read["Fetch Wait Time"] / 1000,
        shuffle_write_s=write.get("Shuffle Write Time", NAN) / 1e9,
        deserialise_s=metrics.get("Executor Deserialize Time", NAN) / 1000,
        serialise_s=metrics.get("Result Serialization Time", NAN) / 1000,
        delay_s=_delay_ms(info, metrics) / 1000,
        peak_memory_bytes=float(metrics.get("Peak Execution Memory", NAN)),
        spilled_memory_bytes=float(metrics.get("Memory Bytes Spilled", NAN)),
        spilled_disk_bytes=float(metrics.get("Disk Bytes Spilled", NAN)),
        input_bytes=float(metrics["Input Metrics"].get("Bytes Read", NAN)),
        output_bytes=float(metrics["Output Metrics"].get("Bytes Written", NAN)),
        shuffle_read_bytes=float(read.get("Local Bytes Read", NAN) + read.get("Remote Bytes Read", NAN)),
        shuffle_write_bytes=float(write.get("Shuffle Bytes Written", NAN)),
        locality=LOCALITIES.get(str(info.get("Locality")), NAN),
    )


def _duration_ms(info: Json) -> float:
    return float(info["Finish Time"] - info["Launch Time"])


def _delay_ms(info: Json, metrics: Json) -> float:
    """The time that a task did not spend on its executor, as Spark's own pages compute it."""
    fetched_ms = info.get("Getting Result Time", 0)
    fetching_ms = info["Finish Time"] - fetched_ms if fetched_ms else 0
    worked_ms = (
        metrics["Executor Run Time"]
        + metrics.get("Executor Deserialize Time", NAN)
        + metrics.get("Result Serialization Time", NAN)
    )
    delay_ms = _duration_ms(info) - worked_ms - fetching_ms
    return 0.0 if delay_ms < 0 else float(delay_ms)


def _reason(end: Json) -> str:
    """Empty for an attempt that was killed."""
    match end["Reason"]:
        case "TaskKilled":
            return ""
        case "ExceptionFailure":
            return short_reason(f"{end.get('Class Name', '')}: {end.get('Description', '')}")
        case "FetchFailed":
            address = end.get("Block Manager Address") or {}
            return fetch_failed(str(address.get("Executor ID", "")), str(address.get("Host", "")))
        case "ExecutorLostFailure":
            executor, reason = str(end.get("Executor ID", "")), str(end.get("Loss Reason", ""))
            return executor_lost(executor, reason, caused_by_task=bool(end.get("Exit Caused By App")))
        case other:
            return short_reason(str(other))
