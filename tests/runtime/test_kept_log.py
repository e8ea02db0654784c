"""A manager goes on when its log is removed, replaced or damaged, with the state that it knows."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from homeostat.core.change_parts import PredictionContent
from homeostat.core.errors import StoreError
from homeostat.core.records import (
    ActionContent,
    OutcomeContent,
    ReceiptContent,
    Record,
)
from homeostat.runtime.kept_log import KeptLog
from homeostat.store.postgres import TABLES
from homeostat.store.sql_store import SqlStore
from homeostat.store.sqlite import SqliteStore
from support.postgres import PostgresServer

ACTION = Record.of("a-1", 1.0, ActionContent("scale-up", prediction=PredictionContent(0.5)), "scale-up")
RECEIPT = Record.of("c-1", 2.0, ReceiptContent("a-1", applied=True), "a-1 took effect")
OUTCOME = Record.of("u-1", 3.0, OutcomeContent("a-1", "helped"), "a-1 helped")
NEXT = Record("s-9", "symptom", 9.0, "after the loss")


def remove(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def replace_by_another(path: Path) -> None:
    SqliteStore(path.with_name("other.sqlite")).close()
    os.replace(path.with_name("other.sqlite"), path)


def truncate(path: Path) -> None:
    os.truncate(path, 0)


def drop_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE runs")


class Kept:
    def __init__(self, path: Path, prepare: Callable[[SqlStore], object] = lambda store: None) -> None:
        self.path, self.reports, self.enrolled, self._prepare = path, list[str](), 0, prepare
        self.log = KeptLog(path, self._enrol, lambda where, what: self.reports.append(f"{where}: {what}"))

    def _enrol(self, store: SqlStore) -> None:
        self.enrolled += 1
        self._prepare(store)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path / "log" / "homeostat.sqlite")
    yield kept
    kept.log.close()


@pytest.mark.parametrize("harm", [remove, replace_by_another, truncate, drop_tables])
def test_the_log_is_written_again_with_the_state_and_the_open_actions(kept: Kept, harm: Callable[[Path], None]) -> None:
    kept.log.append("run", [Record("s-1", "symptom", 0.5, "before"), ACTION])
    kept.log.save_state("run", "loop", {"numbers": {"a": 1}})
    kept.log.append("run", [RECEIPT])
    harm(kept.path)
    kept.log.append("run", [NEXT])
    with closing(SqliteStore(kept.path, read_only=True)) as reader:
        ids = [record.id for record in reader.records("run")]
        assert [id for id in ids if id != "s-1"] == ["a-1", "c-1", "s-9"]
        assert harm is not remove or "s-1" not in ids, "SQLite can recover a file whose write-ahead log is left"
        assert [record.id for record in reader.unjudged("run")] == ["a-1"]
        assert reader.load_state("run", "loop") == {"numbers": {"a": 1}}
    assert len(kept.reports) == 1
    assert kept.reports[0].startswith("the log: its file was ")
    assert kept.enrolled == 2


def test_a_loss_is_noticed_when_the_log_is_only_read(kept: Kept) -> None:
    kept.log.append("run", [NEXT])
    remove(kept.path)
    assert kept.log.records("run", kinds=("order",)) == []
    assert kept.path.exists()
    assert len(kept.reports) == 1


def test_a_damaged_file_is_kept_beside_the_new_one(kept: Kept) -> None:
    kept.log.append("run", [NEXT])
    drop_tables(kept.path)
    assert kept.log.records("run") == []
    assert "homeostat.sqlite.damaged-1" in kept.reports[0]
    assert (kept.path.parent / "homeostat.sqlite.damaged-1").exists()


def test_a_file_that_is_damaged_when_it_is_opened_is_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "log" / "homeostat.sqlite"
    SqliteStore(path).close()
    drop_tables(path)
    kept = Kept(path, lambda store: store.save_state("run", "loop", {}))
    try:
        kept.log.append("run", [NEXT])
        assert [record.id for record in kept.log.records("run")] == ["s-9"]
    finally:
        kept.log.close()
    aside = path.with_name("homeostat.sqlite.damaged-1")
    assert aside.exists()
    assert kept.reports == [
        f"the log: its file was damaged when the manager started; earlier records are in {aside}, and a new log begins"
    ]


def test_only_the_newest_damaged_files_are_kept(kept: Kept) -> None:
    for number in range(1, 6):
        drop_tables(kept.path)
        assert kept.log.records("run") == []
        assert f"homeostat.sqlite.damaged-{number}" in kept.reports[-1]
    names = sorted(file.name for file in kept.path.parent.glob("*.damaged-*"))
    assert [name for name in names if name[-1].isdecimal()] == [f"homeostat.sqlite.damaged-{at}" for at in (3, 4, 5)]
    assert not [name for name in names if "damaged-1" in name or "damaged-2" in name]


def test_what_is_over_is_not_written_again(kept: Kept) -> None:
    by_hand = Record.of("a-2", 4.0, ActionContent("by-hand"), "by hand, without a prediction")
    answer = Record.of("c-2", 5.0, ReceiptContent("a-2", applied=True), "a-2 took effect")
    kept.log.append("run", [ACTION, RECEIPT, OUTCOME, by_hand, answer])
    remove(kept.path)
    assert kept.log.records("run") == []


def test_as_long_as_no_new_log_can_be_written_the_state_is_kept(kept: Kept) -> None:
    kept.log.save_state("run", "loop", {"numbers": {"a": 1}})
    directory = kept.path.parent
    remove(kept.path)
    directory.rename(directory.with_name("away"))
    directory.write_text("in the way")
    for _ in range(2):
        with pytest.raises(StoreError):
            kept.log.append("run", [NEXT])
    directory.unlink()
    kept.log.append("run", [NEXT])
    assert kept.log.load_state("run", "loop") == {"numbers": {"a": 1}}
    assert len(kept.reports) == 1


def test_a_record_that_cannot_be_read_is_left_out_and_reported_once(kept: Kept) -> None:
    kept.log.append("run", [Record("order-1", "order", 1.0, ""), Record("order-2", "order", 2.0, "")])
    with closing(sqlite3.connect(kept.path)) as connection, connection:
        connection.execute("UPDATE records SET body = '{' WHERE id = 'order-1'")
    for _ in range(2):
        assert [record.id for record in kept.log.records("run", kinds=("order",))] == ["order-2"]
    (report,) = kept.reports
    assert report.startswith("reading the log: order order-1 cannot be read and is skipped")


def test_without_its_tables_a_database_gets_new_ones_with_what_the_manager_knows(postgres: PostgresServer) -> None:
    address = postgres.new_address()
    reports: list[str] = []
    log = KeptLog(address, lambda store: None, lambda where, what: reports.append(f"{where}: {what}"))
    with closing(log):
        log.append("run", [ACTION])
        log.save_state("run", "loop", {"numbers": {"a": 1}})
        postgres.ask(*(f"DROP TABLE {table}" for table in (*TABLES, "homeostat_log")), address=address)
        log.append("run", [NEXT])
        assert [record.id for record in log.records("run")] == ["a-1", "s-9"]
        assert log.load_state("run", "loop") == {"numbers": {"a": 1}}
        assert log.usage().file_bytes > 0
    (report,) = reports
    assert report.startswith("the log: its tables were removed; earlier records may be lost")
