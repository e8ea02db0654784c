"""Reduces an event log to the data that a reader of streaming queries can use, and removes the traces of the machine
that wrote it."""

from __future__ import annotations

import getpass
import json
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from homeostat.spark.outside import event_log
from homeostat.spark.outside.event_log import open_part, parts
from homeostat.spark.outside.logged_run import UPDATED_KEYS

Json = Mapping[str, Any]

JOB_END = "SparkListenerJobEnd"
STAGE_COMPLETED = "SparkListenerStageCompleted"
LOG_START = "SparkListenerLogStart"
STAGE_EXECUTOR_METRICS = "SparkListenerStageExecutorMetrics"
# The first lines of a reason describe the event. The rest is a stack trace, which is never read.
REASON_CHARACTERS = 300
_PROPERTIES_OF_A_JOB = (
    "spark.jobGroup.id",
    "streaming.sql.batchId",
    "sql.streaming.queryId",
    "spark.sql.execution.id",
    "spark.job.description",
    "spark.job.tags",
    "callSite.short",
)
_SETTINGS = (
    "spark.sql.",
    "spark.memory.",
    "spark.task.",
    "spark.locality.",
    "spark.shuffle.",
    "spark.reducer.",
    "spark.speculation",
    "spark.default.parallelism",
    "spark.dynamicAllocation.",
    "spark.executor.memory",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.scheduler.mode",
    "spark.app.name",
    "spark.master",
)
_PATH = re.compile(r"(?<![\w.])/(?:[^\s/\"'\\\[\](){}<>,;:=]+/)+([^\s/\"'\\\[\](){}<>,;:=]*)")
_ZSTD_LEVEL = 19  # the logs are written once and stored in the repository


def _task_end(event: Json) -> Json:
    info, metrics = dict(event["Task Info"]), dict(event.get("Task Metrics") or {})
    info["Accumulables"] = [
        {"Name": each["Name"], "Update": each.get("Update")}
        for each in info.get("Accumulables", ())
        if each.get("Name") == UPDATED_KEYS
    ]
    metrics.pop("Updated Blocks", None)
    stack = ("Stack Trace", "Full Stack Trace", "Accumulator Updates")
    reason = {name: _cut(value) for name, value in event["Task End Reason"].items() if name not in stack}
    return {**event, "Task End Reason": reason, "Task Info": info, "Task Metrics": metrics}


def _job_start(event: Json) -> Json:
    properties = event.get("Properties") or {}
    return {
        **_only(event, "Event", "Job ID", "Submission Time", "Stage IDs"),
        "Stage Infos": [_only(stage, "Stage ID", "Stage Name") for stage in event.get("Stage Infos", ())],
        "Properties": _only(properties, *_PROPERTIES_OF_A_JOB),
    }


def _job_end(event: Json) -> Json:
    return {**_only(event, "Event", "Job ID", "Completion Time"), "Job Result": _only(event["Job Result"], "Result")}


def _stage_submitted(event: Json) -> Json:
    info = event["Stage Info"]
    kept = _only(info, "Stage ID", "Stage Attempt ID", "Stage Name", "Number of Tasks", "Parent IDs", "Submission Time")
    return {"Event": event["Event"], "Stage Info": {**kept, "RDD Info": [_rdd(rdd) for rdd in info["RDD Info"]]}}


def _rdd(rdd: Json) -> Json:
    storage = _only(rdd["Storage Level"], "Use Memory", "Use Disk")
    return {**_only(rdd, "RDD ID", "Scope", "Parent IDs", "Number of Partitions"), "Storage Level": storage}


def _stage_completed(event: Json) -> Json:
    info = event["Stage Info"]
    names = ("Stage ID", "Stage Attempt ID", "Number of Tasks", "Submission Time", "Completion Time", "Failure Reason")
    return {"Event": event["Event"], "Stage Info": {name: _cut(value) for name, value in _only(info, *names).items()}}


def _executor_added(event: Json) -> Json:
    info = _only(event["Executor Info"], "Host", "Total Cores", "Resource Profile Id")
    return {**_only(event, "Event", "Timestamp", "Executor ID"), "Executor Info": info}


def _application_start(event: Json) -> Json:
    return _only(event, "Event", "App Name", "App ID", "Timestamp")


def _environment(event: Json) -> Json:
    settings = {name: value for name, value in event["Spark Properties"].items() if name.startswith(_SETTINGS)}
    return {"Event": event["Event"], "Spark Properties": settings}


def _reasons_cut(event: Json) -> Json:
    return {name: _cut(value) for name, value in event.items()}


def _whole(event: Json) -> Json:
    return event


SHRINKERS: Mapping[str, Callable[[Json], Json]] = {
    LOG_START: _whole,
    event_log.APPLICATION_START: _application_start,
    event_log.ENVIRONMENT: _environment,
    event_log.BLOCK_MANAGER_ADDED: _whole,
    event_log.EXECUTOR_ADDED: _executor_added,
    event_log.EXECUTOR_REMOVED: _reasons_cut,
    event_log.JOB_START: _job_start,
    JOB_END: _job_end,
    event_log.STAGE_SUBMITTED: _stage_submitted,
    STAGE_COMPLETED: _stage_completed,
    STAGE_EXECUTOR_METRICS: _whole,
    event_log.TASK_END: _task_end,
    event_log.QUERY_STARTED: _whole,
    event_log.QUERY_PROGRESS: _whole,
    event_log.QUERY_TERMINATED: _reasons_cut,
}
LINE_STARTS = tuple(f'{{"Event":"{kind}"'.encode() for kind in SHRINKERS)


def kept_events(log: Path) -> Iterator[dict[str, Any]]:
    """The events of a log that are kept, as they were written."""
    for part in parts(log):
        with open_part(part) as lines:
            for line in lines:
                if line.startswith(LINE_STARTS):
                    yield json.loads(line)


def shrink(event: Json) -> Json:
    """An event without fields that nothing reads."""
    return SHRINKERS[event["Event"]](event)


class Scrubber:
    """Replaces the names of this machine and user, and absolute paths, always by the same words."""

    def __init__(self) -> None:
        names = {socket.gethostname(): "driver-host", socket.getfqdn(): "driver-host", _user(): "user"}
        usual = ("", "localhost", "user", "root")  # these words are not secret, and they occur in other words
        self._names = {name: word for name, word in names.items() if name not in usual}

    def clean(self, text: str) -> str:
        for name, word in self._names.items():
            text = text.replace(name, word)
        return _PATH.sub(r"/path/\1", text)


def write_log(path: Path, events: Iterable[Json]) -> None:
    """Write events as a compressed event log that `EventLog` reads."""
    import pyarrow as pa

    scrubber = Scrubber()
    lines = (json.dumps(shrink(event), separators=(",", ":"), ensure_ascii=False) for event in events)
    text = "".join(f"{scrubber.clean(line)}\n" for line in lines)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_bytes(pa.Codec("zstd", compression_level=_ZSTD_LEVEL).compress(text.encode(), asbytes=True))
    draft.replace(path)


def _only(values: Json, *names: str) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def _cut(value: Any) -> Any:
    return value[:REASON_CHARACTERS] if isinstance(value, str) else value


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
