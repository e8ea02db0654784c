"""A log of an earlier version is taken over as a whole or not at all."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from homeostat.core.errors import NewerLogError, StoreError
from homeostat.core.loop_state import State
from homeostat.core.records import ActionContent, Record
from homeostat.runtime.saved_state import restore_state
from homeostat.store import migrations
from homeostat.store.explain import explain
from homeostat.store.present import load_present
from homeostat.store.registered_applications import ApplicationTable
from homeostat.store.sqlite import SqliteStore

OLD_LOG = Path(__file__).parents[1] / "recorded" / "version-0.1.0" / "log.db"
RUN = "words/counting"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD_LOG, tmp_path / "homeostat.sqlite"))


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return sorted(row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"))


def test_a_log_of_version_0_1_0_is_taken_over_with_everything_in_it(log: Path) -> None:
    assert version(log) == 1
    with closing(SqliteStore(log)) as store:
        assert version(log) == migrations.SCHEMA_VERSION
        assert store.runs()[0].counts["batch"] == 70
        assert [record.id for record in store.open_intents(RUN)] == ["a-2"]
        action = store.open_intents(RUN)[0].content_as(ActionContent)
        assert action is not None
        assert dict(action.desired_configuration.as_json()) == {"parallelism.count": 5, "parallelism.lines": 1}
        assert "a-1 helped" in explain(store, RUN, "a-1")
        assert load_present(store, RUN).policy == "provisioning"
        restored = restore_state(State(), store.load_state(RUN, "loop"))
        assert restored.problems == ()
        assert (restored.state.numbers["a"], len(restored.state.memory)) == (2, 1)
        assert ApplicationTable(store).register("1f" * 16, "words", adopts=True) == "words"


def test_reading_an_old_log_does_not_change_it(log: Path) -> None:
    before = log.read_bytes()
    with closing(SqliteStore(log, read_only=True)) as store:
        assert len(store.records(RUN, kinds=("action",))) == 2
    assert (log.read_bytes(), version(log)) == (before, 1)


def test_a_log_that_was_taken_over_has_the_same_tables_as_a_new_one(log: Path, tmp_path: Path) -> None:
    SqliteStore(log).close()
    SqliteStore(tmp_path / "new.sqlite").close()
    assert tables(log) == tables(tmp_path / "new.sqlite")


def test_a_migration_that_fails_leaves_the_log_as_it_was(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM records")
        raise sqlite3.OperationalError("the disk broke")

    before = log.read_bytes()
    newest = migrations.SCHEMA_VERSION + 1
    monkeypatch.setattr(migrations, "MIGRATIONS", {**migrations.MIGRATIONS, newest: fail})
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", newest)
    monkeypatch.setattr("homeostat.store.sqlite.SCHEMA_VERSION", newest)
    monkeypatch.setattr("homeostat.store.log_file.SCHEMA_VERSION", newest)
    with pytest.raises(StoreError, match="the disk broke"):
        SqliteStore(log)
    monkeypatch.undo()
    assert version(log) == 1
    with closing(SqliteStore(log, read_only=True)) as store:
        assert len(store.records(RUN, kinds=("action",))) == 2
    assert len(log.read_bytes()) == len(before)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_log_of_a_newer_version_is_refused_with_exit_code_2_and_not_changed(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "homeostat.sqlite"
    with closing(SqliteStore(path)) as store:
        store.append("run", [Record("s-1", "symptom", 1.0, "")])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {migrations.SCHEMA_VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(NewerLogError, match="a newer Homeostat wrote this log") as refused:
        SqliteStore(path, read_only=read_only)
    assert (refused.value.exit_code, "\n" in refused.value.line) == (2, False)
    assert path.read_bytes() == before
