"""Moves the state of a stopped query to other partitions or back, and measures how long the query pauses."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from homeostat.checkpoint import file_sink_log, pause_times, rescale, restore, savepoints
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.pause_times import Pause
from homeostat.core.errors import HomeostatError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAVEPOINTS = "loop-"  # a user's savepoints have other names and are never deleted
_BYTES = "rocksdbSstFileSize"


class Move:
    """One restart. `progress` is the query's last report before it, from which the size of the state is known."""

    def __init__(self, spark: SparkSession, checkpoint: Checkpoint, progress: Mapping[str, Any] | None) -> None:
        self._spark, self._checkpoint = spark, checkpoint
        self._size = state_size(progress)
        self._sink = "" if progress is None else file_sink_log.directory_of(str(progress["sink"]["description"]))
        self._rescaled: rescale.Rescaled | None = None
        self._phases_s: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._phases_s[name] = time.monotonic() - began

    def rescale(self, partitions: int, *, verify: bool) -> None:
        self._rescaled = rescale.rescale(
            self._spark, self._checkpoint, partitions, verify=verify, savepoint=SAVEPOINTS, sink=self._sink
        )
        self._phases_s |= self._rescaled.phases_s

    def put_back(self) -> None:
        """Restore the state if no batch has begun since. After that only another rescale can undo the move."""
        if self._rescaled is None:
            return
        savepoint = savepoints.read(self._checkpoint, self._rescaled.savepoint)
        if not restore.received_since(self._checkpoint, savepoint):
            restore.restore(self._checkpoint, savepoint.name, keep=False)

    def settle(self) -> str:
        """Call this when the query works. Returns how long it paused, if its state was moved."""
        if self._rescaled is None:
            return ""
        pause = Pause(time.time(), *self._size, self._phases_s)
        with suppress(OSError, HomeostatError):  # the query runs: a failed note must not stop it
            pause_times.record(self._checkpoint, pause)
            prune(self._checkpoint)
        parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self._phases_s.items())
        return f"the query paused for {pause.seconds:.1f} s ({parts})"


def finish(spark: SparkSession, checkpoint: Checkpoint) -> None:
    """Finish a move that a crash interrupted. If that fails but the old state is restored, the query continues with the
    old state."""
    try:
        rescale.finish(spark, checkpoint)
    except rescale.RescaleError:
        if rescale.unfinished_plan(checkpoint) is not None:
            raise


def predicted_s(checkpoint: Checkpoint, progress: Mapping[str, Any] | None) -> float:
    """How long the query would pause to change its state partitions."""
    return pause_times.predicted_s(*state_size(progress), pause_times.past_pauses(checkpoint))


def prune(checkpoint: Checkpoint) -> None:
    """Delete the loop's savepoints except the last one, which a person may want to inspect."""
    names = [
        savepoint.name for savepoint in savepoints.list_savepoints(checkpoint) if savepoint.name.startswith(SAVEPOINTS)
    ]
    for name in names[:-1]:
        savepoints.delete(checkpoint, name)


def state_size(progress: Mapping[str, Any] | None) -> tuple[int, int]:
    """Rows and bytes, as far as the query reports them."""
    operators = [] if progress is None else progress["stateOperators"]
    rows = sum(int(operator["numRowsTotal"]) for operator in operators)
    return rows, sum(int(operator["customMetrics"].get(_BYTES, 0)) for operator in operators)
