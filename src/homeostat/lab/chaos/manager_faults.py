"""Faults of the manager and of its surroundings: its clock, the REST API, the log, the sink, and a second manager."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

from homeostat.core.configuration import EXECUTORS_KNOB
from homeostat.core.errors import HomeostatError
from homeostat.lab.chaos.deployment import STATE_PARTITIONS, Deployment
from homeostat.lab.chaos.kinds_of_fault import (
    RESTART_S,
    FaultKind,
    Inject,
    Injection,
    InjectionError,
)
from homeostat.lab.chaos.process_faults import choose
from homeostat.lab.chaos.processes import DRIVER, Family, send
from homeostat.lab.chaos.steering import ENDS, HANGS, RAISES
from homeostat.lab.rest_proxy import Behaviour
from homeostat.lab.wordcount import NAME

SHORTEST_S, LONGEST_S = 3.0, 20.0
HOUR_S = 3600.0
LATE_S = 5.0  # longer than the sensors wait for an answer
FULL_BYTES = 1 << 16  # less than the log needs, more than a file of the ledger
LOCK_WAIT_S = 10.0
ORDER_LIMIT_S = 60.0
REFUSAL_LIMIT_S = 180.0
STATE_KNOB = f"state_partitions.{NAME}"


def manager_faults() -> tuple[FaultKind, ...]:
    return (
        FaultKind("manager-raises", steer_for_a_while(manager=RAISES)),
        FaultKind("manager-hangs", steer_for_a_while(manager=HANGS)),
        FaultKind("manager-ends", end_manager),
        FaultKind("clock-back", steer_for_a_while(clock_s=-HOUR_S)),
        FaultKind("clock-forth", steer_for_a_while(clock_s=HOUR_S)),
        FaultKind("rest-late", misbehave(Behaviour.LATE)),
        FaultKind("rest-garbage", misbehave(Behaviour.GARBAGE)),
        FaultKind("rest-half", misbehave(Behaviour.HALF)),
        FaultKind("rest-error", misbehave(Behaviour.ERROR)),
        FaultKind("rest-silent", misbehave(Behaviour.SILENT)),
        FaultKind("store-locked", lock_store),
        FaultKind("store-removed", remove_store),
        FaultKind("store-truncated", truncate_store),
        FaultKind("store-full", fill_disk, RESTART_S),
        FaultKind("sink-hung", hang_sink),
        FaultKind("second-run", second_run),
        FaultKind("second-manager", second_manager),
        FaultKind("scale-interrupted", interrupt_order(str(EXECUTORS_KNOB), (2, 3)), RESTART_S),
        FaultKind(
            "rescale-interrupted",
            interrupt_order(STATE_KNOB, (STATE_PARTITIONS, STATE_PARTITIONS + 2)),
            RESTART_S,
        ),
    )


def steer_for_a_while(**changes: object) -> Inject:
    def inject(deployment: Deployment, chance: Random) -> Injection:
        seconds = chance.uniform(SHORTEST_S, LONGEST_S)
        try:
            deployment.steer(**changes)
            deployment.hold(seconds)
        finally:
            deployment.steer()
        return Injection(f"for {seconds:.0f} s")

    return inject


def end_manager(deployment: Deployment, chance: Random) -> Injection:
    deployment.steer(manager=ENDS)
    deployment.hold(SHORTEST_S)
    return Injection("once")


def misbehave(behaviour: Behaviour) -> Inject:
    def inject(deployment: Deployment, chance: Random) -> Injection:
        seconds = chance.uniform(SHORTEST_S, LONGEST_S)
        requests = deployment.proxy.requests
        try:
            deployment.steer(store_refuses=True)  # otherwise the REST API is not used
            deployment.proxy.behave(behaviour, LATE_S)
            deployment.hold(seconds)
        finally:
            deployment.proxy.behave(Behaviour.FAITHFUL)
            deployment.steer()
        if deployment.proxy.requests == requests:
            raise InjectionError("no request was sent to Spark's REST API", where="bench chaos")
        return Injection(f"for {seconds:.0f} s, {deployment.proxy.requests - requests} requests")

    return inject


def lock_store(deployment: Deployment, chance: Random) -> Injection:
    seconds = chance.uniform(SHORTEST_S, LONGEST_S)
    try:
        with closing(sqlite3.connect(deployment.log.path, timeout=LOCK_WAIT_S, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            deployment.hold(seconds)
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise InjectionError(f"the log could not be locked: {error}", where="bench chaos") from error
    return Injection(f"for {seconds:.0f} s")


def remove_store(deployment: Deployment, chance: Random) -> Injection:
    """The file alone, as by `rm log.sqlite`, or together with the files that SQLite keeps beside it."""
    store = deployment.log.path
    beside = [store.with_name(store.name + ending) for ending in ("-wal", "-shm")]
    doomed = [store, *beside] if chance.random() < 0.5 else [store]
    for file in doomed:
        file.unlink(missing_ok=True)
    return Injection(f"removed {', '.join(file.name for file in doomed)}")


def truncate_store(deployment: Deployment, chance: Random) -> Injection:
    store = deployment.log.path
    size = store.stat().st_size
    left = chance.choice((0, chance.randrange(max(size, 1)), size // 2))
    with store.open("r+b") as file:
        file.truncate(left)
    return Injection(f"cut from {size} to {left} bytes")


def fill_disk(deployment: Deployment, chance: Random) -> Injection:
    seconds = chance.uniform(SHORTEST_S, LONGEST_S)
    disk = deployment.disk
    try:
        if disk.mounted:
            disk.fill()
        else:
            deployment.steer(file_bytes=FULL_BYTES)
        deployment.hold(seconds)
    finally:
        disk.clear()
        deployment.steer()
    return Injection(f"{disk.how}, for {seconds:.0f} s")


def hang_sink(deployment: Deployment, chance: Random) -> Injection:
    seconds = chance.uniform(SHORTEST_S, LONGEST_S)
    try:
        deployment.hang_file.touch()
        deployment.hold(seconds)
    finally:
        deployment.hang_file.unlink(missing_ok=True)
    return Injection(f"for {seconds:.0f} s")


def second_run(deployment: Deployment, chance: Random) -> Injection:
    """The same command again, on the same directory."""
    return _refused(deployment, deployment.directory)


def second_manager(deployment: Deployment, chance: Random) -> Injection:
    """The same application from a copy of its directory, with the same log: it must not manage the first one's run."""
    copy = deployment.home / "copy" / deployment.directory.name
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for file in deployment.directory.glob("*"):
        if file.is_file():
            shutil.copy(file, copy)
    return _refused(deployment, copy)


def _refused(deployment: Deployment, directory: Path) -> Injection:
    mark = f"{deployment.mark}-second"
    with (deployment.home / "second-output").open("w+") as output:
        process = subprocess.Popen(
            deployment.command(directory),
            cwd=deployment.home,
            env=deployment.environment(mark),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        ended = deployment.wait(lambda: process.poll() is not None, REFUSAL_LIMIT_S)
        send(Family(mark).processes, signal.SIGKILL)
        code = process.wait()
        output.seek(0)
        lines = output.read().splitlines()
    refused = ended and code == HomeostatError.exit_code
    last_line = lines[-1] if lines else ""
    return Injection(f"code {code}: {last_line}", failure="" if refused else f"not refused: {last_line}")


def interrupt_order(knob: str, values: tuple[int, int]) -> Inject:
    """Order one of two values, the one that is not in effect, and kill the driver before the order is carried out."""

    def inject(deployment: Deployment, chance: Random) -> Injection:
        current = current_value(deployment, knob)
        value = values[0] if current != values[0] else values[1]
        actions = len(deployment.log.actions)
        driver = choose(deployment, DRIVER, chance)
        command = [sys.executable, "-m", "homeostat.cli.main", "apply", "set", f"{knob}={value}"]
        process = subprocess.Popen(
            [*command, "--store", str(deployment.log.path)],
            cwd=deployment.home,
            env=deployment.environment(f"{deployment.mark}-order"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        begun = deployment.wait(
            lambda: any(each.ordered for each in deployment.log.actions[actions:]) or process.poll() not in (None, 0),
            ORDER_LIMIT_S,
        )
        under_way = bool(deployment.log.open_actions(actions))
        if begun and process.poll() in (None, 0):
            send([driver], signal.SIGKILL)
        else:  # refused, such as while another action is being judged: nothing is interrupted
            process.kill()
        output = process.communicate()[0].strip()
        if not begun or process.returncode:
            raise InjectionError(f"the command was not accepted: {output}", where="bench chaos")
        when = "before its receipt" if under_way else "after its receipt"
        injection = Injection(f"{knob} from {current} to {value}, driver killed {when}")

        def is_settled() -> bool:
            """Whether the order took effect, or its receipt says that it did not, as after a restart longer than its
            time limit."""
            ordered = {each.id for each in deployment.log.actions[actions:] if each.ordered}
            given_up = bool(ordered & deployment.log.refusals) and current_value(deployment, knob) == current
            return given_up or current_value(deployment, knob) == value

        return replace(injection, holds=is_settled)

    return inject


def current_value(deployment: Deployment, knob: str) -> int:
    return (
        deployment.wanted_executors if knob == str(EXECUTORS_KNOB) else int(deployment.knob(knob) or STATE_PARTITIONS)
    )
