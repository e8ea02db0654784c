"""A run's batches as columns for charts, in the order of Spark's own streaming page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from homeostat.core.records import ACTION, BatchContent, Record, with_content
from homeostat.detectors.slo_violation import lag_of, latency_of
from homeostat.log_views.timeline import processed_per_s
from homeostat.store.protocol import Store
from homeostat.store.rollups import history

MOST_POINTS = 600
# More batches, minutes or hours than this are not read: a picture shows fewer.
MOST_BATCHES = 25_000
MOST_ACTIONS = 500
PHASES = ("latestOffset", "walCommit", "queryPlanning", "getBatch", "addBatch", "commitOffsets", "commitBatch")
MOST_OTHER_PHASES = 5
# Charts that are shown only where the objective names them.
OBJECTIVE_COLUMNS = ("lag_s", "latency_p95_s")
_MEANS = ("arrival_per_s", "process_per_s")
_SUMS = ("rows",)
_PEAKS = (
    "seconds",
    "pending_rows",
    "watermark_gap_s",
    "state_rows",
    "state_bytes",
    "executors",
    "workers",
    "trigger_s",
)
_NUMBERS = (*_MEANS, *_SUMS, *_PEAKS, *OBJECTIVE_COLUMNS)

Columns = dict[str, list[float | None]]
Row = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ActionMark:
    """An action as the charts mark it."""

    id: str
    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """Columns of equal length, `at_s` among them, and every action in that time."""

    run: str
    columns: Columns
    actions: tuple[ActionMark, ...]


def series(
    store: Store, run: str, last_s: float = math.inf, points: int = MOST_POINTS, extra: Sequence[str] = ()
) -> Series:
    """The last `last_s` seconds of the run in at most `points` points, with the `extra` columns."""
    batches = history(store, run, last_s, MOST_BATCHES)
    since_s = (batches[-1].at_s if batches else 0.0) - last_s
    actions = store.records(run, kinds=(ACTION,), since_s=since_s, limit=MOST_ACTIONS, newest_first=True)[::-1]
    marks = tuple(ActionMark(action.id, action.at_s, action.text[:200]) for action in actions)
    return Series(run, columns(batches, points, extra), marks)


def columns(batches: Sequence[Record], points: int = MOST_POINTS, extra: Sequence[str] = ()) -> Columns:
    """Batches in groups of equal size: rows are added up, rates averaged; of every other column the largest counts."""
    times_s, rows = [batch.at_s for batch in batches], [row(batch) for batch in contents(batches)]
    size = max(1, math.ceil(len(rows) / max(points, 1)))
    groups = [rows[start : start + size] for start in range(0, len(rows), size)]
    table: Columns = {"at_s": list(times_s[size - 1 :: size])}
    if len(rows) % size:
        table["at_s"].append(times_s[-1])
    for name in (*_MEANS, *_SUMS, *_PEAKS, *extra, *_phases(rows)):
        column = [_together(name, [each.get(name, math.nan) for each in group]) for group in groups]
        if any(value is not None for value in column):
            table[name] = column
    return table


def contents(records: Iterable[Record]) -> list[BatchContent]:
    return [batch for _, batch in with_content(records, BatchContent)]


def rates(batches: Sequence[BatchContent]) -> tuple[list[float | None], list[float | None]]:
    """The process rate and the input rate of each batch, for a sparkline."""
    processed_rates = [_round(processed_per_s(batch)) for batch in batches]
    return processed_rates, [_round(batch.arrival_per_s) for batch in batches]


def latest(at_s: float, batch: BatchContent) -> dict[str, float | None]:
    """The newest value of each column."""
    numbers = row(batch)
    return {"at_s": at_s} | {name: _round(numbers[name]) for name in _NUMBERS}


def row(batch: BatchContent) -> dict[str, float]:
    """The numbers of one batch and the seconds of its phases; NaN for what is not known."""
    lag_s = lag_of(batch.pending_rows, batch.arrival_per_s)
    numbers = {
        "arrival_per_s": batch.arrival_per_s,
        "process_per_s": processed_per_s(batch),
        "rows": batch.rows,
        "span_s": batch.span_s,
        "seconds": batch.seconds,
        "pending_rows": batch.pending_rows,
        "watermark_gap_s": batch.watermark_gap_s,
        "state_rows": batch.state_rows,
        "state_bytes": batch.state_bytes,
        "executors": float(batch.executors),
        "workers": float(batch.workers),
        "trigger_s": batch.trigger_s,
        "lag_s": lag_s,
        "latency_p95_s": latency_of(batch.seconds, batch.trigger_s, lag_s),
    }
    return {**batch.phases_s, **numbers}


def _phases(rows: Sequence[Row]) -> list[str]:
    """Spark's phases in Spark's order, then a few that this version does not know."""
    names = {name for each in rows for name in each}
    others = sorted(names - {*PHASES, *_NUMBERS, "span_s"})
    return [*(phase for phase in PHASES if phase in names), *others[:MOST_OTHER_PHASES]]


def _round(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _together(name: str, values: Sequence[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    if name in _SUMS:
        return _round(sum(finite))
    return _round(sum(finite) / len(finite) if name in _MEANS else max(finite))
