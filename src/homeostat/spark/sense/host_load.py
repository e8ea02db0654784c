"""How busy the driver's host is, with the application's own processes and with others, from /proc."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from homeostat.core.observation import HostSample

# Reading 150 processes takes 10 ms (measured). At this interval, that is a thousandth of the time. A choice.
EVERY_S = 10.0
_PROC = Path("/proc")


class CpuTimes(NamedTuple):
    """Of a whole machine, in ticks of its clock."""

    cores: int
    busy: int
    total: int


@dataclass(frozen=True, slots=True)
class Process:
    """`ticks` is its CPU time so far, with that of its children that have ended."""

    pid: int
    parent: int
    began: int
    ticks: int


def read_cpu(proc: Path = _PROC) -> CpuTimes:
    lines = [line.split() for line in (proc / "stat").read_text().splitlines() if line.startswith("cpu")]
    # user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in the first two.
    ticks = [int(value) for value in lines[0][1:9]]
    idle = sum(ticks[3:5])
    return CpuTimes(len(lines) - 1, sum(ticks) - idle, sum(ticks))


def read_processes(proc: Path = _PROC) -> Iterator[Process]:
    for name in os.listdir(proc):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
                text = (proc / name / "stat").read_text()
                # The name of the command is in parentheses and may have spaces.
                fields = text.rpartition(")")[2].split()
                yield Process(int(name), int(fields[1]), int(fields[19]), sum(map(int, fields[11:15])))


def read_command(pid: int, proc: Path = _PROC) -> str:
    with suppress(OSError):
        return (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace")
    return ""


class HostLoad:
    """The application's processes are the `roots`, those with the id of the application in their command, such as
    executors, and all processes that these have started."""

    def __init__(
        self, host: str, application: str, roots: Iterable[int], clock: Callable[[], float], proc: Path = _PROC
    ) -> None:
        self._host, self._application, self._roots = host, application, frozenset(roots)
        self._clock, self._proc = clock, proc
        self._executors: dict[tuple[int, int], bool] = {}
        self._before: tuple[CpuTimes, dict[tuple[int, int], int]] | None = None
        self._read_s = -EVERY_S
        self._sample: tuple[HostSample, ...] = ()

    def look(self) -> tuple[HostSample, ...]:
        """The share of its cores in use between the last two readings; empty until there are two."""
        now_s = self._clock()
        if self._before is not None and now_s - self._read_s < EVERY_S:
            return self._sample
        self._read_s = now_s
        cpu, own = read_cpu(self._proc), self._own_ticks()
        if self._before is not None:
            self._sample = (self._compare(*self._before, cpu, own),)
        self._before = (cpu, own)
        return self._sample

    def _compare(
        self,
        before: CpuTimes,
        own_before: dict[tuple[int, int], int],
        cpu: CpuTimes,
        own: dict[tuple[int, int], int],
    ) -> HostSample:
        total = cpu.total - before.total
        if total <= 0:
            return HostSample(self._host, float(cpu.cores))
        used = sum(max(0, ticks - own_before.get(root, 0)) for root, ticks in own.items())
        busy = (cpu.busy - before.busy) / total
        return HostSample(self._host, float(cpu.cores), busy, max(0.0, busy - used / total))

    def _own_ticks(self) -> dict[tuple[int, int], int]:
        """The CPU time of each root with all processes that it started. The system reuses process ids, so the keys also
        have the start time."""
        processes = {process.pid: process for process in read_processes(self._proc)}
        present = {(each.pid, each.began) for each in processes.values()}
        self._executors = {key: is_mine for key, is_mine in self._executors.items() if key in present}
        roots: dict[int, Process | None] = {}

        def root_of(process: Process | None) -> Process | None:
            if process is None or self._is_root(process):
                return process
            if process.pid not in roots:
                roots[process.pid] = None  # reused ids of parents that have ended could form a cycle
                roots[process.pid] = root_of(processes.get(process.parent))
            return roots[process.pid]

        ticks: dict[tuple[int, int], int] = {}
        for process in processes.values():
            if (root := root_of(process)) is not None:
                key = (root.pid, root.began)
                ticks[key] = ticks.get(key, 0) + process.ticks
        return ticks

    def _is_root(self, process: Process) -> bool:
        key = (process.pid, process.began)
        if key not in self._executors:
            command = read_command(process.pid, self._proc)
            self._executors[key] = process.pid in self._roots or self._application in command
        return self._executors[key]
