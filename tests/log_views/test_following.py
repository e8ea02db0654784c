"""A log followed while another process writes it."""

from __future__ import annotations

from pathlib import Path

from homeostat.core.records import Record
from homeostat.log_views.following import OVERLAP_S, Follower
from homeostat.store.sqlite import SqliteStore


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


def test_a_log_that_another_file_replaces_is_followed_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    first = SqliteStore(path)
    first.append("app/words", [Record("a-1", "action", 1_000.0, "one"), Record("a-2", "action", 1_100.0, "two")])
    follower = Follower(path, "app/words")
    assert len(follower.new()) == 2
    first.close()
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    assert follower.new() == []
    second = SqliteStore(path)
    again, fresh = Record("a-2", "action", 1_100.0, "two"), Record("a-1", "action", 5.0, "another one")
    second.append("app/words", [again, fresh])
    assert follower.new() == [fresh]
    second.append("app/words", [Record("a-3", "action", 1_101.0, "three")])
    assert [record.id for record in follower.new()] == ["a-3"]
    follower.close()
    second.close()


def test_a_log_that_is_cut_off_and_written_anew_in_the_same_file_is_followed_from_its_beginning(tmp_path: Path) -> None:
    path, other = tmp_path / "log.sqlite", tmp_path / "other.sqlite"
    first = SqliteStore(path)
    first.append("app/words", [Record(f"a-{number}", "action", 1_000.0 + number, "") for number in range(5)])
    first.close()
    follower = Follower(path, "app/words")
    assert len(follower.new()) == 5
    second = SqliteStore(other)
    second.append("app/words", [Record("a-0", "action", 5.0, "another one")])
    second.close()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    assert follower.new() == []
    with path.open("r+b") as file:
        file.truncate()
        file.write(other.read_bytes())
    assert [record.text for record in follower.new()] == ["another one"]
    follower.close()


def test_it_remembers_only_what_could_come_again(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "log.sqlite", "app/words")
    store = SqliteStore(tmp_path / "log.sqlite")
    for number in range(50):
        store.append("app/words", [Record(f"b-{number}", "batch", 10.0 * number, "")])
        assert [record.id for record in follower.new()] == [f"b-{number}"]
    assert len(follower._known_times_s) == OVERLAP_S / 10.0 + 1
    follower.close()
    store.close()
