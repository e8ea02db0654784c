"""A log followed while another process writes it."""

from __future__ import annotations

from pathlib import Path

from homeostat.core.records import Record
from homeostat.store.sqlite import SqliteStore
from homeostat.views.following import Follower


def test_each_record_comes_once_also_one_that_is_written_late(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "log.sqlite", "app/words")
    assert follower.new() == []
    store = SqliteStore(tmp_path / "log.sqlite")
    assert follower.new() == []
    store.append("app/words", [Record("a-1", "action", 100.0, "one"), Record("a-2", "action", 110.0, "two")])
    store.append("other/run", [Record("a-3", "action", 120.0, "not mine")])
    assert [record.id for record in follower.new()] == ["a-1", "a-2"]
    assert follower.new() == []
    store.append("app/words", [Record("b-1", "batch", 105.0, "ended before a-2")])
    assert [record.id for record in follower.new()] == ["b-1"]
    follower.close()
    store.close()


def test_what_is_no_log_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite").write_text("this is no log at all, but long enough to look like something")
    assert Follower(tmp_path / "log.sqlite", "app/words").new() == []
