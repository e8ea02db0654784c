"""The report of a source, also during a batch: how many rows wait in each partition, since when, and its health."""

from __future__ import annotations

import math
from dataclasses import dataclass

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """One partition of a topic. Offsets: `first` is the oldest that is kept, `read` the next one to be read (NaN before
    the first batch), `end` the one after the newest. `lag_s` is how long its oldest unread row has waited."""

    name: str
    first: float = NAN
    read: float = NAN
    end: float = NAN
    lag_s: float = NAN
    arrival_per_s: float = NAN
    has_leader: bool = True

    @property
    def pending(self) -> float:
        """The number of offsets that wait. Offsets that were deleted before they were read do not count."""
        return max(0.0, self.end - max(self.read, self.first)) if math.isfinite(self.read) else NAN

    @property
    def expired(self) -> float:
        """Offsets that were deleted before they were read."""
        return max(0.0, self.first - self.read) if math.isfinite(self.first) and math.isfinite(self.read) else 0.0


@dataclass(frozen=True, slots=True)
class SourceSample:
    """One source of a query at one moment.

    `rows_per_offset` is below 1 where offsets are no rows: in a compacted topic, and in one that transactions write to.
    `silent_s` is for how long the source has not answered, with the `error`; its partitions are then those of the last
    answer. `missing_topics` no longer exist. `keep_s` is for how long rows are kept; NaN if unknown or for ever.
    `overtaken_s` is when deletion reaches unread rows at the present rates; NaN if it does not. `newest_s` is when the
    newest row was written, in seconds since 1970 as its writer or the broker noted it.
    """

    query: str
    name: str
    at_s: float
    partitions: tuple[SourcePartition, ...] = ()
    rows_per_offset: float = 1.0
    silent_s: float = 0.0
    error: str = ""
    missing_topics: tuple[str, ...] = ()
    keep_s: float = NAN
    overtaken_s: float = NAN
    newest_s: float = NAN

    @property
    def pending_rows(self) -> float:
        return self._total([partition.pending for partition in self.partitions]) * self.rows_per_offset

    @property
    def arrival_per_s(self) -> float:
        return self._total([partition.arrival_per_s for partition in self.partitions]) * self.rows_per_offset

    @property
    def lag_s(self) -> float:
        """For how long the oldest unread row has waited; NaN if that is unknown of any partition."""
        lags = [partition.lag_s for partition in self.partitions]
        return NAN if not lags or any(map(math.isnan, lags)) else max(lags)

    def event_delay_s(self, event_time_s: float) -> float:
        """For how long after their event times rows are written, if the latest event that was read has this time; NaN
        if that is unknown. Rows that have not been read yet are newer by as much as the source is ahead."""
        return self.newest_s - self.lag_s - event_time_s

    @property
    def leaderless(self) -> tuple[str, ...]:
        return tuple(partition.name for partition in self.partitions if not partition.has_leader)

    @property
    def expired_rows(self) -> float:
        return math.fsum(partition.expired for partition in self.partitions) * self.rows_per_offset

    def _total(self, values: list[float]) -> float:
        return math.fsum(values) if values else NAN
