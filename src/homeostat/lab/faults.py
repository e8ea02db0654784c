"""Faults for tests and demonstrations: an executor that becomes slow or dies, a sink that hangs.

They act on processes of this machine, so they work only with executors of the embedded cluster.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from psutil import Process
    from pyspark.sql import DataFrame

EXECUTOR_CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
# A sleep continues while its process is stopped. The cycle is many times as long as the word count's sleep; otherwise
# the executor would be slowed by less than the factor.
CYCLE_S = 0.4
LOOK_AGAIN_S = 0.05
CYCLES_A_SEARCH = 5  # a choice: new Python workers are found within two seconds, and the search costs little CPU


def executor_processes(application: str | None = None) -> dict[str, tuple[int, ...]]:
    """The processes of each executor, by executor id: the executor itself first, then all that it started.

    Without an application's id, this covers all applications on this machine, whose executors may have equal ids.
    """
    import psutil

    processes = {}
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if EXECUTOR_CLASS not in command or application not in (None, option(command, "--app-id")):
            continue
        pids = tuple(each.pid for each in _tree(process))
        if pids:  # otherwise it has ended meanwhile
            processes[option(command, "--executor-id")] = pids
    return processes


def kill_executor(executor_id: str, application: str | None = None) -> int:
    """Kill the executor's process without warning, as a failing machine would, and return its pid."""
    pid = _executor_pid(executor_id, application)
    os.kill(pid, signal.SIGKILL)
    return pid


class SlowExecutor:
    """Inside the context, the executor and all processes it started run only 1/factor of the time.

    A separate process stops and continues them in short cycles. It ends with its parent, so that nothing stays stopped
    if a demonstration is killed.
    """

    def __init__(self, executor_id: str, factor: float, application: str | None = None) -> None:
        if factor <= 1:
            raise ValueError(f"factor = {factor:g} must be above 1")
        self.factor = factor
        self.pid = _executor_pid(executor_id, application)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        command = [sys.executable, "-m", __name__, str(self.pid), str(self.factor)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def stop(self) -> None:
        """Let the executor run at full speed again. Calling it twice does no harm."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._process = None
        _signal_all(_tree_of(self.pid), signal.SIGCONT)  # that process may have been killed before it did this


def hang_while(file: Path, write: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch` that waits while the file exists and then calls `write`."""

    def write_later(frame: DataFrame, batch: int) -> None:
        while file.exists():
            time.sleep(LOOK_AGAIN_S)
        write(frame, batch)

    return write_later


def _executor_pid(executor_id: str, application: str | None) -> int:
    processes = executor_processes(application)
    if executor_id not in processes:
        raise LookupError(f"executor {executor_id} is not running on this machine; running: {', '.join(processes)}")
    return processes[executor_id][0]


def option(command: Sequence[str], name: str) -> str:
    """The value of an option on a command line; empty without it."""
    return command[command.index(name) + 1] if name in command else ""


def _tree(process: Process) -> list[Process]:
    """All descendants: Python workers have their own process group, so signalling the group is not enough."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        return [process, *process.children(recursive=True)]
    return []


def _tree_of(pid: int) -> list[Process]:
    import psutil

    with suppress(psutil.NoSuchProcess):
        return _tree(psutil.Process(pid))
    return []


def _signal_all(processes: Iterable[Process], number: signal.Signals) -> None:
    import psutil

    for process in processes:
        with suppress(psutil.NoSuchProcess):  # raised also if the pid belongs to another process now
            process.send_signal(number)


def _slow_down(pid: int, factor: float, end: Event) -> None:
    """Stop and continue the process tree until `end` is set or the process is gone.

    Each pause depends on how long the phases before it really took, so that a busy machine does not change the factor.
    """
    processes: list[Process] = []
    owed_s = 0.0
    try:
        for cycle in count():
            if cycle % CYCLES_A_SEARCH == 0:
                processes = _tree_of(pid)
            if end.is_set() or not processes:
                return
            began = time.monotonic()
            end.wait(CYCLE_S / factor)
            _signal_all(processes, signal.SIGSTOP)
            stopped_s = time.monotonic()
            owed_s += (stopped_s - began) * (factor - 1)
            end.wait(owed_s)
            _signal_all(processes, signal.SIGCONT)
            owed_s -= time.monotonic() - stopped_s
    finally:
        _signal_all(_tree_of(pid), signal.SIGCONT)


def main() -> None:
    """`python -m homeostat.lab.faults PID FACTOR` slows a process tree down until standard input ends."""
    pid, factor = int(sys.argv[1]), float(sys.argv[2])
    end = Event()
    signal.signal(signal.SIGTERM, lambda *_: end.set())

    def wait_for_parent() -> None:
        # sys.stdin would keep a lock that the interpreter needs to exit.
        while os.read(0, 1):
            pass
        end.set()

    Thread(target=wait_for_parent, daemon=True).start()
    _slow_down(pid, factor, end)


if __name__ == "__main__":
    main()
