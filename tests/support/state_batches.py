"""Batches of a query with a healthy state, any figure of which a test can change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from homeostat.core.findings import Symptom
from homeostat.core.observation import NAN, Array, Observation, StateLimits, StateSample
from homeostat.core.policy_definition import Detector
from homeostat.testing import instances, observations, view_of

SPAN_S = 30.0
HOUR = int(3600 / SPAN_S)
MIB = 2.0**20
LIMITS = StateLimits(memory_bytes=1000 * MIB, versions_per_snapshot=10.0, maintenance_s=60.0)
HEALTHY: dict[str, float] = {
    "partitions": 8.0,
    "rows": 100_000.0,
    "updated_rows": 2000.0,
    "removed_rows": 100.0,
    "memory_bytes": 300 * MIB,
    "disk_bytes": 50 * MIB,
    "pinned_bytes": 2 * MIB,
    "commit_s": 0.4,
    "stall_s": 0.0,
    "loads": 0.0,
    "replayed": 0.0,
    "replay_s": 0.0,
    "repaired": 0.0,
}
Numbers = float | Sequence[float] | Array


def batches(
    count: int = 10,
    *,
    backend: str = "rocksdb",
    limits: StateLimits = LIMITS,
    load_per_s: Numbers = 100.0,
    watermark_gap_s: float = NAN,
    **state: Numbers,
) -> tuple[Observation, ...]:
    """A count on eight partitions, whose state is healthy but for the columns that are given, one value for each batch
    or one for all. Snapshots come every ten versions unless `snapshot_version` says otherwise."""
    columns = {
        "version": np.arange(1.0, count + 1.0),
        "snapshot_version": np.maximum(-1.0, np.floor((np.arange(count) - 2) / 10) * 10),
    }
    numbers: dict[str, Numbers] = {**HEALTHY, **columns, **state}
    table = {name: np.broadcast_to(np.asarray(values, dtype=np.float64), (count,)) for name, values in numbers.items()}
    rows = np.broadcast_to(np.asarray(load_per_s) * SPAN_S, (count,))
    tasks = {"scan": instances(100.0, 1.0, finish_s=1.0), "aggregate": instances([100.0] * 8, 1.0, finish_s=2.0)}
    flow: dict[str, Any] = {"arrival_per_s": rows / SPAN_S, "seconds": 4.0, "trigger_s": SPAN_S}
    batches = observations(
        count, tasks, span_s=SPAN_S, executors=2, slots=2.0, rows=rows, watermark_gap_s=watermark_gap_s, **flow
    )
    return tuple(
        replace(one, states={"stateStoreSave": _sample(backend, limits, {k: float(v[n]) for k, v in table.items()})})
        for n, one in enumerate(batches)
    )


def _sample(backend: str, limits: StateLimits, numbers: dict[str, Any]) -> StateSample:
    return StateSample("stateStoreSave", backend, limits=limits, **numbers)


def symptoms_of(detector: Detector, observed: Sequence[Observation]) -> list[Symptom]:
    return list(detector.detect(view_of(observed)))
