"""Reads Spark's event log, from one file or a rolling directory, even while the application runs."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from homeostat.core.errors import ConfigError
from homeostat.spark.sense.plan_graph import StageGraph, from_scopes

Event = Mapping[str, Any]

TASK_END = "SparkListenerTaskEnd"
JOB_START = "SparkListenerJobStart"
STAGE_SUBMITTED = "SparkListenerStageSubmitted"
JOB_END = "SparkListenerJobEnd"
STAGE_COMPLETED = "SparkListenerStageCompleted"
STAGE_EXECUTOR_METRICS = "SparkListenerStageExecutorMetrics"
EXECUTOR_ADDED = "SparkListenerExecutorAdded"
EXECUTOR_REMOVED = "SparkListenerExecutorRemoved"
BLOCK_MANAGER_ADDED = "SparkListenerBlockManagerAdded"
APPLICATION_START = "SparkListenerApplicationStart"
ENVIRONMENT = "SparkListenerEnvironmentUpdate"
_LISTENER = "org.apache.spark.sql.streaming.StreamingQueryListener$"
QUERY_STARTED = f"{_LISTENER}QueryStartedEvent"
QUERY_PROGRESS = f"{_LISTENER}QueryProgressEvent"
QUERY_TERMINATED = f"{_LISTENER}QueryTerminatedEvent"
_SQL = "org.apache.spark.sql.execution.ui.SparkListener"
SQL_STARTED = f"{_SQL}SQLExecutionStart"
SQL_REPLANNED = f"{_SQL}SQLAdaptiveExecutionUpdate"
SQL_COUNTED = f"{_SQL}DriverAccumUpdates"
KINDS = (
    TASK_END,
    JOB_START,
    STAGE_SUBMITTED,
    EXECUTOR_ADDED,
    EXECUTOR_REMOVED,
    BLOCK_MANAGER_ADDED,
    APPLICATION_START,
    ENVIRONMENT,
    QUERY_STARTED,
    QUERY_PROGRESS,
    QUERY_TERMINATED,
)
# The events from which observations are made.
OBSERVED_KINDS = (
    *KINDS,
    JOB_END,
    STAGE_COMPLETED,
    STAGE_EXECUTOR_METRICS,
    SQL_STARTED,
    SQL_REPLANNED,
    SQL_COUNTED,
)
_ROLLED = re.compile(r"events_(\d+)_")
_OFFSETS = ("startOffset", "endOffset", "latestOffset")
_UNREADABLE = (".lz4", ".lzf", ".snappy")


class EventLog:
    """The events of these kinds, each once. Each call of `new_events` returns those written since the last call.

    In a directory with several logs, it reads the newest, or the newest of the application with this id.
    """

    def __init__(self, path: str | Path, application: str = "", kinds: Sequence[str] = KINDS) -> None:
        # Most lines of a log are plans and task starts. Lines of other kinds are not parsed.
        self._line_starts = tuple(f'{{"Event":"{kind}"'.encode() for kind in kinds)
        self._path = _log_in(Path(path), application)
        self._read_bytes: dict[str, int] = {}
        self._complete: set[str] = set()
        self.damaged_lines = 0

    def new_events(self) -> Iterator[Event]:
        files = parts(self._path)
        # A compacted file that appears later repeats what was already read.
        fresh = [file for file in files if not (self._read_bytes and file.name.endswith(".compact"))]
        for file in fresh:
            # Spark removes this suffix when the file is complete.
            key = file.name.removesuffix(".inprogress")
            if key in self._complete:
                continue
            try:
                yield from self._from_file(file, key)
            except FileNotFoundError:
                continue  # deleted meanwhile, to save space
            if file != files[-1]:
                self._complete.add(key)
        if self._path.is_dir():
            present = {file.name for file in files}
            self._complete &= present
            self._read_bytes = {key: count for key, count in self._read_bytes.items() if key in present} or {"": 0}

    def _from_file(self, file: Path, key: str) -> Iterator[Event]:
        with open_part(file) as stream:
            _skip(stream, self._read_bytes.get(key, 0))
            self._read_bytes.setdefault(key, 0)
            for line in _whole_lines(stream):
                self._read_bytes[key] += len(line)
                if line.startswith(self._line_starts):
                    try:
                        yield json.loads(line)
                    except ValueError:
                        self.damaged_lines += 1


def progress_of(event: Event) -> Mapping[str, Any]:
    """The progress in a QUERY_PROGRESS event, in the format that listeners get."""
    progress = dict(event["progress"])
    progress["sources"] = [
        {**source, **{name: _decode(source.get(name)) for name in _OFFSETS}} for source in progress["sources"]
    ]
    return progress


def graph_of(stage_info: Mapping[str, Any]) -> StageGraph:
    """The operators of a stage, from the "Stage Info" of an event."""
    rdds = stage_info["RDD Info"]
    own = {int(rdd["RDD ID"]) for rdd in rdds}
    scopes = []
    for rdd in rdds:
        scope = json.loads(rdd["Scope"]) if "Scope" in rdd else {"id": "", "name": ""}
        scopes.append((int(rdd["RDD ID"]), str(scope["id"]), str(scope["name"])))
    reads = {int(parent) for rdd in rdds for parent in rdd.get("Parent IDs", ())} - own
    cached_rdds = {int(rdd["RDD ID"]) for rdd in rdds if rdd["Storage Level"]["Use Memory"]}
    return from_scopes(scopes, reads, cached_rdds)


def _decode(offset: Any) -> Any:
    """In a log, offsets are JSON inside a string."""
    try:
        return json.loads(offset) if isinstance(offset, str) else offset
    except ValueError:
        return offset


def _log_in(path: Path, application: str) -> Path:
    """A file, a rolling log, or the newest one in a directory of logs."""
    if not path.exists():
        raise ConfigError(
            "no such file or directory", where=str(path), fix="pass an event log or the value of spark.eventLog.dir"
        )
    if path.is_file() or is_rolling(path):
        return path
    logs = [entry for entry in path.iterdir() if is_rolling(entry) or is_event_log(entry)]
    if not logs:
        raise ConfigError(
            "the directory has no event log", where=str(path), fix="set spark.eventLog.enabled in the application"
        )
    if application:
        logs = [entry for entry in logs if _is_of(application, entry)]
        if not logs:
            raise ConfigError(
                f"the directory has no event log of {application}",
                where=str(path),
                fix="pass the value of its spark.eventLog.dir",
            )
    return max(logs, key=lambda entry: entry.stat().st_mtime)


def _is_of(application: str, log: Path) -> bool:
    """By its name: the id in lower case, optionally followed by `_<attempt>` and suffixes."""
    name, prefix = log.name.removeprefix("eventlog_v2_"), application.lower()
    return name == prefix or name.startswith((f"{prefix}_", f"{prefix}."))


def is_rolling(path: Path) -> bool:
    """Whether this is the directory of a log in parts."""
    return path.is_dir() and any(_ROLLED.match(entry.name) for entry in path.iterdir())


def is_event_log(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".")


def parts(path: Path) -> list[Path]:
    """The files of a log, in order of time. A compacted file replaces all files before it."""
    if path.is_dir():
        numbered_files = sorted(
            (int(match[1]), entry) for entry in path.iterdir() if (match := _ROLLED.match(entry.name))
        )
        compacted_files = [entry for entry in numbered_files if entry[1].name.endswith(".compact")][-1:]
        later = [entry for entry in numbered_files if not compacted_files or entry[0] > compacted_files[0][0]]
        return [entry for _, entry in compacted_files + later]
    finished_path = path.with_name(path.name.removesuffix(".inprogress"))
    return [path if path.exists() else finished_path]


def open_part(file: Path) -> IO[bytes]:
    name = file.name.removesuffix(".compact").removesuffix(".inprogress")
    if name.endswith(_UNREADABLE):
        raise ConfigError(
            "event logs with this compression cannot be read",
            where=str(file),
            fix="set spark.eventLog.compress=false or spark.eventLog.compression.codec=zstd",
        )
    if name.endswith(".zstd"):
        import pyarrow as pa

        return io.BufferedReader(pa.input_stream(str(file), compression="zstd"))
    return file.open("rb")


def _skip(stream: IO[bytes], count: int) -> None:
    if count and stream.seekable():
        stream.seek(count)
        return
    while count > 0 and (read := stream.read(min(count, 1 << 20))):
        count -= len(read)


def _whole_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines up to the last line end. The rest is still being written, or was cut off."""
    while True:
        try:
            line = stream.readline()
        except OSError:
            return  # the compressed stream is incomplete
        if not line.endswith(b"\n"):
            return
        yield line
