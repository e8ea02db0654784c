"""The resources that an application uses, with their limits: files, processes and disks. Read by another process on its
machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from homeostat.core.errors import HomeostatError
from homeostat.core.observation import NAN, DiskSample
from homeostat.detectors.disk_space import enough_bytes
from homeostat.runtime.announcement import LOG_USE, log_of
from homeostat.runtime.file_limits import EVENTS, log_sizes
from homeostat.spark.outside.event_log_pruning import size_of
from homeostat.spark.sense.disks import Disks
from homeostat.store.address import LogAddress
from homeostat.store.opening import open_store

if TYPE_CHECKING:
    import psutil

# The files in which a container states how much memory its processes may use.
_MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")
_JAVA = "java"


@dataclass(frozen=True, slots=True)
class Use:
    """`used` is NaN if it is not known, and `bound` if there is none or it is not known."""

    what: str
    used: float = NAN
    bound: float = NAN
    unit: Literal["bytes", "count"] = "bytes"
    where: str = ""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """A disk of the application. Below `alert_below_bytes` of free space, an alert is sent."""

    disk: DiskSample
    alert_below_bytes: float


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    uses: tuple[Use, ...] = ()
    disks: tuple[DiskUse, ...] = ()


def resource_usage(directory: Path, about: Mapping[str, Any], alive: bool) -> ResourceUsage:
    """`about` is the announcement. One of an earlier version says no limits, so no bounds are known."""
    limits = {name: float(value) for name, value in dict(about.get("limits") or {}).items()}
    uses = [*_files(directory, about, limits), *_savepoints(about, limits), *_processes(about, alive)]
    return ResourceUsage(tuple(uses), tuple(_disks(directory, about, limits)))


def _files(directory: Path, about: Mapping[str, Any], limits: Mapping[str, float]) -> Iterator[Use]:
    log = log_of(about)
    yield Use("log", _log_bytes(log), limits.get("log", NAN), where=str(log))
    events = directory / EVENTS
    event_bytes = size_of(events) if events.is_dir() else NAN
    yield Use("event logs", event_bytes, limits.get("event_logs", NAN), where=str(events))
    sizes = log_sizes(directory)
    name = max(sizes, key=lambda each: sizes[each], default="")
    where = str(directory / name)
    yield Use("largest log of the driver", sizes.get(name, NAN), limits.get("driver_log", NAN), where=where)


def _savepoints(about: Mapping[str, Any], limits: Mapping[str, float]) -> Iterator[Use]:
    from homeostat.checkpoint.savepoint_space import savepoint_space

    locations = dict(about.get("checkpoints") or {})
    for query in about.get("queries", {}):
        location = str(locations.get(query, ""))
        sample = savepoint_space(location) if location else None
        count, held_bytes = (NAN, NAN) if sample is None else (float(sample.count), sample.held_bytes)
        where = sample.path if sample is not None else ""
        yield Use(f"savepoints of {query}", count, limits.get("most_savepoints", NAN), "count", where)
        yield Use(f"space of savepoints of {query}", held_bytes, limits.get("savepoints", NAN), where=where)


def _processes(about: Mapping[str, Any], alive: bool) -> Iterator[Use]:
    for kind, process in _driver_processes(int(about["process"]) if alive else None):
        yield from process_uses(kind, process)


def _driver_processes(python: int | None) -> list[tuple[str, psutil.Process | None]]:
    """The driver is a Python process and the Java process that it started, as far as they can be found."""
    import psutil

    process = java = None
    try:
        if python is not None:
            process = psutil.Process(python)
            java = next((child for child in process.children() if child.name() == _JAVA), None)
    except psutil.Error:
        pass
    return [("Python", process), ("Java", java)]


def process_uses(kind: str, process: psutil.Process | None) -> Iterator[Use]:
    """Memory, threads and open files of a process; unknown if it is not there or belongs to another user."""
    import psutil

    def ask(question: Any) -> float:
        try:
            return float(question(process)) if process is not None else NAN
        except (psutil.Error, OSError):
            return NAN

    where = f"process {process.pid}" if process is not None else ""
    memory_bytes, memory_bound = ask(lambda each: each.memory_info().rss), _memory_bound()
    yield Use(f"memory of the driver's {kind}", memory_bytes, memory_bound, where=where)
    threads, most_threads = ask(lambda each: each.num_threads()), ask(lambda each: _limit(each, "RLIMIT_NPROC"))
    yield Use(f"threads of the driver's {kind}", threads, most_threads, "count", where)
    files, most_files = ask(lambda each: each.num_fds()), ask(lambda each: _limit(each, "RLIMIT_NOFILE"))
    yield Use(f"open files of the driver's {kind}", files, most_files, "count", where)


def _limit(process: psutil.Process, name: str) -> float:
    """The limit that the operating system sets for a process. NaN if there is none, or if it is unknown."""
    import psutil

    kind = getattr(psutil, name, None)
    if kind is None:
        return NAN
    soft, _ = process.rlimit(kind)
    return NAN if soft == psutil.RLIM_INFINITY else float(soft)


def _memory_bound() -> float:
    """What all processes of this machine, or of this container, may use together."""
    import psutil

    try:
        limit = float(_MEMORY_LIMIT.read_text())
    except (OSError, ValueError):  # not in a container, or "max"
        limit = math.inf
    return min(limit, float(psutil.virtual_memory().total))


def _disks(directory: Path, about: Mapping[str, Any], limits: Mapping[str, float]) -> Sequence[DiskUse]:
    paths = {str(use): Path(str(path)) for use, path in dict(about.get("disks") or {}).items()}
    if not paths:
        log = log_of(about)
        paths = {"checkpoints": directory} | ({LOG_USE: log.parent} if isinstance(log, Path) else {})
    least_free = limits.get("least_free", NAN)
    return [
        DiskUse(disk, NAN if math.isnan(least_free) else enough_bytes(disk.total_bytes, least_free))
        for disk in Disks(paths).look()
    ]


def _log_bytes(log: LogAddress) -> float:
    if isinstance(log, Path):
        beside = [log.with_name(log.name + suffix) for suffix in ("", "-wal", "-shm")]
        return sum(map(size_of, beside)) if log.exists() else NAN
    try:
        with closing(open_store(log, read_only=True)) as store:
            return store.usage().file_bytes
    except HomeostatError:
        return NAN
