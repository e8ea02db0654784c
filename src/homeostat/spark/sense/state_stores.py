"""The state of each stateful operator, from Spark's metrics of a batch, and the limits of its state store."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeostat.core.observation import NAN, StateLimits, StateSample

Json = Mapping[str, Any]
ROCKSDB, HDFS = "rocksdb", "hdfs"
_STORE = "spark.sql.streaming.stateStore"
_UPLOADED = "SnapshotLastUploaded"
# In an aggregation, another operator loads the state first and Spark drops its metrics: 0 means unknown here.
_LOADED_BEFORE = ("stateStoreSave", "sessionWindowStateStoreSaveExec")
_MIB = 2**20
_LEAST_OVERHEAD_MIB = 384.0  # Spark's own minimum of spark.executor.memoryOverhead
_UNITS_MIB = {"b": 1 / _MIB, "k": 1 / 1024, "": 1.0, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}


def read_states(operators: Sequence[Json], batch: int) -> dict[str, StateSample]:
    """The states by the name of their operator. A repeated name gets a number. Values that Spark does not report are
    NaN."""
    samples: dict[str, StateSample] = {}
    for operator in operators:
        name = str(operator.get("operatorName") or "state")
        earlier = sum(other.partition("-")[0] == name for other in samples)
        name = f"{name}-{earlier + 1}" if earlier else name
        samples[name] = _state(name, operator, operator.get("customMetrics") or {}, batch)
    return samples


def _state(name: str, operator: Json, metrics: Json, batch: int) -> StateSample:
    def number(metric: str) -> float:
        return float(operator.get(metric, NAN))

    def custom(*names: str) -> float:
        return next((float(metrics[metric]) for metric in names if metric in metrics), NAN)

    def of_load(*names: str) -> float:
        value = custom(*names)
        return NAN if value == 0 and operator.get("operatorName") in _LOADED_BEFORE else value

    uploads = [float(value) for metric, value in metrics.items() if metric.startswith(_UPLOADED)]
    rows, updated_rows, removed_rows = number("numRowsTotal"), number("numRowsUpdated"), number("numRowsRemoved")
    return StateSample(
        operator=name,
        backend=_backend(metrics),
        partitions=number("numShufflePartitions"),
        # A store with row counting turned off reports 0.
        rows=NAN if rows == 0 and updated_rows > max(0.0, removed_rows) else rows,
        updated_rows=updated_rows,
        removed_rows=removed_rows,
        memory_bytes=number("memoryUsedBytes"),
        disk_bytes=custom("rocksdbSstFileSize"),
        pinned_bytes=custom("rocksdbPinnedBlocksMemoryUsage"),
        commit_s=number("commitTimeMs") / 1000,
        update_s=number("allUpdatesTimeMs") / 1000,
        remove_s=number("allRemovalsTimeMs") / 1000,
        late_rows=number("numRowsDroppedByWatermark"),
        # RocksDB reports microseconds. Spark multiplies them by 1000 instead of dividing.
        stall_s=custom("rocksdbWriterStallLatencyMs") / 1e9,
        loads=of_load("rocksdbNumLoadedFromDfs"),
        replayed=of_load("rocksdbNumReplayChangelogFiles"),
        replay_s=of_load("rocksdbReplayChangeLogLatencyMs") / 1000,
        repaired=of_load("rocksdbNumSnapshotsAutoRepaired", "numSnapshotsAutoRepaired"),
        version=batch + 1.0,
        snapshot_version=min(uploads, default=NAN),
    )


def _backend(metrics: Json) -> str:
    if any(metric.startswith("rocksdb") for metric in metrics):
        return ROCKSDB
    return HDFS if "loadedMapCacheHitCount" in metrics else ""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The settings of the application. `heap_mib` and `native_mib` are the limits of one executor; `native_mib` is NaN
    if nothing limits it."""

    heap_mib: float = NAN
    native_mib: float = NAN
    bounded: bool = False
    versions_per_snapshot: float = NAN
    maintenance_s: float = NAN

    def limits(self, backend: str, workers: int) -> StateLimits:
        """RocksDB keeps its memory outside the heap, the other backend inside it."""
        each_mib = {ROCKSDB: self.native_mib, HDFS: self.heap_mib}.get(backend, NAN)
        return StateLimits(
            memory_bytes=each_mib * _MIB * workers if workers else NAN,
            bounded=self.bounded and backend == ROCKSDB,
            versions_per_snapshot=self.versions_per_snapshot,
            maintenance_s=self.maintenance_s,
        )


def store_settings(get: Callable[[str, str], str], master: str) -> StoreSettings:
    """`get` returns a setting of Spark, or the default that is passed with its name."""
    local = master.startswith("local")
    heap = _mib(get("spark.driver.memory" if local else "spark.executor.memory", "1g"))
    is_bounded = get(f"{_STORE}.rocksdb.boundedMemoryUsage", "false") == "true"
    has_container_limit = master.startswith(("yarn", "k8s://"))
    overhead = _mib(get("spark.executor.memoryOverhead", "")) if has_container_limit else NAN
    if has_container_limit and math.isnan(overhead):
        overhead = max(_LEAST_OVERHEAD_MIB, heap * float(get("spark.executor.memoryOverheadFactor", "0.1")))
    return StoreSettings(
        heap_mib=heap,
        native_mib=float(get(f"{_STORE}.rocksdb.maxMemoryUsageMB", "500")) if is_bounded else overhead,
        bounded=is_bounded,
        versions_per_snapshot=float(get(f"{_STORE}.minDeltasForSnapshot", "10")),
        maintenance_s=_seconds(get(f"{_STORE}.maintenanceInterval", "60000")),
    )


def _mib(text: str) -> float:
    """From `512m`, `2g`, or a plain number of MiB; NaN for anything else."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([bkmgt]?)(?:i?b)?\s*", text.lower())
    return float(match[1]) * _UNITS_MIB[match[2]] if match else NAN


def _seconds(text: str) -> float:
    match = re.fullmatch(r"\s*([0-9.]+)\s*(ms|s|m|min|h)?\s*", text.lower())
    scale = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
    return float(match[1]) * scale[match[2] or "ms"] if match else NAN
