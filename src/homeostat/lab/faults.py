"""Faults for tests and demonstrations: an executor that turns slow or dies, a sink that hangs.

They act on the processes of this machine, so they reach executors of the embedded cluster only.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
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
# Time goes on for who sleeps while stopped: many times as long as a stage's wait, or it would not be as slow as said.
CYCLE_S = 0.4
LOOK_AGAIN_S = 0.05
CYCLES_A_SEARCH = 5


def executor_processes(application: str | None = None) -> dict[str, tuple[int, ...]]:
    """The processes of each executor, by executor id: the executor itself first, then all it started.

    Without an application's id, executors of every application on this machine; ids of two may then be the same.
    """
    import psutil

    found = {}
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if EXECUTOR_CLASS not in command or application not in (None, _option(command, "--app-id")):
            continue
        found[_option(command, "--executor-id")] = tuple(each.pid for each in _tree(process))
    return found


def kill_executor(executor_id: str, application: str | None = None) -> int:
    """Kill the executor's process without a warning, as a failing machine would; its pid."""
    pid = _executor_pid(executor_id, application)
    os.kill(pid, signal.SIGKILL)
    return pid


class SlowExecutor:
    """While the context lasts, the executor and all it started run only 1/factor of the time.

    A process of its own stops and continues them in short cycles. It ends with whoever started it, so that a
    demonstration that is killed leaves nothing stopped.
    """

    def __init__(self, executor_id: str, factor: float, application: str | None = None) -> None:
        if factor <= 1:
            raise ValueError(f"a slow executor has a factor above 1, not {factor:g}")
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
        """Let the executor run freely again. Safe to repeat."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._process = None
        _signal_all(_tree_of(self.pid), signal.SIGCONT)  # in case the other process was killed in mid-cycle


def hang_while(file: Path, write: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch` that writes as `write` does, but not as long as the file exists."""

    def write_later(frame: DataFrame, batch: int) -> None:
        while file.exists():
            time.sleep(LOOK_AGAIN_S)
        write(frame, batch)

    return write_later


def _executor_pid(executor_id: str, application: str | None) -> int:
    processes = executor_processes(application)
    if executor_id not in processes:
        raise LookupError(f"executor {executor_id} does not run on this machine; running: {', '.join(processes)}")
    return processes[executor_id][0]


def _option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1] if name in command else ""


def _tree(process: Process) -> list[Process]:
    """Python workers have a process group of their own, so the group is not enough."""
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
        with suppress(psutil.NoSuchProcess):  # also if the pid belongs to another process by now
            process.send_signal(number)


def _slow_down(pid: int, factor: float, ended: Event) -> None:
    """Stop and continue until told to end or the process is gone.

    How long each phase really took sets the length of the next, so that a busy machine does not change the factor.
    """
    processes: list[Process] = []
    owed_s = 0.0
    try:
        for cycle in count():
            if cycle % CYCLES_A_SEARCH == 0:
                processes = _tree_of(pid)
            if ended.is_set() or not processes:
                return
            began = time.monotonic()
            ended.wait(CYCLE_S / factor)
            _signal_all(processes, signal.SIGSTOP)
            stopped = time.monotonic()
            owed_s += (stopped - began) * (factor - 1)
            ended.wait(owed_s)
            _signal_all(processes, signal.SIGCONT)
            owed_s -= time.monotonic() - stopped
    finally:
        _signal_all(_tree_of(pid), signal.SIGCONT)


def main() -> None:
    """`python -m homeostat.lab.faults PID FACTOR`: slow a process tree down until standard input ends."""
    pid, factor = int(sys.argv[1]), float(sys.argv[2])
    ended = Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())

    def wait_for_parent() -> None:
        # Not through sys.stdin: an interpreter that ends needs its lock.
        while os.read(0, 1):
            pass
        ended.set()

    Thread(target=wait_for_parent, daemon=True).start()
    _slow_down(pid, factor, ended)


if __name__ == "__main__":
    main()
