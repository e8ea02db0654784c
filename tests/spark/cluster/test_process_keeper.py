"""Whatever happens, nothing that was started is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from homeostat.spark.cluster import process_keeper
from homeostat.spark.cluster.process_keeper import Keeper

WaitUntil = Callable[[Callable[[], bool], str], None]

SLEEP = ["sleep", "600"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)",
]
# A child in a session of its own, whose parent is gone: neither parent nor process group leads to it.
ORPHAN_MAKER = ["sh", "-c", "setsid sleep 600 & echo $!; exec sleep 600"]
PARENT = """
import sys, time
from pathlib import Path
from homeostat.spark.cluster.process_keeper import Keeper
keeper = Keeper()
print(keeper.pid, keeper.start("sleeper", ["sleep", "600"]), flush=True)
time.sleep(600)
"""


@pytest.fixture
def kept() -> Iterator[Keeper]:
    with closing(Keeper()) as running:
        yield running


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_output_goes_to_the_log_and_the_end_is_known(kept: Keeper, tmp_path: Path) -> None:
    log = tmp_path / "log"
    kept.start(
        "speaker",
        ["sh", "-c", "echo out; echo $WORD >&2; pwd; exit 3"],
        environment={"WORD": "err"},
        directory=tmp_path,
        log=log,
    )
    assert kept.wait("speaker") == 3
    assert log.read_text().split() == ["out", "err", str(tmp_path)]


def test_a_process_ended_by_a_signal_has_a_negative_code(kept: Keeper) -> None:
    os.kill(kept.start("victim", SLEEP), signal.SIGKILL)
    assert kept.wait("victim") == -signal.SIGKILL


def test_a_program_that_does_not_exist_is_an_error(kept: Keeper) -> None:
    with pytest.raises(OSError, match="could not start /no/such/program"):
        kept.start("nobody", ["/no/such/program"])
    assert kept.code("nobody") == 127


def test_a_name_can_be_used_again(kept: Keeper) -> None:
    kept.start("again", ["sh", "-c", "exit 1"])
    assert kept.wait("again") == 1
    kept.start("again", SLEEP)
    assert kept.code("again") is None
    assert kept.wait("again", timeout_s=0.01) is None


def test_one_can_be_ended_while_others_run_on(kept: Keeper) -> None:
    one, other = kept.start("one", SLEEP), kept.start("other", SLEEP)
    kept.end("one")
    assert is_gone(one)
    assert kept.code("one") == -signal.SIGTERM
    assert not is_gone(other)
    assert kept.code("other") is None


def test_closing_ends_the_deaf_the_stopped_and_the_orphaned(
    tmp_path: Path, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Keeper()
    logs = [tmp_path / name for name in ("deaf", "family")]
    deaf = kept.start("deaf", STUBBORN, log=logs[0])
    family = kept.start("family", ORPHAN_MAKER, log=logs[1])
    stopped = kept.start("stopped", SLEEP)
    wait_until(lambda: all(log.read_text() for log in logs), "all have started")
    orphan = int(logs[1].read_text())
    os.kill(family, signal.SIGKILL)
    os.kill(stopped, signal.SIGSTOP)
    assert kept.wait("family") == -signal.SIGKILL
    assert not is_gone(orphan)
    kept.close()
    assert all(is_gone(pid) for pid in (deaf, orphan, stopped, kept.pid))
    kept.close()


@pytest.mark.parametrize("victim", ["parent", "keeper"])
def test_a_killed_parent_or_keeper_takes_everything_along(victim: str, wait_until: WaitUntil) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        os.kill(parent.pid if victim == "parent" else pids[0], signal.SIGKILL)
        wait_until(lambda: all(is_gone(pid) for pid in pids), "keeper and kept process are gone")
        parent.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")
@pytest.mark.parametrize("victim", ["outer", "inner", "group"])
def test_a_killed_keeper_leaves_no_descendants(victim: str, tmp_path: Path, wait_until: WaitUntil) -> None:
    kept, log = Keeper(), tmp_path / "family"
    family = kept.start("family", ["sh", "-c", "sleep 600 & echo $!; setsid sleep 600 & echo $!; wait"], log=log)
    wait_until(lambda: log.exists() and len(log.read_text().split()) == 2, "the grandchildren have started")
    (inner,) = psutil.Process(kept.pid).children()
    pids = [kept.pid, inner.pid, family, *map(int, log.read_text().split())]
    if victim == "group":
        os.killpg(kept.pid, signal.SIGKILL)
    else:
        os.kill(inner.pid if victim == "inner" else kept.pid, signal.SIGKILL)
    wait_until(lambda: all(is_gone(pid) for pid in pids), "nothing is left")
    kept.close()


def test_a_keeper_that_is_asked_to_stop_ends_what_it_keeps(kept: Keeper) -> None:
    sleeper = kept.start("sleeper", SLEEP)
    os.kill(kept.pid, signal.SIGTERM)
    assert kept.wait("sleeper") == -signal.SIGTERM
    assert is_gone(sleeper)


def test_both_ways_to_list_processes_agree() -> None:
    mine = os.getpid()
    assert dict(process_keeper._listed_by_kernel())[mine] == dict(process_keeper._listed_by_ps())[mine] == os.getppid()
