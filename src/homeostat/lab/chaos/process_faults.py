"""Faults of processes: each part of the application is killed, or stopped for some seconds."""

from __future__ import annotations

import signal
from random import Random
from typing import TYPE_CHECKING

from homeostat.lab.chaos.deployment import Deployment
from homeostat.lab.chaos.kinds_of_fault import (
    RESTART_S,
    WHOLE_RESTART_S,
    FaultKind,
    Inject,
    Injection,
    InjectionError,
)
from homeostat.lab.chaos.processes import (
    CLUSTER_KEEPER,
    DRIVER,
    DRIVER_JVM,
    DRIVER_KEEPER,
    EXECUTOR,
    MASTER,
    SUPERVISOR,
    WORKER,
    describe,
    executor_id,
    send,
    tree,
)

if TYPE_CHECKING:
    from psutil import Process

SHORTEST_STOP_S = 3.0


def process_faults() -> tuple[FaultKind, ...]:
    return (
        FaultKind("executor-killed", kill(EXECUTOR), RESTART_S),
        # Spark gives an executor up after 30 s without a heartbeat: both cases come up.
        FaultKind("executor-stopped", stop(EXECUTOR, 40.0), RESTART_S),
        FaultKind("worker-killed", kill(WORKER), RESTART_S),
        FaultKind("worker-stopped", stop(WORKER, 20.0, whole_tree=False)),
        FaultKind("master-killed", kill(MASTER), WHOLE_RESTART_S),
        FaultKind("master-stopped", stop(MASTER, 20.0)),
        FaultKind("driver-killed", kill(DRIVER), RESTART_S),
        FaultKind("driver-jvm-killed", kill(DRIVER_JVM), RESTART_S),
        FaultKind("driver-stopped", stop(DRIVER, 20.0), RESTART_S),
        FaultKind("supervisor-killed", kill(SUPERVISOR), WHOLE_RESTART_S),
        FaultKind("supervisor-stopped", stop(SUPERVISOR, 15.0, whole_tree=False)),
        FaultKind("cluster-keeper-killed", kill(CLUSTER_KEEPER), WHOLE_RESTART_S),
        FaultKind("driver-keeper-killed", kill(DRIVER_KEEPER), RESTART_S),
    )


def kill(role: str) -> Inject:
    """Kill one process of the role without warning. It must not come back; another one takes its place."""

    def inject(deployment: Deployment, chance: Random) -> Injection:
        process = choose(deployment, role, chance)
        who, executor = describe(process), executor_id(process)
        send([process], signal.SIGKILL)

        def is_gone() -> bool:
            return all(each.pid != process.pid for each in deployment.family().of(role))

        return Injection(f"killed {who}", is_gone, executor=executor)

    return inject


def stop(role: str, longest_s: float, *, whole_tree: bool = True) -> Inject:
    """Stop one process of the role for some seconds, by default together with all that it started."""

    def inject(deployment: Deployment, chance: Random) -> Injection:
        process = choose(deployment, role, chance)
        who, executor = describe(process), executor_id(process)
        seconds = chance.uniform(SHORTEST_STOP_S, longest_s)
        stopped = tree(process) if whole_tree else [process]
        try:
            send(stopped, signal.SIGSTOP)
            deployment.hold(seconds)
        finally:
            send(stopped, signal.SIGCONT)
        return Injection(f"stopped {who} for {seconds:.0f} s", executor=executor)

    return inject


def choose(deployment: Deployment, role: str, chance: Random) -> Process:
    candidates = deployment.family().of(role)
    if not candidates:
        raise InjectionError(f"no {role} is running", where="bench chaos")
    return chance.choice(candidates)
