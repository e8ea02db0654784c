"""A small process that starts other processes, and ends all of them when its parent ends.

It runs as a script with the standard library only, so that it starts fast. Its parent writes one JSON order per line.
When that input ends, even because the parent was killed, the keeper ends all processes. On Linux it adopts the
descendants of its processes, whatever their parent or process group. There the keeper consists of two processes, so
that either of them can be killed: the inner one follows the orders, and the outer one adopts the processes that the
inner one leaves behind.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from typing import Any

# A choice: a JVM has this long to run its shutdown hooks, and stopping a cluster takes no longer than this.
GRACE_S = 5.0
LOOK_AGAIN_S = 0.1
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Keeper:
    """The parent's side: sends orders, and receives reports about processes that started or ended."""

    def __init__(self) -> None:
        reports, reports_in = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", __file__, str(reports_in)],
                stdin=subprocess.PIPE,
                pass_fds=(reports_in,),
                start_new_session=True,  # the parent handles an interrupt from the terminal
                text=True,
            )
        finally:
            os.close(reports_in)
        self._changed = Condition()
        self._pids: dict[str, int] = {}
        self._codes: dict[str, int] = {}
        self._keeper_ended = False
        self._reader = Thread(target=self._listen, args=(reports,), name="keeper-reports", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        log: Path | None = None,
    ) -> int:
        """Start a process under a name and return its pid. Without a log its output goes where the parent's goes."""
        with self._changed:
            self._pids.pop(name, None)
            self._codes.pop(name, None)
        self._order(
            start=name,
            command=[str(part) for part in command],
            environment=dict(os.environ if environment is None else environment),
            directory=str(directory or Path.cwd()),
            log=str(log) if log else None,
        )
        with self._changed:
            self._changed.wait_for(lambda: name in self._pids or name in self._codes or self._keeper_ended)
            if name not in self._pids:
                raise OSError(f"could not start {command[0]}")
            return self._pids[name]

    def code(self, name: str) -> int | None:
        """The exit code of the process, or minus the number of the signal that ended it; None while it runs."""
        with self._changed:
            return self._codes.get(name, -signal.SIGKILL if self._keeper_ended else None)

    def wait(self, name: str, timeout_s: float | None = None) -> int | None:
        """Wait for the process to end. Returns None if it still runs after the time limit."""
        with self._changed:
            self._changed.wait_for(lambda: name in self._codes or self._keeper_ended, timeout_s)
        return self.code(name)

    def end(self, name: str) -> None:
        """End the process and all of its descendants, and wait for that."""
        if self.code(name) is None:
            self._order(end=name)
            self.wait(name)

    def close(self) -> None:
        """End all processes. Safe to repeat."""
        with suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._process.wait()
        self._reader.join()

    def _order(self, **order: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def _listen(self, reports: int) -> None:
        with open(reports) as lines:
            for line in lines:
                report = json.loads(line)
                with self._changed:
                    if "pid" in report:
                        self._pids[report["name"]] = report["pid"]
                    else:
                        self._codes[report["name"]] = report["code"]
                    self._changed.notify_all()
        with self._changed:
            self._keeper_ended = True
            self._changed.notify_all()


class _Household:
    """The keeper's side: its children by name, and all of their descendants."""

    def __init__(self, reports: int) -> None:
        self._reports = reports
        self._children: dict[int, str] = {}

    def obey(self, order: Mapping[str, Any]) -> None:
        if name := order.get("start"):
            self._start(name, order)
        elif name := order.get("end"):
            self.end_trees([pid for pid, child in self._children.items() if child == name])

    def reap(self) -> None:
        """Collect and report every child that ended, including adopted ones."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                if name := self._children.pop(pid, None):
                    self._report(name=name, code=os.waitstatus_to_exitcode(status))

    def end_all(self) -> None:
        self.end_trees(_tree([os.getpid()]) - {os.getpid()})

    def end_trees(self, roots: Iterable[int]) -> None:
        """Send SIGTERM, and SIGKILL after a while. A stopped process must be continued to receive SIGTERM."""
        pids = _tree(roots)
        for pid in pids:
            send_signal(pid, signal.SIGTERM)
            send_signal(pid, signal.SIGCONT)
        pids = self._wait_for_end(pids, time.monotonic() + GRACE_S)
        while pids:
            for pid in pids:
                send_signal(pid, signal.SIGKILL)
            pids = self._wait_for_end(pids, time.monotonic() + LOOK_AGAIN_S)

    def _wait_for_end(self, pids: set[int], deadline: float) -> set[int]:
        while pids and time.monotonic() < deadline:
            self.reap()
            pids = _tree(pids)
            time.sleep(LOOK_AGAIN_S / 5)
        self.reap()  # report those that ended since the last call
        return pids

    def _start(self, name: str, order: Mapping[str, Any]) -> None:
        log = open(order["log"], "ab") if order["log"] else None  # noqa: SIM115 (the child keeps it open)
        try:
            child = subprocess.Popen(
                order["command"],
                env=order["environment"],
                cwd=order["directory"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        except (OSError, subprocess.SubprocessError):
            self._report(name=name, code=127)
            return
        finally:
            if log:
                log.close()
        self._children[child.pid] = name
        child.returncode = 0  # reaped here, by pid, together with adopted orphans; Popen must not wait for it
        self._report(name=name, pid=child.pid)

    def _report(self, **report: object) -> None:
        with suppress(BrokenPipeError):
            os.write(self._reports, json.dumps(report).encode() + b"\n")


def _tree(roots: Iterable[int]) -> set[int]:
    """These processes and all their descendants that are alive."""
    children: dict[int, list[int]] = {}
    alive = set()
    for pid, parent in _processes():
        alive.add(pid)
        children.setdefault(parent, []).append(pid)
    tree: set[int] = set()
    queue = [pid for pid in roots if pid in alive]
    while queue:
        pid = queue.pop()
        if pid not in tree:
            tree.add(pid)
            queue += children.get(pid, ())
    return tree


def _processes() -> Iterable[tuple[int, int]]:
    """(pid, parent) of every process that has not ended."""
    return _listed_by_kernel() if os.path.isdir("/proc/self") else _listed_by_ps()


def _listed_by_kernel() -> Iterator[tuple[int, int]]:
    for entry in os.listdir("/proc"):
        with suppress(ValueError, OSError), open(f"/proc/{int(entry)}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
            if fields[0] != b"Z":
                yield int(entry), int(fields[1])


def _listed_by_ps() -> Iterator[tuple[int, int]]:
    """For systems without /proc."""
    listing = subprocess.run(["ps", "-Ao", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        pid, parent, state = line.split()[:3]
        if not state.startswith("Z"):
            yield int(pid), int(parent)


def send_signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, number)


def _adopt_orphans() -> None:
    ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1)


def _keep_in_two(reports: int) -> None:
    """Carry out the commands in a child process. When it has ended, for whatever reason, end all processes that it
    started.
    """
    _adopt_orphans()
    outer = os.getpid()
    inner = os.fork()
    if not inner:
        os.setsid()  # a signal to the group of the outer process must not reach both
        _die_with_parent(signal.SIGTERM)
        if os.getppid() == outer:
            _keep(reports)
        return
    os.close(sys.stdin.fileno())  # the inner process reads it
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: send_signal(inner, signal.SIGTERM))
    while os.wait()[0] != inner:
        pass  # an orphan that the inner process had not adopted
    _Household(reports).end_all()


def _keep(reports: int) -> None:
    """Follow the orders until the input ends or a signal arrives."""
    household = _Household(reports)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    if sys.platform == "linux":
        _adopt_orphans()
    orders = sys.stdin.fileno()
    rest = b""
    try:
        while True:
            ready, _, _ = select.select([orders, wake], [], [])
            if wake in ready:
                os.read(wake, 4096)
                household.reap()
            if orders in ready:
                data = os.read(orders, 65536)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    household.obey(json.loads(line))
    finally:
        household.end_all()


if __name__ == "__main__":
    (_keep_in_two if sys.platform == "linux" else _keep)(int(sys.argv[1]))
