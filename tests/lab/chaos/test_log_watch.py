"""The watch counts what each of several logs at the same place held."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

from homeostat.core.change_parts import PartContent
from homeostat.core.records import ActionContent, BatchContent, ReceiptContent, Record
from homeostat.lab.chaos.log_watch import Change, LogWatch
from homeostat.runtime.orders import order
from homeostat.store.sqlite import SqliteStore

BATCH = BatchContent(rows=1.0, seconds=1.0, trigger_s=1.0, arrival_per_s=1.0, pending_rows=0.0, span_s=1.0)


def write(path: Path, *records: Record) -> None:
    store = SqliteStore(path)
    store.append("run", records)
    store.close()


def batch(number: int) -> Record:
    return Record.of(f"b-{number}", float(number), BATCH, "a batch")


def test_a_log_that_is_locked_damaged_or_missing_is_no_news(tmp_path: Path) -> None:
    watch = LogWatch(tmp_path / "log.sqlite")
    watch.look()
    (tmp_path / "log.sqlite").write_text("no database")
    watch.look()
    assert watch.batches == 0


def test_a_new_log_at_the_same_place_adds_to_what_the_old_one_held(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    watch = LogWatch(path)
    write(path, batch(1), batch(2))
    watch.look()
    watch.look()
    assert watch.batches == 2
    for file in tmp_path.iterdir():
        file.rename(tmp_path / f"old-{file.name}")
    write(path, batch(1))
    watch.look()
    assert watch.batches == 3


def test_an_action_is_ordered_if_it_follows_from_an_order_and_open_until_its_receipt(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    watch = LogWatch(path)
    request = order("apply", by="me", now_s=1.0, values={"executors.app": 3})
    ordered = Record.of("a-1", 2.0, ActionContent("by-hand"), "as asked", because=(request.id,))
    own = Record.of("a-2", 3.0, ActionContent("scale-up", "under-provisioned"), "scale up")
    write(path, request, ordered, own)
    watch.look()
    assert [(each.id, each.ordered, each.changes) for each in watch.actions] == [
        ("a-1", True, (Change("by-hand", ""),)),
        ("a-2", False, (Change("scale-up", "under-provisioned"),)),
    ]
    write(path, Record.of("r-1", 4.0, ReceiptContent("a-1", True), "done", because=("a-1",)))
    watch.look()
    assert [each.id for each in watch.open_actions(0)] == ["a-2"]
    assert watch.open_actions(2) == []


def test_an_action_that_is_written_again_into_a_new_log_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    watch = LogWatch(path)
    action = Record.of("a-1", 3.0, ActionContent("scale-up", "under-provisioned"), "scale up")
    write(path, action)
    watch.look()
    for file in tmp_path.iterdir():
        file.rename(tmp_path / f"old-{file.name}")
    write(path, action)
    watch.look()
    assert [each.id for each in watch.actions] == ["a-1"]


def test_an_action_knows_since_when_rows_wait_and_each_remedy_of_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    watch = LogWatch(path)
    late = replace(BATCH, pending_rows=3.0)
    parts = (PartContent("scale-up", "under-provisioned"), PartContent("replace", "slow-instance", retire=("1",)))

    def plan(number: int) -> Record:
        return Record.of(f"a-{number}", 9.0, ActionContent("plan", parts=parts), "a plan")

    write(path, batch(1), plan(1), Record.of("b-2", 2.0, late, "late"))
    watch.look()
    seen_s = watch.actions[0].seen_s
    write(path, Record.of("b-3", 3.0, late, "late"), plan(2), batch(4), plan(3))
    watch.look()
    since = [action.behind_since_s for action in watch.actions]
    assert (since[0], since[2]) == (inf, inf)
    assert seen_s <= since[1] < watch.actions[1].seen_s
    assert watch.actions[0].changes == (
        Change("scale-up", "under-provisioned"),
        Change("replace", "slow-instance", ("1",)),
    )
