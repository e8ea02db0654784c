"""Measures the cost of the loop itself: one step at several sizes, and a whole simulated hour."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log
from statistics import median
from typing import Any

import numpy as np

from homeostat.core.cycle import step
from homeostat.core.events import Apply, Event
from homeostat.core.loop_state import WINDOW_KEPT, State
from homeostat.core.policy_definition import Policy
from homeostat.lab.bench import planning_time
from homeostat.policies import registry
from homeostat.sim.dataflow.engine import Dataflow
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, FaultSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import simulate

SIZES = (100, 1_000, 10_000)
STEPS = 300
REPEATS = 3
HOUR_S = 3600.0
POLICY = "provisioning"

_TICK_S = 10.0
_RATE_PER_S = 100.0
_LOAD = 0.7


def scenario(instances: int, duration_s: float) -> Scenario:
    """A word count of this size at 70 % of its capacity, with noise, and with one slow instance after half an hour."""
    sources = max(1, instances // 100)
    splitters = (instances - sources) // 2
    counters = instances - sources - splitters
    load_per_s = _LOAD * splitters * _RATE_PER_S
    components = (
        ComponentSpec("lines", "source", (), sources, rate_per_s=2 * load_per_s / sources, minimum=sources),
        ComponentSpec(
            "split", "operator", ("lines",), splitters, _RATE_PER_S, minimum=splitters, maximum=2 * instances
        ),
        ComponentSpec("count", "operator", ("split",), counters, _RATE_PER_S, minimum=counters, maximum=2 * instances),
    )
    return Scenario(
        name=f"bench-{instances}",
        title=f"a word count on {instances} instances",
        engine=DataflowSpec(tick_s=_TICK_S),
        duration_s=duration_s,
        components=components,
        workload=WorkloadSpec("constant", load_per_s, noise=Noise(0.05, 0.5)),
        service_noise=Noise(0.02, 0.5),
        faults=(FaultSpec("slow-instance", at_s=1800.0, component="split"),),
    )


def measure(
    *,
    sizes: Sequence[int] = SIZES,
    steps: int = STEPS,
    repeats: int = REPEATS,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The numbers of `homeostat bench control`."""
    p50: dict[str, float] = {}
    p99: dict[str, float] = {}
    for size in sizes:
        tell(f"{steps} steps at {size:,} instances")
        times_ms = step_times_ms(size, steps)
        p50[str(size)] = float(np.percentile(times_ms, 50))
        p99[str(size)] = float(np.percentile(times_ms, 99))
    hours_s = []
    for number in range(repeats):
        tell(f"one simulated hour at {sizes[-1]:,} instances ({number + 1} of {repeats})")
        hours_s.append(hour_s(sizes[-1]))
    tell(f"a plan for {planning_time.COMPONENTS} components with {planning_time.INSTANCES:,} instances")
    plan_s = planning_time.seconds(repeats)
    return {
        "policy": POLICY,
        "python": platform.python_version(),
        "steps": steps,
        "step_ms_p50": p50,
        "step_ms_p99": p99,
        "growth_exponent": growth_exponent(p50),
        "sim_hour_instances": sizes[-1],
        "sim_hour_s": median(hours_s),
        "sim_hour_s_range": [min(hours_s), max(hours_s)],
        "sim_hour_repeats": repeats,
        "plan_instances": planning_time.INSTANCES,
        "plan_components": planning_time.COMPONENTS,
        "plan_s": plan_s,
        "plan_accepted": max(plan_s.values()) <= planning_time.MOST_S,
    }


def step_times_ms(instances: int, steps: int) -> list[float]:
    """Milliseconds of each step, once the window of observations is full."""
    engine = Dataflow(scenario(instances, HOUR_S))
    policy = _policy()
    state = State(mode="regulate")
    events: Sequence[Event] = [engine.describe()]
    times_ms = []
    for _ in range(WINDOW_KEPT + steps):
        began_s = time.perf_counter()
        state, commands, _trace = step(policy, state, events, engine.now_s)
        times_ms.append((time.perf_counter() - began_s) * 1000)
        for command in commands:
            if isinstance(command, Apply):
                engine.apply(command)
        events = engine.wait(engine.now_s + _TICK_S)
    return times_ms[WINDOW_KEPT:]


def hour_s(instances: int) -> float:
    """Seconds for a simulated hour: engine, loop and log together."""
    began_s = time.perf_counter()
    simulate(scenario(instances, HOUR_S), _policy())
    return time.perf_counter() - began_s


def growth_exponent(times_ms: dict[str, float]) -> float:
    """The steepest growth between two neighbouring sizes: 1 is linear, 2 is quadratic."""
    points = [(log(int(size)), log(time_ms)) for size, time_ms in times_ms.items()]
    return max((y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in pairwise(points))


def _policy() -> Policy:
    return registry.build(POLICY, {})
