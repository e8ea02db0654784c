"""The state of each operator as Spark reports it: recorded from 4.3, and shapes of which only the names are known."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from homeostat.core.observation import StateSample
from homeostat.spark.sense.progress import read_progress
from homeostat.spark.sense.state_stores import StoreSettings, read_states, store_settings
from support.paths import RECORDED as LOGS

RECORDED = LOGS / "state.jsonl"
MIB = 2**20


def recorded(case: str) -> dict[int, StateSample]:
    """Its only stateful operator, by batch. The query was stopped before batch 6 (of the deduplication 5), its state
    forgotten, and it was started again."""
    entries = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    read = [read_progress(entry["progress"]) for entry in entries if entry["case"] == case]
    return {progress.batch: next(iter(progress.states.values())) for progress in read}


def operator(name: str = "dedupe", **metrics: float) -> dict[str, Any]:
    return {"operatorName": name, "numRowsTotal": 5, "numRowsUpdated": 2, "customMetrics": metrics}


def test_rocksdb_with_changelogs() -> None:
    state = recorded("rocksdb-changelog")[3]

    assert (state.operator, state.backend, state.partitions) == ("stateStoreSave", "rocksdb", 2)
    assert (state.rows, state.updated_rows, state.removed_rows) == (90, 40, 0)
    assert (state.memory_bytes, state.disk_bytes, state.pinned_bytes) == (1_060_640, 3752, 176)
    assert (state.commit_s, state.stall_s) == (0.245, 0.0)
    assert (state.version, state.snapshot_version) == (4, 3)


def test_a_partition_without_a_snapshot_since_it_was_loaded_is_the_one_furthest_behind() -> None:
    states = recorded("rocksdb-changelog")

    assert [states[batch].snapshot_version for batch in (2, 5, 6, 7)] == [-1, 3, -1, -1]


def test_without_changelogs_every_version_is_a_snapshot() -> None:
    state = recorded("rocksdb-plain")[5]
    assert (state.version, state.snapshot_version) == (6, 6)


def test_what_an_aggregation_loaded_is_unknown_as_spark_forgets_it() -> None:
    """Batch 6 loaded the state from an older snapshot, as the last was damaged; Spark reports 0 of all that."""
    state = recorded("rocksdb-changelog")[6]

    assert all(map(math.isnan, (state.loads, state.replayed, state.replay_s, state.repaired)))


def test_what_others_loaded_after_a_restart_is_known() -> None:
    """A snapshot of version 3, and the changes of two more, in each of two partitions."""
    before, after, later = recorded("dedupe").values()

    assert (before.loads, before.replayed, before.replay_s) == (0, 0, 0)
    assert (after.loads, after.replayed, after.replay_s, after.repaired) == (2, 4, 0.143, 0)
    assert (later.loads, later.version, later.snapshot_version) == (0, 7, 6)


@pytest.mark.parametrize("case", ["dedupe-damaged", "dedupe-hdfs-damaged"])
def test_a_snapshot_that_was_damaged_and_passed_over_is_counted(case: str) -> None:
    """That of one of two partitions had been overwritten."""
    states = recorded(case)

    assert (states[4].repaired, states[5].repaired) == (0, 1)


def test_the_other_backend_has_fewer_metrics() -> None:
    state = recorded("hdfs")[5]

    assert (state.backend, state.rows, state.memory_bytes) == ("hdfs", 90, 27_648)
    assert (state.version, state.snapshot_version) == (6, 4)
    assert all(map(math.isnan, (state.disk_bytes, state.pinned_bytes, state.stall_s, state.replayed)))


def test_of_a_join_all_stores_count_together() -> None:
    state = recorded("rocksdb-join")[2]

    assert (state.operator, state.rows, state.partitions, state.snapshot_version) == ("symmetricHashJoin", 240, 2, -1)


def test_operators_of_one_name_are_are_distinguishable() -> None:
    assert list(read_states([operator(), operator(), operator("other"), operator()], 0)) == [
        "dedupe",
        "dedupe-2",
        "other",
        "dedupe-3",
    ]


def test_what_is_not_reported_is_unknown() -> None:
    """Spark 3.5 has no instance metrics, and `watch` over REST nothing at all."""
    (old,) = read_states([operator(rocksdbSstFileSize=10)], 4).values()
    (nothing,) = read_states([{}], 4).values()

    assert (old.backend, old.rows, old.disk_bytes, old.version) == ("rocksdb", 5, 10, 5)
    assert all(map(math.isnan, (old.snapshot_version, old.repaired, old.partitions, old.memory_bytes)))
    assert (nothing.operator, nothing.backend) == ("state", "")
    assert math.isnan(nothing.rows)


def test_a_store_that_does_not_count_its_rows_has_an_unknown_number() -> None:
    (state,) = read_states([operator() | {"numRowsTotal": 0}], 0).values()
    (empty,) = read_states([operator() | {"numRowsTotal": 0, "numRowsUpdated": 0}], 0).values()

    assert math.isnan(state.rows)
    assert empty.rows == 0


def test_stalls_are_in_nanoseconds_whatever_their_name_says() -> None:
    (state,) = read_states([operator(rocksdbWriterStallLatencyMs=2_500_000_000)], 0).values()
    assert state.stall_s == 2.5


# What a store may use


def settings(master: str = "spark://here:7077", **conf: str) -> StoreSettings:
    names = {name.replace("__", "."): value for name, value in conf.items()}
    return store_settings(lambda name, default: names.get(name, default), master)


STORE = "spark__sql__streaming__stateStore"


@pytest.mark.parametrize(
    ("master", "conf", "backend", "mib"),
    [
        pytest.param("spark://here:7077", {"spark__executor__memory": "2g"}, "hdfs", 2048.0, id="the heap"),
        pytest.param("local[2]", {"spark__driver__memory": "512m"}, "hdfs", 512.0, id="the driver's heap"),
        pytest.param("spark://here:7077", {}, "rocksdb", math.nan, id="nobody stops it"),
        pytest.param("yarn", {}, "rocksdb", 384.0, id="the least overhead"),
        pytest.param("yarn", {"spark__executor__memory": "10g"}, "rocksdb", 1024.0, id="a tenth of the heap"),
        pytest.param("k8s://x", {"spark__executor__memoryOverhead": "1g"}, "rocksdb", 1024.0, id="the overhead"),
        pytest.param("yarn", {f"{STORE}__rocksdb__boundedMemoryUsage": "true"}, "rocksdb", 500.0, id="the bound"),
        pytest.param("yarn", {"spark__executor__memory": "a lot"}, "hdfs", math.nan, id="not understood"),
        pytest.param("yarn", {}, "", math.nan, id="another backend"),
    ],
)
def test_the_memory_that_a_store_may_use(master: str, conf: dict[str, str], backend: str, mib: float) -> None:
    limits = settings(master, **conf).limits(backend, workers=3)

    assert limits.memory_bytes == pytest.approx(3 * mib * MIB, nan_ok=True)
    assert limits.bounded is (backend == "rocksdb" and bool(conf) and "bounded" in next(iter(conf)))


def test_snapshots_are_due_as_it_was_set() -> None:
    conf = {f"{STORE}__minDeltasForSnapshot": "25", f"{STORE}__maintenanceInterval": "30s"}

    limits, default = settings(**conf).limits("rocksdb", 1), settings().limits("rocksdb", 1)

    assert (limits.versions_per_snapshot, limits.maintenance_s) == (25.0, 30.0)
    assert (default.versions_per_snapshot, default.maintenance_s) == (10.0, 60.0)


def test_before_the_executors_are_known_nothing_is_known_of_their_memory() -> None:
    assert math.isnan(settings("local[2]").limits("hdfs", 0).memory_bytes)


def test_times_of_updates_and_removals_and_late_rows() -> None:
    metrics = {"operatorName": "dedupe", "allUpdatesTimeMs": 2897, "allRemovalsTimeMs": 12, "commitTimeMs": 43395}
    state = read_states([{**metrics, "numRowsDroppedByWatermark": 7}], 3)["dedupe"]
    assert (state.update_s, state.remove_s, state.commit_s, state.late_rows) == (2.897, 0.012, 43.395, 7.0)
