"""One file source of a query: the waiting files, their bytes and their age, from its directory and its log.

Spark reports how many files a batch took, but not how many are waiting. Homeostat lists the directory itself, and reads
in the checkpoint which files the batches have taken. Bytes take the place of offsets; rows are estimated from rows per
byte.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from homeostat.core.observation import NAN
from homeostat.core.source_sample import SourcePartition, SourceSample
from homeostat.spark.sense.arrival_times import ArrivalTimes
from homeostat.spark.sense.source_formats import SourceOptions

FORMATS = ("binaryfile", "csv", "json", "orc", "parquet", "text", "xml")
# Listing may take this share of the time, so that a directory with many files is listed less often. A choice.
_LISTING_SHARE = 0.05
# More files than this are not watched: their names would take much of the driver's memory. A choice.
MOST_FILES = 200_000
# The arrival rate is measured over these seconds, because files come in bursts. A choice.
_RATE_OVER_S = 60.0
_COMPACT = ".compact"


class TooManyFilesError(Exception):
    """The directory has more files than Homeostat remembers."""


class FileSource:
    """`log` is the directory in which the checkpoint lists the files that were read. `now_s` is the steady clock."""

    def __init__(
        self, query: str, options: SourceOptions, log: Path, now_s: Callable[[], float], most_files: int = MOST_FILES
    ) -> None:
        self.query, self.name = query, options.option("path")
        self._root, self._log, self._now_s, self._most_files = local_path(self.name), log, now_s, most_files
        self._unread: dict[str, tuple[float, float]] = {}  # size in bytes, and when it was written
        self._read: dict[str, float] = {}
        self._read_entry = -1
        self._ends = ArrivalTimes()
        self._read_bytes, self._total_bytes = 0.0, 0.0
        self._next_s = 0.0
        self._lock = threading.Lock()  # the end of a batch reads the values while the directory is being listed
        self.latest: SourceSample | None = None

    def look(self, offset: Any, rows_per_offset: float) -> SourceSample:
        """`offset` is where the latest batch ended, as Spark reports it; None before the first one."""
        now_s = self._now_s()
        if now_s >= self._next_s:
            began_s = time.monotonic()
            files = list(_files(self._root))
            with self._lock:
                self._note(files)
                self._ends.add(now_s, self._total_bytes)
            self._next_s = now_s + (time.monotonic() - began_s) / _LISTING_SHARE
        with self._lock:
            self._take(offset)
            self.latest = self._sample(now_s, rows_per_offset)
        return self.latest

    def _sample(self, now_s: float, rows_per_offset: float) -> SourceSample:
        read = self._read_bytes if self._read_entry >= 0 else NAN
        oldest_s = min((written_s for _, written_s in self._unread.values()), default=None)
        lag_s = 0.0 if oldest_s is None else max(0.0, time.time() - oldest_s)
        rate = self._ends.rate_per_s(now_s, _RATE_OVER_S)
        part = SourcePartition(f"{len(self._unread)} files", 0.0, read, self._total_bytes, lag_s, rate)
        return SourceSample(self.query, self.name, now_s, (part,), rows_per_offset)

    def end_at(self, at_s: float) -> float:
        """How many bytes had arrived at a moment."""
        with self._lock:
            return self._ends.end_at(at_s)

    def position(self, offset: Any) -> float:
        """The bytes of all files that were read up to an offset; NaN if it is not the offset of a file source."""
        with self._lock:
            self._take(offset)
            return self._read_bytes if self._read_entry >= 0 else NAN

    def _note(self, files: Sequence[tuple[str, float, float]]) -> None:
        """Add the new files, and drop those that were read and then removed (`cleanSource`)."""
        if len(files) > self._most_files:
            raise TooManyFilesError(f"{self.name} has more than {self._most_files:,} files")
        for path, size, written_s in files:
            if path not in self._unread and path not in self._read:
                self._unread[path] = (size, written_s)
                self._total_bytes += size
        present = {path for path, _, _ in files}
        for path in self._read.keys() - present:
            del self._read[path]

    def _take(self, offset: Any) -> None:
        """Note which files the batches up to this offset have read."""
        last = offset.get("logOffset") if isinstance(offset, Mapping) else None
        if not isinstance(last, int) or last <= self._read_entry:
            return
        for path in _logged(self._log, self._read_entry, last):
            if path in self._read:
                continue
            size, _ = self._unread.pop(path, (None, None))
            if size is None:  # it arrived and was read between two looks, or was removed
                size = _size(path)
                self._total_bytes += size
            self._read[path] = size
            self._read_bytes += size
        self._read_entry = last


def local_path(path: str) -> Path | None:
    """The path on this machine; None for a path elsewhere, or with a pattern.

    >>> local_path("file:///data/in"), local_path("s3a://bucket/in"), local_path("/data/*")
    (PosixPath('/data/in'), None, None)
    """
    parts = urlsplit(path)
    if parts.scheme not in ("", "file") or any(sign in path for sign in "*?[{"):
        return None
    return Path(unquote(parts.path)) if parts.scheme else Path(path).absolute()


def _files(root: Path | None) -> Iterator[tuple[str, float, float]]:
    """Every file that Spark would read, with its size and when it was written."""
    for directory, names, files in os.walk(root) if root is not None else ():
        names[:] = [name for name in names if not name.startswith(("_", "."))]
        for name in files:
            if not name.startswith(("_", ".")):
                with suppress(OSError):  # it was moved away meanwhile
                    path = os.path.join(directory, name)
                    status = os.stat(path)
                    yield path, float(status.st_size), status.st_mtime


def _logged(log: Path, after: int, last: int) -> Iterator[str]:
    """The files of the entries later than `after`, up to `last`. A compact entry has those of all entries before it."""
    numbers = range(after + 1, last + 1)
    compacts = [number for number in numbers if (log / f"{number}{_COMPACT}").is_file()]
    begin = compacts[-1] if compacts else after + 1
    for number in range(begin, last + 1):
        entry = log / (f"{number}{_COMPACT}" if number == begin and compacts else str(number))
        if not entry.is_file():
            continue
        for line in entry.read_text(encoding="utf-8").splitlines()[1:]:
            with suppress(ValueError, KeyError, TypeError):
                path = local_path(json.loads(line)["path"].replace("file:///", "file:/").replace("file:/", "file:///"))
                if path is not None:
                    yield str(path)


def _size(path: str) -> float:
    try:
        return float(os.stat(path).st_size)
    except OSError:
        return 0.0
