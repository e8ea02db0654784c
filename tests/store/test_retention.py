from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeostat.core.errors import StoreError
from homeostat.core.records import BATCH, HOUR, MINUTE, Record
from homeostat.settings import LogSettings
from homeostat.store.retention import SLICE, Housekeeper, Retention, Slice
from homeostat.store.rollups import history
from homeostat.store.sqlite import SqliteStore
from support.old_logs import BATCH_S, DAY_S, RUN, START_S, batch, batches, decision, write_old_log

SHORT = LogSettings(detail="1 d", minutes="2 d", hours="4 d", findings="2 d", decisions="5 d")  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "log.sqlite")
    yield opened
    opened.close()


def ages_s(store: SqliteStore, kind: str) -> tuple[float, float]:
    """The oldest and the newest record of the kind, as ages."""
    records = store.records(RUN, kinds=(kind,))
    newest_s = store.runs()[0].last_s
    return newest_s - records[0].at_s, newest_s - records[-1].at_s


def ids(store: SqliteStore) -> set[str]:
    return {record.id for record in store.records(RUN) if record.kind not in (BATCH, MINUTE, HOUR)}


def drain(retention: Retention, most: int = 300) -> int:
    """Slices until two rounds in a row had nothing to do."""
    idle = 0
    for number in range(most):
        idle = idle + 1 if retention.slice() == Slice() else 0
        if idle == 4:
            return number
    raise AssertionError("the retention never came to an end")


def test_batches_become_minutes_and_hours_and_are_deleted_by_age(store: SqliteStore) -> None:
    everything = write_old_log(store, 6.0)
    drain(Retention(store, SHORT))
    for kind, days in ((BATCH, 1), (MINUTE, 2), (HOUR, 4)):
        assert ages_s(store, kind)[0] == pytest.approx(days * DAY_S, abs=3_600)
    covered = history(store, RUN, finest=True)
    rows = sum(record.content.rows for record in everything if record.at_s > everything[-1].at_s - 4 * DAY_S)  # type: ignore[attr-defined]
    assert sum(record.content.rows for record in covered) == pytest.approx(rows, rel=0.02)  # type: ignore[attr-defined]


def test_slices_and_all_at_once_leave_the_same_log(tmp_path: Path) -> None:
    logs = []
    for name in ("slices", "finish"):
        store = SqliteStore(tmp_path / name)
        write_old_log(store, 3.0)
        retention = Retention(store, SHORT)
        drain(retention) if name == "slices" else retention.finish()
        logs.append(store.records(RUN))
        store.close()
    assert logs[0] == logs[1]


def test_one_slice_is_small(store: SqliteStore) -> None:
    write_old_log(store, 6.0)
    retention = Retention(store, SHORT)
    before = store.position()
    for _ in range(5):
        done = retention.slice()
        assert max(done.summaries / 2, done.deleted) <= SLICE
        assert store.position() - before <= 10 * SLICE


def test_one_slice_deletes_of_every_kind(store: SqliteStore) -> None:
    """Otherwise a run that always has an old batch would keep its minutes for ever."""
    write_old_log(store, 0.3)
    store.append(RUN, decision("x", START_S))
    Retention(store).finish()
    ages = {"detail": "2 h", "minutes": "3 h", "hours": "4 h", "findings": "2 h", "decisions": "4 h"}
    retention = Retention(store, LogSettings.model_validate(ages))
    retention.slice()
    assert retention.slice().deleted < SLICE
    for kind, hours in ((BATCH, 2), (MINUTE, 3), (HOUR, 4)):
        assert ages_s(store, kind)[0] <= (hours + 1) * 3_600
    assert ids(store) == set()


def test_hours_are_made_while_new_minutes_keep_coming(store: SqliteStore) -> None:
    """A manager that visits a run once in a while finds new batches each time."""
    retention = Retention(store)
    for number, record in enumerate(batches(0.5)):
        store.append(RUN, [record])
        if number % 5 == 0:
            retention.slice()
    hours = store.records(RUN, kinds=(HOUR,))
    assert len(hours) == pytest.approx(12, abs=2)
    assert {hour.content.batches for hour in hours} == {30}  # type: ignore[attr-defined]


def test_what_is_not_summarised_yet_is_not_deleted(store: SqliteStore) -> None:
    everything = write_old_log(store, 6.0)
    retention = Retention(store, SHORT)
    for _ in range(3):
        retention.slice()
    minutes = store.records(RUN, kinds=(MINUTE,))
    left = store.records(RUN, kinds=(BATCH,))
    assert minutes
    assert left[0].at_s <= minutes[-1].at_s + BATCH_S
    later = [record.id for record in everything if record.at_s > minutes[-1].at_s]
    assert {record.id for record in left} >= set(later)


def test_decisions_and_what_led_to_them_outlive_other_findings(store: SqliteStore) -> None:
    write_old_log(store, 6.0)
    for name, day in (("ancient", 0.5), ("old", 2.0), ("new", 5.0)):
        store.append(RUN, decision(name, START_S + day * DAY_S))
    Retention(store, SHORT).finish()
    kept = {"s", "d", "p", "a", "c", "o", "w", "l", "n"}
    assert ids(store) == {f"{each}-old" for each in kept} | {f"{each}-new" for each in (*kept, "alone", "q", "r")}
    assert [record.id for record in store.chain(RUN, "a-old")] == [f"{each}-old" for each in "sdpaco"]


def test_a_settled_log_stays_as_it_is(store: SqliteStore) -> None:
    write_old_log(store, 3.0)
    store.append(RUN, decision("x", START_S))
    Retention(store, SHORT).finish()
    before = store.records(RUN)
    assert Retention(store, SHORT).finish() == Slice()
    assert store.records(RUN) == before


def test_the_space_of_deleted_records_is_given_back(store: SqliteStore) -> None:
    write_old_log(store, 4.0)
    before = store.usage()
    drain(Retention(store, LogSettings(detail="2 h", minutes="4 h", hours="1 d")))  # type: ignore[arg-type]
    assert store.usage().used_bytes < before.used_bytes / 3
    store.close()
    assert store.path.stat().st_size < before.used_bytes / 2


def test_a_log_of_an_earlier_version_shrinks_once_it_is_compacted(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    store = SqliteStore(path)
    write_old_log(store, 3.0)
    store.close()
    with sqlite3.connect(path) as old:
        old.execute("PRAGMA journal_mode = DELETE")
        old.execute("PRAGMA auto_vacuum = NONE")
        old.execute("VACUUM")
    old.close()
    store = SqliteStore(path)
    Retention(store, LogSettings(detail="2 h", minutes="4 h", hours="1 d")).finish()  # type: ignore[arg-type]
    before, size = store.records(RUN), store.usage().file_bytes
    assert size > 2 * store.usage().used_bytes
    store.compact()
    assert store.usage().file_bytes < 2 * store.usage().used_bytes
    assert store.records(RUN) == before
    assert store.maintain(lambda connection: connection.execute("PRAGMA auto_vacuum").fetchone()) == (2,)
    store.close()


def test_a_log_above_its_largest_size_keeps_batches_for_a_shorter_time(store: SqliteStore) -> None:
    write_old_log(store, 3.0)
    used_bytes = store.usage().used_bytes
    generous = Retention(store, LogSettings(detail="3 d", minutes="4 d", hours="10 d", largest="1 GB"))  # type: ignore[arg-type]
    drain(generous)
    assert generous.share == 1.0
    limit = LogSettings(detail="3 d", minutes="4 d", hours="10 d", largest=f"{used_bytes // 2} B")  # type: ignore[arg-type]
    tight = Retention(store, limit)
    drain(tight)
    assert tight.share < 1.0
    assert store.usage().used_bytes <= used_bytes // 2
    assert store.records(RUN, kinds=(BATCH,))


def test_the_newest_record_stays_so_that_its_place_is_not_used_again(store: SqliteStore) -> None:
    store.append(RUN, [batch(1, START_S + 10 * DAY_S)])
    store.append(RUN, [batch(0, START_S)])
    position = store.position()
    Retention(store, SHORT).finish()
    assert store.position() >= position


def test_a_run_on_a_simulated_clock_is_aged_by_its_own_clock(store: SqliteStore) -> None:
    write_old_log(store, 0.5, start_s=0.0)
    Retention(store, SHORT).finish()
    assert len(store.records(RUN, kinds=(BATCH,))) == 360


def test_a_run_that_ended_long_ago_is_deleted(store: SqliteStore) -> None:
    write_old_log(store, 0.01, start_s=2e8)
    store.save_state(RUN, "loop", {"a": 1})
    store.append("living", [batch(0, START_S)])
    Retention(store, LogSettings(decisions="7000 d")).finish()  # type: ignore[arg-type]
    assert [run.name for run in store.runs()] == ["living"]
    assert store.load_state(RUN, "loop") is None


def test_records_that_were_ever_written_stay_counted(store: SqliteStore) -> None:
    """A counter that falls would look like a restart to whoever scrapes it."""
    written = len(write_old_log(store, 3.0))
    Retention(store, SHORT).finish()
    (run,) = store.runs()
    assert (run.counts[BATCH], run.started_s) == (written, START_S + 120.0)


def test_a_housekeeper_works_now_and_then_and_complains_once(store: SqliteStore) -> None:
    write_old_log(store, 0.1)
    complaints: list[str] = []
    housekeeper = Housekeeper(Retention(store, SHORT), complaints.append)
    for _ in range(10):
        housekeeper.look()
    assert len(store.records(RUN, kinds=(MINUTE,))) == 0, "the first slice only looks around"

    class Broken(Retention):
        def slice(self) -> Slice:
            raise StoreError("the disk is full")

    broken = Housekeeper(Broken(store), complaints.append)
    for _ in range(3):
        broken._next_s = 0.0
        broken.look()
    assert complaints == ["could not delete old records: the disk is full"]


def test_a_reader_sees_the_log_whole_while_it_is_pruned(store: SqliteStore) -> None:
    everything = write_old_log(store, 3.0)
    reader = SqliteStore(store.path, read_only=True)
    retention = Retention(store, SHORT)

    def batches_in(records: list[Record]) -> int:
        return sum(record.content.batches for record in records)  # type: ignore[attr-defined]

    for _ in range(12):
        retention.slice()
        assert batches_in(history(reader, RUN, finest=True)) == pytest.approx(len(everything), abs=32)
    assert len(store.records(RUN, kinds=(BATCH,))) < len(everything)
    reader.close()
