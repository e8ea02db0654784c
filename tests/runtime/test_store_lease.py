"""One manager per application and log, whatever process, directory or host the second one starts in."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from homeostat.core.errors import DamagedLogError, LeaseLostError, NoLogError, StoreError
from homeostat.core.records import Record
from homeostat.runtime.hold import ApplicationHold
from homeostat.runtime.identity import IDENTITY, identity_of
from homeostat.runtime.launch import LEASE
from homeostat.runtime.lease import Lease, LeaseTakenError
from homeostat.runtime.store_lease import StoreLease, log_after
from homeostat.store.registered_applications import ApplicationTable
from homeostat.store.sqlite import SqliteStore

HOLDER = """
import sys
from pathlib import Path
from homeostat.runtime.hold import ApplicationHold
hold = ApplicationHold(Path(sys.argv[1]), Path(sys.argv[2]))
hold.take_files()
hold.take_log()
print("taken", flush=True)
sys.stdin.read()
hold.release()
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "homeostat.sqlite"


@pytest.fixture
def application(tmp_path: Path) -> Path:
    directory = tmp_path / "a" / "words"
    directory.mkdir(parents=True)
    return directory


@contextmanager
def held(directory: Path, log: Path, state: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the application, on this host, perhaps as another user."""
    environment = os.environ if state is None else {**os.environ, "XDG_STATE_HOME": str(state)}
    command = [sys.executable, "-c", HOLDER, str(directory), str(log)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        try:
            yield process
        finally:
            process.kill()


def lease(directory: Path, log: Path, watch_s: float = 30.0) -> StoreLease:
    return StoreLease(log, identity_of(directory), directory, beat_s=0.02, watch_s=watch_s)


def seen_from_another_host(log: Path, directory: Path) -> None:
    """As if the present holder ran on another host: its file locks tell nothing here."""
    with closing(SqliteStore(log)) as store:
        table, identity = ApplicationTable(store), identity_of(directory).id
        holder = table.holder(identity)
        assert table.take(identity, replace(holder, kernel="another-host"), instead_of=holder)


def announced(directory: Path, log: Path, process: int) -> dict[str, object]:
    return {"store": str(log), "identity": identity_of(directory).id, "process": process}


def test_after_the_death_of_a_manager_its_log_is_written_until_another_one_takes_over(
    application: Path, log: Path
) -> None:
    with ApplicationHold(application, log) as hold:
        hold.open_log("words/count").close()
    with held(application, log) as process:
        about = announced(application, log, process.pid)
    with closing(log_after(about)) as store:
        store.append("words/count", [Record("t-1", "alert", 1.0, "")])
        assert len(store.records("words/count")) == 1
        with pytest.raises(StoreError, match="the log has no run 'words/other'"):
            store.append("words/other", [Record("t-2", "alert", 1.0, "")])
        with held(application, log):
            with pytest.raises(LeaseLostError):
                store.append("words/count", [Record("t-3", "alert", 1.0, "")])
            with pytest.raises(LeaseLostError):
                log_after(about)


def test_after_the_death_of_a_manager_no_new_log_is_begun(application: Path, tmp_path: Path) -> None:
    with pytest.raises(NoLogError):
        log_after(announced(application, tmp_path / "removed.sqlite", 1))
    assert not (tmp_path / "removed.sqlite").exists()


def test_a_copy_of_the_directory_is_refused_while_the_original_runs(
    application: Path, log: Path, tmp_path: Path
) -> None:
    with held(application, log, tmp_path / "state of another user") as process:
        copy = tmp_path / "b" / "words"
        shutil.copytree(application, copy)
        (copy / IDENTITY).unlink()
        shutil.copy(application / IDENTITY, copy)
        with pytest.raises(LeaseTakenError) as refused, ApplicationHold(copy, log):
            pass
        line = refused.value.line
        assert f"delete {copy / IDENTITY}" in line
        assert "\n" not in line
        (copy / IDENTITY).unlink()
        with ApplicationHold(copy, log) as hold:
            assert hold.name == f"words-{hold.identity.id[:4]}"
        assert process.poll() is None


def test_a_copy_is_refused_on_the_same_host_also_with_a_log_of_its_own(
    application: Path, log: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "b" / "words"
    with held(application, log) as process:
        shutil.copytree(application, copy)
        with (
            pytest.raises(LeaseTakenError, match=f"process {process.pid}.*if {copy} is a copy, delete"),
            ApplicationHold(copy, tmp_path / "other.sqlite"),
        ):
            pass


def test_a_copy_is_refused_also_when_the_original_does_not_run(application: Path, log: Path, tmp_path: Path) -> None:
    with ApplicationHold(application, log):
        pass
    copy = Path(shutil.copytree(application, tmp_path / "copy"))
    with (
        pytest.raises(LeaseTakenError, match=f"this directory is a copy of {application}.*delete {copy / IDENTITY}"),
        ApplicationHold(copy, log),
    ):
        pass


def test_a_directory_that_was_moved_keeps_its_name_in_the_log(application: Path, log: Path, tmp_path: Path) -> None:
    with ApplicationHold(application, log) as hold:
        identity = hold.identity
    moved = application.rename(tmp_path / "counts")
    with ApplicationHold(moved, log) as hold:
        assert (hold.name, hold.identity.id) == ("words", identity.id)


def test_two_applications_of_one_directory_name_share_a_log_and_no_run(
    application: Path, log: Path, tmp_path: Path
) -> None:
    with ApplicationHold(application, log) as first, ApplicationHold(tmp_path / "b" / "words", log) as second:
        assert first.name == "words"
        assert second.name == f"words-{second.identity.id[:4]}"
    with ApplicationHold(tmp_path / "b" / "words", log) as again:
        assert again.name == second.name


def test_after_its_holder_was_killed_on_this_host_it_is_free_at_once(application: Path, log: Path) -> None:
    with held(application, log) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def never(seconds: float) -> None:
        raise AssertionError("it must not wait")

    with Lease(application / LEASE):
        taken = StoreLease(log, identity_of(application), application, pause=never)
        taken.take()
        taken.release()


def test_a_holder_that_is_stopped_on_this_host_still_holds_it(application: Path, log: Path, tmp_path: Path) -> None:
    with held(application, log, tmp_path / "state of another user") as process:
        os.kill(process.pid, signal.SIGSTOP)
        copy = Path(shutil.copytree(application, tmp_path / "copy"))
        (application / IDENTITY).unlink()  # or the copy would be refused as such
        with pytest.raises(LeaseTakenError, match="another manager already controls"), ApplicationHold(copy, log):
            pass


def test_a_manager_on_another_host_is_refused_as_long_as_the_holder_shows_life(application: Path, log: Path) -> None:
    first = lease(application, log)
    first.take()
    try:
        seen_from_another_host(log, application)
        with pytest.raises(LeaseTakenError, match="another manager already controls this application"):
            lease(application, log, watch_s=30.0).take()
        assert not first.lost
    finally:
        first.release()


@pytest.mark.parametrize("shift_s", [-3_600.0, 3_600.0])
def test_clocks_that_are_set_do_not_let_a_second_manager_in(
    application: Path, log: Path, shift_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lease(application, log)
    first.take()
    try:
        seen_from_another_host(log, application)
        monkeypatch.setattr("time.time", lambda: shift_s)
        with pytest.raises(LeaseTakenError):
            lease(application, log, watch_s=30.0).take()
    finally:
        first.release()


def test_after_a_host_has_died_another_one_takes_over_and_the_old_manager_can_no_longer_write(
    application: Path, log: Path
) -> None:
    first = StoreLease(log, identity_of(application), application, beat_s=3600.0)
    first.take()
    with closing(SqliteStore(log)) as store:
        first.enrol(store)
        first.bind(store, "words/counting")
        store.append("words/counting", [Record("s-1", "symptom", 1.0, "")])
        seen_from_another_host(log, application)
        second = lease(application, log, watch_s=0.05)
        second.take()
        with pytest.raises(LeaseLostError):
            store.append("words/counting", [Record("a-1", "action", 2.0, "")])
        first._beat()
        assert first.lost
    first.release()
    with closing(SqliteStore(log)) as store:
        assert ApplicationTable(store).holder(identity_of(application).id).process == os.getpid()
    assert not second.lost
    second.release()


def test_the_lease_moves_to_a_new_file_when_the_log_is_removed(application: Path, log: Path) -> None:
    first = StoreLease(log, identity_of(application), application, beat_s=3600.0)
    first.take()
    log.unlink()
    first._beat()
    assert not first.lost
    with closing(SqliteStore(log)) as store:
        assert ApplicationTable(store).holder(identity_of(application).id).directory == str(application)
    first.release()


def test_a_manager_whose_caller_stops_meanwhile_does_not_take_it(application: Path, log: Path) -> None:
    first = StoreLease(log, identity_of(application), application, beat_s=3600.0)
    first.take()
    seen_from_another_host(log, application)
    second = StoreLease(log, identity_of(application), application, pause=lambda seconds: True)
    with pytest.raises(LeaseTakenError):
        second.take()
    second.release()
    first.release()


def test_a_log_that_is_damaged_at_the_start_is_moved_aside(application: Path, log: Path) -> None:
    """Cut while a manager ran, which reads what it needs from memory: only the next one finds it damaged."""
    with closing(SqliteStore(log)) as store:
        store.append("words/counting", [Record(f"r-{number}", "symptom", 1.0, "x" * 500) for number in range(500)])
    os.truncate(log, 32_002)
    with pytest.raises(DamagedLogError), closing(SqliteStore(log)) as store:
        store.runs()
    with ApplicationHold(application, log) as hold, closing(SqliteStore(log)) as store:
        aside = log.with_name("homeostat.sqlite.damaged-1")
        assert hold.damaged_log == aside
        assert aside.stat().st_size == 32_002
        hold.enrol(store, "words/counting")
        store.append("words/counting", [Record("r-1", "symptom", 1.0, "the first one of the new log")])
