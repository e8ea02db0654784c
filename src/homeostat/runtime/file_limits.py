"""Keeps the files of an application within their limits while it runs: event logs, logs that only grow, and files that
killed executors had unpacked."""

from __future__ import annotations

import math
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from homeostat.settings import FileLimits
from homeostat.spark.cluster.leftovers import remove_loaded_libraries
from homeostat.spark.outside.event_log_pruning import prune_event_logs, size_of

EVENTS = "events"
# Logs that a process keeps open and only appends to, so that they can be cut while it writes. The driver's own log
# rolls over by itself.
GROWING = ("logs/driver.err", "logs/*.out", "cluster/logs/*.log")
LOG_FOLDERS = ("logs", "cluster/logs")
EARLIER = ".1"
_PARTS = re.compile(r"\.\d+$")
# Files are checked this often. A log that grows by 20 MB a minute exceeds its limit by at most 20 MB. A choice.
EVERY_S = 60.0


def cut_log(log: Path, most_bytes: int) -> bool:
    """If a log is larger than half of its limit, move its content to a file beside it. Together, both stay within the
    limit.

    A line that is written at that moment may be lost."""
    try:
        if log.stat().st_size <= most_bytes // 2:
            return False
        shutil.copyfile(log, log.with_name(log.name + EARLIER))
        with log.open("r+b") as file:
            file.truncate(0)
    except OSError:
        return False  # it is gone, or the disk is full; the next look tries again
    return True


def log_sizes(directory: Path) -> dict[str, int]:
    """The bytes of each log of an application with its earlier parts, by name."""
    sizes: dict[str, int] = {}
    for folder in LOG_FOLDERS:
        for file in (directory / folder).glob("*"):
            name = f"{folder}/{_PARTS.sub('', file.name)}"
            sizes[name] = sizes.get(name, 0) + size_of(file)
    return sizes


class FileKeeper:
    """Looks at the files of an application now and then."""

    def __init__(self, directory: Path, limits: FileLimits, complain: Callable[[str], None]) -> None:
        self._directory, self._limits, self._complain = directory, limits, complain
        self._next_s = -math.inf
        self._complaint = ""

    def look(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + EVERY_S
            self.keep_small()

    def keep_small(self) -> None:
        try:
            remove_loaded_libraries(self._directory)
            prune_event_logs(self._directory / EVENTS, self._limits.event_logs)
            for pattern in GROWING:
                for log in self._directory.glob(pattern):
                    cut_log(log, self._limits.driver_log)
        except Exception as error:  # a failure must not affect the application
            complaint = f"could not limit the size of the files in {self._directory}: {type(error).__name__}: {error}"
            if complaint != self._complaint:
                self._complain(complaint)
            self._complaint = complaint
