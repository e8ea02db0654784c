"""The processes of an application that the bench started: the role of each, and which are left at the end."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING

from homeostat.lab.faults import EXECUTOR_CLASS, option

if TYPE_CHECKING:
    from psutil import Process

# Every process inherits the environment of the one that started it, so this variable marks the whole family.
MARK_VARIABLE = "CHAOS_RUN"

SUPERVISOR, DRIVER, DRIVER_JVM = "supervisor", "driver", "driver-jvm"
MASTER, WORKER, EXECUTOR = "master", "worker", "executor"
CLUSTER_KEEPER, DRIVER_KEEPER, OTHER = "cluster-keeper", "driver-keeper", "other"
_KEEPER = "keeper"
_JAVA_ROLES = {
    "org.apache.spark.deploy.master.Master": MASTER,
    "org.apache.spark.deploy.worker.Worker": WORKER,
    "org.apache.spark.deploy.SparkSubmit": DRIVER_JVM,
    EXECUTOR_CLASS: EXECUTOR,
}
_LAUNCHER = "org.apache.spark.launcher.Main"  # starts the others, and has their names among its arguments


def role_of(command: Sequence[str]) -> str:
    """The role of a process with this command line."""
    if not command:
        return OTHER
    if PurePath(command[0]).name == "java":
        roles = [role for name, role in _JAVA_ROLES.items() if name in command]
        return roles[0] if roles and _LAUNCHER not in command else OTHER
    if any(argument.endswith("process_keeper.py") for argument in command):
        return _KEEPER
    if "homeostat.runtime.driver" in command:
        return DRIVER
    if "homeostat.cli.main" in command and "run" in command:
        return SUPERVISOR
    return OTHER


class Family:
    """A snapshot of all living processes that carry the mark, by role."""

    def __init__(self, mark: str) -> None:
        self.processes: list[Process] = list(_marked(mark))
        self._roles: dict[str, list[Process]] = {}
        keepers: list[Process] = []
        for process in self.processes:
            role = role_of(_command(process))
            if role == _KEEPER:
                keepers.append(process)
            else:
                self._roles.setdefault(role, []).append(process)
        for keeper in keepers:
            below = {each.pid for each in tree(keeper)}
            role = DRIVER_KEEPER if any(driver.pid in below for driver in self.of(DRIVER)) else CLUSTER_KEEPER
            self._roles.setdefault(role, []).append(keeper)

    def of(self, role: str) -> list[Process]:
        """The processes with this role, in the order in which they started."""
        return sorted(self._roles.get(role, []), key=lambda process: (_created_s(process), process.pid))


def tree(process: Process) -> list[Process]:
    """The process and all of its descendants."""
    import psutil

    with suppress(psutil.Error):
        return [process, *process.children(recursive=True)]
    return []


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    import psutil

    for process in processes:
        with suppress(psutil.Error):  # it has ended; a new process with the same id is spared
            process.send_signal(number)


def describe(process: Process) -> str:
    command = _command(process)
    role = role_of(command)
    return f"{process.pid} {role if role != OTHER else ' '.join(command)[:100]}"


def executor_id(process: Process) -> str:
    """Spark's id of an executor; empty for other processes."""
    command = _command(process)
    return option(command, "--executor-id") if role_of(command) == EXECUTOR else ""


def _marked(mark: str) -> Iterable[Process]:
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK_VARIABLE) == mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _command(process: Process) -> list[str]:
    import psutil

    with suppress(psutil.Error):
        return [str(part) for part in process.cmdline()]
    return []


def _created_s(process: Process) -> float:
    import psutil

    with suppress(psutil.Error):
        return float(process.create_time())
    return 0.0
