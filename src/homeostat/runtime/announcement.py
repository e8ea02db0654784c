"""A manager writes down what it watches, so that `status`, `log`, `explain` and the dashboard can find it.

Every manager, whether `homeostat run` or `hs.attach` started it, leaves `driver.json` in its directory. A per-user list
of these directories lets the commands find an application that was started in another working directory.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from homeostat.runtime.identity import Identity
from homeostat.runtime.launch import CAPABILITIES, STARTED, read_json, write_json
from homeostat.settings import read
from homeostat.store.address import LogAddress, log_address, resolved

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from homeostat.settings_file import Config
    from homeostat.spark.application import Application

HOME = Path(".homeostat")
LOG_USE = "log"
NO_DISKS: Mapping[str, Path] = MappingProxyType({})
NO_CHECKPOINTS: Mapping[str, str] = MappingProxyType({})
# Where only the time of day of a start is known, the clock may have been set by this much since then.
_CLOCK_STEP_S = 2.0
_START_TICKS = 19  # the field of /proc/<process>/stat after the name of the process


def announce(directory: Path, application: Application, config: Config, identity: Identity) -> None:
    """Write down which queries are watched and which actions are possible."""
    from homeostat.spark.application import checkpoint_locations

    application.publish_capabilities(partial(write_json, directory / CAPABILITIES))
    queries = {pipeline.name: application.run_name(pipeline.name) for pipeline in application.pipelines}
    if isinstance(config.store, Path):
        application.disks.watch(LOG_USE, config.store.parent)
    locations = checkpoint_locations(application)
    announce_driver(directory, application.spark, config, identity, queries, application.disks.paths, locations)


def announce_driver(
    directory: Path,
    spark: SparkSession,
    config: Config,
    identity: Identity,
    queries: Mapping[str, str],
    disks: Mapping[str, Path] = NO_DISKS,
    checkpoints: Mapping[str, str] = NO_CHECKPOINTS,
) -> None:
    """`queries` maps the name of each query to the name of its run in the log. `disks` maps each use to a path, and
    `checkpoints` the name of a query to the location of its checkpoint, if known."""
    context, space = spark.sparkContext, read(config.sections).space
    facts = {
        "process": os.getpid(),
        "identity": identity.id,
        "application": context.applicationId,
        "ui": str(context.uiWebUrl),
        "started_s": time.time(),
        "up_s": time.monotonic(),
        "process_start": process_start(os.getpid()),
        "queries": dict(queries),
        "mode": config.mode,
        "store": str(resolved(config.store)),
        "disks": {use: str(path) for use, path in disks.items()},
        "checkpoints": dict(checkpoints),
        "limits": {
            "log": config.log.largest,
            **{name: getattr(config.files, name) for name in ("event_logs", "driver_log")},
            **{name: getattr(space, name) for name in ("least_free", "most_savepoints", "savepoints")},
        },
    }
    write_json(directory / STARTED, facts)
    _list(directory)


def withdraw(directory: Path) -> None:
    (directory / STARTED).unlink(missing_ok=True)
    entry = _entry(directory)
    if entry is not None:
        entry.unlink(missing_ok=True)


def read_announcement(directory: Path) -> dict[str, Any] | None:
    facts = read_json(directory / STARTED)
    return facts if isinstance(facts, dict) else None


def log_of(announcement: Mapping[str, Any]) -> LogAddress:
    return log_address(str(announcement.get("store", "homeostat.sqlite")))


def directories_here() -> list[Path]:
    """The applications below `.homeostat` of the working directory, the one started last at the end."""
    markers = sorted(HOME.glob(f"*/{STARTED}"), key=lambda path: path.stat().st_mtime)
    return [marker.parent for marker in markers]


def directories_elsewhere() -> list[Path]:
    """The user's applications on this machine that are running, whatever directory they were started in."""
    return sorted(directory for directory in _files() if is_running(read_announcement(directory) or {}))


def is_running(facts: Mapping[str, Any]) -> bool:
    """Whether the process that wrote these facts still exists, and is not another one with the same id."""
    import psutil

    try:
        process = int(facts["process"])
        start = process_start(process)
        if start is not None and facts.get("process_start") is not None:
            return bool(start == facts["process_start"])
        created_s = psutil.Process(process).create_time()
    except (psutil.Error, KeyError, ValueError):
        return False
    return bool(created_s <= float(facts["started_s"]) + _CLOCK_STEP_S)


def process_start(process: int) -> int | None:
    """When a process started, in ticks since the start of the system; None if that is not known here.

    Together with the id, it identifies a process. Setting the clock does not change it.
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return None
    return int(stat.rpartition(b")")[2].split()[_START_TICKS])


def user_state() -> Path:
    """The directory for Homeostat's files about this user's applications on this machine."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "homeostat"


def _list(directory: Path) -> None:
    """Optional: if the user has no writable home directory, the application runs without this list."""
    entry = _entry(directory)
    if entry is None:
        return
    try:
        write_json(entry, {"directory": str(directory.resolve()), "host": socket.gethostname()})
    except OSError:
        return


def _entry(directory: Path) -> Path | None:
    name = hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:16]
    try:
        return user_state() / "applications" / f"{name}.json"
    except RuntimeError:  # a user without a home directory
        return None


def _files() -> Iterator[Path]:
    try:
        entries = list((user_state() / "applications").glob("*.json"))
    except (OSError, RuntimeError):
        return
    for entry in entries:
        listing = read_json(entry)
        if isinstance(listing, dict) and listing.get("host") == socket.gethostname():
            yield Path(str(listing.get("directory", "")))
