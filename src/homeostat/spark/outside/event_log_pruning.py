"""Keeps Spark's event logs within a size: deletes those of earlier runs, and the oldest parts of the present one.

The events of the deleted parts that later readers need stay in a compacted file, as Spark's history server writes them.
They describe the settings, the executors and the queries.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import IO

from homeostat.spark.outside import event_log
from homeostat.spark.outside.event_log import is_event_log, is_rolling, open_part, parts

# The events that a reader always needs, and that are written once or occasionally, not for every batch.
KEPT_EVENTS = (
    "SparkListenerLogStart",
    "SparkListenerResourceProfileAdded",
    event_log.APPLICATION_START,
    event_log.ENVIRONMENT,
    event_log.EXECUTOR_ADDED,
    event_log.EXECUTOR_REMOVED,
    event_log.BLOCK_MANAGER_ADDED,
    "SparkListenerBlockManagerRemoved",
    event_log.QUERY_STARTED,
    event_log.QUERY_TERMINATED,
)
_LINE_STARTS = tuple(f'{{"Event":"{kind}"'.encode() for kind in KEPT_EVENTS)
_COMPACTED = ".compact"


def prune_event_logs(directory: Path, most_bytes: int) -> int:
    """Delete the oldest logs, then the oldest parts of the newest log. Returns how many bytes were freed."""
    if not directory.is_dir():
        return 0
    logs = sorted(
        (entry for entry in directory.iterdir() if is_rolling(entry) or is_event_log(entry)),
        key=lambda entry: entry.stat().st_mtime,
    )
    before_bytes = total_bytes = sum(size_of(entry) for entry in logs)
    for entry in logs[:-1]:
        if total_bytes <= most_bytes:
            break
        total_bytes -= size_of(entry)
        shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
    if logs and total_bytes > most_bytes and logs[-1].is_dir():
        total_bytes -= _fold(logs[-1], total_bytes - most_bytes)
    return before_bytes - total_bytes


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a directory; a file that disappears meanwhile counts as none."""
    if not path.is_dir():
        return _bytes_of(path)
    return sum(_bytes_of(Path(folder, name)) for folder, _, names in os.walk(path) for name in names)


def _bytes_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _fold(log: Path, excess_bytes: int) -> int:
    """Replace the oldest parts of a log by one compacted file. The part that is being written stays."""
    folded: list[Path] = []
    for part in parts(log)[:-1]:
        if sum(map(size_of, folded)) >= excess_bytes:
            break
        folded.append(part)
    whole = [part for part in folded if not part.name.endswith(_COMPACTED)]
    if not whole:
        return 0
    before_bytes = size_of(log)
    compacted = log / f"{whole[-1].name}{_COMPACTED}"
    temporary = log / f".{compacted.name}.new"
    with _written(temporary) as target:
        for part in folded:
            _copy_kept(part, target)
    temporary.replace(compacted)
    for part in folded:
        part.unlink(missing_ok=True)
    return before_bytes - size_of(log)


def _copy_kept(part: Path, target: IO[bytes]) -> None:
    with open_part(part) as lines:
        while True:
            try:
                line = lines.readline()
            except OSError:
                return  # damaged: what came before is kept
            if not line:
                return
            if line.startswith(_LINE_STARTS):
                target.write(line)


def _written(path: Path) -> IO[bytes]:
    if ".zstd" in path.name:
        import pyarrow as pa

        stream: IO[bytes] = pa.CompressedOutputStream(str(path), "zstd")
        return stream
    return path.open("wb")
