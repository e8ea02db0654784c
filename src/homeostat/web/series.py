"""A run's batches as columns for charts, in the order of Spark's own streaming page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.core.records import ACTION, BATCH, Record
from homeostat.detectors.slo_violation import lag_of, latency_of
from homeostat.store.protocol import Store
from homeostat.views.timeline import known

MOST_POINTS = 600
# A week of batches every ten seconds is more than a picture shows; the newest are read.
MOST_BATCHES = 25_000
PHASES = ("latestOffset", "walCommit", "queryPlanning", "getBatch", "addBatch", "commitOffsets", "commitBatch")
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

# Shown of a run whose objective names them.
WANTED = ("lag_s", "latency_p95_s")

Columns = dict[str, list[float | None]]


def series(
    store: Store, run: str, last_s: float = math.inf, points: int = MOST_POINTS, wanted: Sequence[str] = ()
) -> dict[str, Any]:
    """What happened in the last so many seconds of the run, and every action in that time."""
    newest = store.records(run, kinds=(BATCH,), limit=1, newest_first=True)
    ended_s = newest[0].at_s if newest else 0.0
    since_s = ended_s - last_s
    batches = store.records(run, kinds=(BATCH,), since_s=since_s, limit=MOST_BATCHES, newest_first=True)[::-1]
    actions = store.records(run, kinds=(ACTION,), since_s=since_s, limit=500, newest_first=True)[::-1]
    return {
        "run": run,
        "columns": columns(batches, points, wanted),
        "actions": [{"id": action.id, "at_s": action.at_s, "text": action.text[:200]} for action in actions],
    }


def columns(batches: Sequence[Record], points: int = MOST_POINTS, wanted: Sequence[str] = ()) -> Columns:
    """Batches in groups of equal size: rows are added up, rates averaged, of all else the largest is shown."""
    size = max(1, math.ceil(len(batches) / max(points, 1)))
    rows = [row(batch.body) for batch in batches]
    phases = [phase for phase in PHASES if any(phase in each for each in rows)]
    phases += sorted({name for each in rows for name in each} - {*PHASES, *_MEANS, *_SUMS, *_PEAKS, *WANTED, "span_s"})[
        :5
    ]
    names = [*_MEANS, *_SUMS, *_PEAKS, *wanted, *phases]
    table: Columns = {"at_s": [batch.at_s for batch in batches[size - 1 :: size]]}
    groups = [rows[start : start + size] for start in range(0, len(rows), size)]
    if len(batches) % size:
        table["at_s"].append(batches[-1].at_s)
    for name in names:
        column = [_together(name, [each.get(name, math.nan) for each in group]) for group in groups]
        if any(value is not None for value in column):
            table[name] = column
    return table


def rates(batches: Sequence[Record]) -> tuple[list[float | None], list[float | None]]:
    """What was processed and what arrived, batch by batch: all that a sparkline shows."""
    found = [(_per_s(batch.body), known(batch.body, "arrival_per_s")) for batch in batches]
    return [_rounded(processed) for processed, _ in found], [_rounded(arrived) for _, arrived in found]


def latest(batch: Record) -> dict[str, float | None]:
    found = row(batch.body)
    return {"at_s": batch.at_s} | {name: _rounded(found[name]) for name in (*_MEANS, *_SUMS, *_PEAKS, *WANTED)}


def row(body: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of one batch; NaN for what is not known."""
    found = {name: known(body, name) for name in ("arrival_per_s", "rows", "span_s", *_PEAKS)}
    found["process_per_s"] = _per_s(body)
    found["lag_s"] = lag_of(found["pending_rows"], found["arrival_per_s"])
    found["latency_p95_s"] = latency_of(found["seconds"], found["trigger_s"], found["lag_s"])
    phases = body.get("phases_s")
    return found | ({name: known(phases, name) for name in phases} if isinstance(phases, dict) else {})


def _per_s(body: Mapping[str, Any]) -> float:
    span_s = known(body, "span_s")
    return known(body, "rows") / span_s if span_s > 0 else math.nan


def _rounded(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _together(name: str, values: Sequence[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    if name in _SUMS:
        together = sum(finite)
    elif name in _MEANS:
        together = sum(finite) / len(finite)
    else:
        together = max(finite)
    return _rounded(together)
