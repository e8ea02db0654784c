"""The load of a host, from files in the format of /proc."""

from __future__ import annotations

import os
import time
from pathlib import Path

from homeostat.core.observation import HostSample
from homeostat.spark.sense.host_load import EVERY_S, HostLoad, read_cpu, read_processes

DRIVER, JVM, KEEPER, EXECUTOR, WORKER, OTHER = 10, 11, 20, 21, 22, 30


class Machine:
    """Two cores, with a driver, an executor with its Python worker, and a process of somebody else."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.parents = {DRIVER: 1, JVM: DRIVER, KEEPER: 1, EXECUTOR: KEEPER, WORKER: EXECUTOR, OTHER: 1}
        self.ticks = dict.fromkeys(self.parents, 100)
        self.idle = 1000
        self.write()

    def write(self) -> None:
        busy = sum(self.ticks.values())
        (self.proc / "stat").write_text(f"cpu  {busy} 0 0 {self.idle} 0 0 0 0 0 0\ncpu0 1 1\ncpu1 1 1\nintr 7\n")
        for pid, parent in self.parents.items():
            (self.proc / str(pid)).mkdir(exist_ok=True)
            numbers = f"S {parent} 0 0 0 -1 0 0 0 0 0 {self.ticks[pid]} 0 0 0 20 0 1 0 {pid * 5} 0 0"
            (self.proc / str(pid) / "stat").write_text(f"{pid} (a ) b) {numbers}")
            command = "java --app-id app-1" if pid == EXECUTOR else "python"
            (self.proc / str(pid) / "cmdline").write_bytes(command.replace(" ", "\0").encode())

    def pass_time(self, **ticks: int) -> None:
        for name, count in ticks.items():
            self.ticks[globals()[name.upper()]] += count
        self.idle += 200 - sum(ticks.values())
        self.write()


def test_the_cpu_of_the_applications_processes_is_not_that_of_others(tmp_path: Path) -> None:
    machine, now_s = Machine(tmp_path), [0.0]
    load = HostLoad("127.0.0.1", "app-1", [DRIVER], lambda: now_s[0], tmp_path)
    assert load.look() == ()
    machine.pass_time(jvm=20, worker=40, executor=20, other=60, keeper=10)
    now_s[0] = EVERY_S
    assert load.look() == (HostSample("127.0.0.1", 2.0, 0.75, 0.35),)


def test_it_looks_only_now_and_then(tmp_path: Path) -> None:
    machine, now_s = Machine(tmp_path), [0.0]
    load = HostLoad("h", "app-1", [DRIVER], lambda: now_s[0], tmp_path)
    load.look()
    machine.pass_time(other=100)
    now_s[0] = EVERY_S - 1
    assert load.look() == ()
    now_s[0] = EVERY_S
    (sample,) = load.look()
    assert (sample.busy, sample.others) == (0.5, 0.5)


def test_an_executor_that_began_meanwhile_counts_from_its_beginning(tmp_path: Path) -> None:
    machine, now_s = Machine(tmp_path), [0.0]
    load = HostLoad("h", "app-2", [DRIVER], lambda: now_s[0], tmp_path)
    load.look()
    (tmp_path / "40").mkdir()
    machine.parents[40], machine.ticks[40] = KEEPER, 50
    machine.write()
    (tmp_path / "40" / "cmdline").write_bytes(b"java\0--app-id\0app-2")
    machine.idle += 50
    machine.write()
    (tmp_path / "40" / "cmdline").write_bytes(b"java\0--app-id\0app-2")
    now_s[0] = EVERY_S
    (sample,) = load.look()
    assert (sample.busy, sample.others) == (0.5, 0.0)


def test_this_machine_is_read_as_it_is() -> None:
    cpu = read_cpu()
    assert cpu.cores == os.cpu_count()
    assert 0 < cpu.busy < cpu.total
    (mine,) = [process for process in read_processes() if process.pid == os.getpid()]
    assert mine.parent == os.getppid()
    assert mine.ticks <= (time.process_time() + 60 * 60) * os.sysconf("SC_CLK_TCK")
