"""Spark's progress report of a batch, as flows of rows. Pure functions, for the formats of Spark 3.5 to 4.3."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from homeostat.core.observation import NAN, FlowSample, KeyLoad, StateSample, total_at_most
from homeostat.spark.sense.rest_answers import moment_s
from homeostat.spark.sense.source_formats import SourceOptions, SourcePosition, latest_row
from homeostat.spark.sense.source_offsets import row_number
from homeostat.spark.sense.state_stores import read_states

Json = Mapping[str, Any]
_BATCH_DURATION = "triggerExecution"
NO_GAPS: Mapping[int, float] = {}
# The weight of each batch relative to the one after it. A larger weight is steadier; a smaller one follows changes
# sooner. A choice.
_KEPT_OF_EARLIER = 0.7
# If at least this share of the offsets are rows, every offset counts as a row: sums over many batches are not exact.
_ALL_ROWS = 1.0 - 1e-9
KEYS_METRIC = "homeostat "  # followed by the name of a spread or a watch: an observed metric about its keys


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """Rows that a batch read from a source. `start` and `end` are the numbers of rows before the offsets where the
    batch started and ended. `latest` is the number before the latest offset at the beginning of the batch. `offset` is
    the end offset in the source's own format."""

    rows: float
    end: float
    latest: float
    offset: Any = None
    start: float = NAN


@dataclass(frozen=True, slots=True)
class Progress:
    """One batch that ended. State, keys and watermark belong to the whole query. `timestamp_s` is when it began by the
    driver's clock."""

    query: str
    run: str
    batch: int
    started_s: float
    seconds: float
    sources: tuple[SourceProgress, ...]
    phases_s: Mapping[str, float] = field(default_factory=dict)
    state_rows: float = NAN
    state_bytes: float = NAN
    updated_keys: float = NAN
    watermark_gap_s: float = NAN
    event_time_s: float = NAN
    watermark_s: float = NAN
    timestamp_s: float = NAN
    states: Mapping[str, StateSample] = field(default_factory=dict)
    keys: Mapping[str, KeyLoad] = field(default_factory=dict)

    @property
    def ended_s(self) -> float:
        return self.started_s + self.seconds


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How many rows had arrived at each source at `at_s`."""

    at_s: float
    rows: tuple[float, ...]


def read_progress(progress: Json) -> Progress:
    """Raises ValueError, KeyError or TypeError if this is not a progress report."""
    durations = {str(name): float(value) / 1000 for name, value in dict(progress["durationMs"]).items()}
    seconds = durations.pop(_BATCH_DURATION, NAN)
    if math.isnan(seconds):
        seconds = float(progress["batchDuration"]) / 1000
    state = progress.get("stateOperators") or []
    started_s = moment_s(progress["timestamp"])
    event_time = progress.get("eventTime") or {}
    watermark_s = _event_moment_s(event_time, "watermark")
    return Progress(
        query=str(progress.get("name") or progress["id"]),
        run=str(progress["runId"]),
        batch=int(progress["batchId"]),
        started_s=started_s,
        seconds=seconds,
        sources=tuple(map(_source, progress["sources"])),
        phases_s=durations,
        state_rows=_total(state, "numRowsTotal"),
        state_bytes=_total(state, "memoryUsedBytes"),
        updated_keys=_total(state, "numRowsUpdated"),
        watermark_gap_s=started_s - watermark_s,
        event_time_s=_event_moment_s(event_time, "max"),
        watermark_s=watermark_s,
        timestamp_s=started_s,
        states=read_states(state, int(progress["batchId"])),
        keys=_keys(progress.get("observedMetrics") or {}),
    )


def _keys(observed: Json) -> dict[str, KeyLoad]:
    """By the name of the spread or the watch. In a batch without rows the metrics are empty."""
    return {
        name.removeprefix(KEYS_METRIC): _key_load(metrics)
        for name, metrics in observed.items()
        if name.startswith(KEYS_METRIC) and metrics.get("rows") is not None
    }


def _key_load(metrics: Json) -> KeyLoad:
    """From the metrics of a sketch, or from those of a keyed operator."""
    if "top" in metrics:
        top = json.loads(metrics["top"] or "[]") or [{"item": "", "count": 0}]
        counts = [float(each["count"]) for each in top]
        return KeyLoad(float(metrics["rows"]), counts[0], str(top[0]["item"]), tuple(counts[1:]))
    most = tuple(map(float, str(metrics.get("most") or "").split()))
    return KeyLoad(float(metrics["rows"]), float(metrics["largest"]), str(metrics.get("key") or ""), most[1:])


def arrivals(progress: Progress) -> Arrivals:
    """The rows that had arrived when the batch began, from its progress report."""
    return Arrivals(progress.started_s, tuple(source.latest for source in progress.sources))


def _not_watched(source: int, at_s: float) -> float:
    return NAN


def arrived_rows(
    sources: Sequence[SourceOptions],
    progress: Progress,
    at_s: float,
    watched_end: Callable[[int, float], float] = _not_watched,
) -> tuple[float, ...]:
    """Rows that had arrived at each source at `at_s`, some time after the batch began; NaN if only Spark knows.

    `watched_end` returns the arrivals at a source (by its number) at a given time, if Homeostat observes that source.
    """
    if len(sources) != len(progress.sources):
        return (NAN,) * len(progress.sources)
    rows = []
    for index, (source, end) in enumerate(zip(sources, progress.sources, strict=True)):
        computed = latest_row(source, SourcePosition(end.offset, end.latest, progress.started_s), at_s)
        rows.append(watched_end(index, at_s) if math.isnan(computed) else computed)
    return tuple(rows)


def usual_share(part: SourceProgress) -> float:
    """The rows per offset, until a batch has shown them: unknown for files, whose offsets are bytes."""
    return NAN if _is_of_files(part.offset) else 1.0


def _is_of_files(offset: Any) -> bool:
    return isinstance(offset, Mapping) and "logOffset" in offset


@dataclass(frozen=True, slots=True)
class RowShare:
    """The rows and the offsets that recent batches read. Larger batches count for more, so that a batch that read only
    the end of a transaction changes little."""

    rows: float = 0.0
    offsets: float = 0.0

    def after(self, newest: RowShare) -> RowShare:
        return RowShare(_KEPT_OF_EARLIER * self.rows + newest.rows, _KEPT_OF_EARLIER * self.offsets + newest.offsets)

    @property
    def rows_per_offset(self) -> float:
        return self.rows / self.offsets


def row_shares(sources: Sequence[SourceOptions], progress: Progress) -> dict[int, RowShare]:
    """By the number of the source: the offsets that the batch read, and how many of them were rows.

    Kafka has at most one row for each offset. It has none for the markers that end transactions, for rows of aborted
    transactions, and for the gaps of a compacted topic. The offsets of files are bytes. Other offsets are rows.
    """
    shares = {}
    for index, (source, part) in enumerate(zip(sources, progress.sources, strict=False)):
        offsets = part.end - part.start
        if source.format == "kafka" and offsets > 0 and part.rows >= 0:
            shares[index] = RowShare(min(offsets, part.rows), offsets)
        elif _is_of_files(part.offset) and offsets > 0 and part.rows > 0:
            shares[index] = RowShare(part.rows, offsets)
    return shares


def flows(
    progress: Progress,
    *,
    query: str,
    trigger_s: float,
    names: Sequence[str],
    now: Arrivals,
    before: Arrivals | None,
    rows_per_offset: Mapping[int, float] = NO_GAPS,
) -> tuple[FlowSample, ...]:
    """One sample per component. `names` has the component that reads each source; sources of one stage are one flow.

    `rows_per_offset` has the sources whose offsets are not all rows.
    """
    shares = [rows_per_offset.get(index, usual_share(part)) for index, part in enumerate(progress.sources)]
    rates = [rate * share for rate, share in zip(_rates(now, before), shares, strict=True)]
    waiting = [
        _behind(source.end, latest) * share
        for source, latest, share in zip(progress.sources, now.rows, shares, strict=True)
    ]
    at_most = [
        _behind(source.end, latest) if share < _ALL_ROWS and not _is_of_files(source.offset) else NAN
        for source, latest, share in zip(progress.sources, now.rows, shares, strict=True)
    ]
    columns = list(zip(progress.sources, waiting, rates, at_most, strict=True))
    samples: list[FlowSample] = []
    for name in dict.fromkeys(names):
        mine = [column for column, other in zip(columns, names, strict=True) if other == name]
        first = not samples
        samples.append(
            FlowSample(
                name,
                query,
                rows=sum(source.rows for source, *_ in mine),
                seconds=progress.seconds,
                trigger_s=trigger_s,
                arrival_per_s=sum(rate for _, _, rate, _ in mine),
                pending_rows=sum(pending for _, pending, _, _ in mine),
                pending_at_most=total_at_most([(pending, most) for _, pending, _, most in mine]),
                # Values of the whole query are counted once, at its first source.
                updated_keys=progress.updated_keys if first else 0.0,
                state_rows=progress.state_rows if first else 0.0,
                state_bytes=progress.state_bytes if first else 0.0,
                watermark_gap_s=progress.watermark_gap_s,
                event_time_s=progress.event_time_s,
                watermark_s=progress.watermark_s,
                phases_s=progress.phases_s,
            )
        )
    return tuple(samples)


def idle_flows(query: str, names: Sequence[str], trigger_s: float, waiting: float = 0.0) -> tuple[FlowSample, ...]:
    """Spark found no new rows, so the numbers are 0 and not unknown. Pass NaN as `waiting` if rows may be held back."""
    nothing = FlowSample("", query, 0.0, 0.0, trigger_s, arrival_per_s=waiting, pending_rows=waiting, updated_keys=0.0)
    return tuple(replace(nothing, source=name) for name in dict.fromkeys(names))


def _rates(now: Arrivals, before: Arrivals | None) -> list[float]:
    if before is None or len(before.rows) != len(now.rows) or now.at_s <= before.at_s:
        return [NAN] * len(now.rows)
    # If an offset went back (a topic was recreated), the number of arrived rows is unknown.
    return [
        (new - old) / (now.at_s - before.at_s) if new >= old else NAN
        for new, old in zip(now.rows, before.rows, strict=True)
    ]


def _behind(end: float, latest: float) -> float:
    """0 if the batch read past the latest offset that the source had reported. NaN stays NaN."""
    return 0.0 if latest < end else latest - end


def _source(source: Json) -> SourceProgress:
    description = str(source.get("description") or "")
    offset = source.get("endOffset")
    return SourceProgress(
        rows=float(source["numInputRows"]),
        end=row_number(description, offset),
        latest=row_number(description, source.get("latestOffset")),
        offset=offset,
        start=row_number(description, source.get("startOffset")),
    )


def _total(operators: Sequence[Json], name: str) -> float:
    """0 for a query without state."""
    return float(sum(operator.get(name, NAN) for operator in operators))


def _event_moment_s(event_time: Json, name: str) -> float:
    """Before the first row the watermark is the epoch, and so it is unknown."""
    text = event_time.get(name)
    try:
        moment = moment_s(text) if isinstance(text, str) else 0.0
    except ValueError:
        return NAN  # rows may have any time, even one in the year 10000
    return moment if moment > 0 else NAN
