"""Rows that arrived at the sources and rows that batches took, in whole rows, as offsets count them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, inf

from homeostat.core.configuration import Value
from homeostat.sim.workload import Workload

# Rounding makes sums of many small arrivals fall just short of a whole row.
_ROUNDING = 1e-6


class Offsets:
    """All sources get an equal part of the load, so their latest offsets are the same."""

    def __init__(self, workload: Workload, sources: Sequence[str]) -> None:
        self._workload = workload
        self._arrived_rows = 0.0
        self._until_s = 0.0
        self.committed: dict[str, int] = dict.fromkeys(sources, 0)

    def latest(self, now_s: float) -> int:
        """The latest offset of each source. Time must not go back from call to call."""
        if now_s > self._until_s:
            self._arrived_rows += self._workload.rows_between(self._until_s, now_s)
            self._until_s = now_s
        return floor(self._arrived_rows / len(self.committed) + _ROUNDING)

    def admit(self, limit_rows: Value, now_s: float) -> dict[str, int]:
        """The rows that a batch starting now takes, up to a limit for all sources together."""
        latest = self.latest(now_s)
        each = latest if limit_rows == inf else max(1, int(limit_rows) // len(self.committed))
        return {source: min(latest - committed_rows, each) for source, committed_rows in self.committed.items()}

    def commit(self, rows_by_source: Mapping[str, int]) -> None:
        for source, rows in rows_by_source.items():
            self.committed[source] += rows
