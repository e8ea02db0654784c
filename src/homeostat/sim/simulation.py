"""Runs a scenario under a policy on a simulated engine, and summarises what really happened."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.core.configuration import Knob, Value
from homeostat.core.cycle import Trace
from homeostat.core.loop_state import Mode, State
from homeostat.core.policy_definition import Policy
from homeostat.core.records import Record
from homeostat.core.traffic import Traffic
from homeostat.runtime.diary import Diary
from homeostat.runtime.manager import Manager
from homeostat.sim.dataflow.engine import Dataflow
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.referee import AppliedAction, Referee, parallelism_json
from homeostat.sim.scenario.spec import DataflowSpec, Scenario
from homeostat.sim.truth import TruthSample
from homeostat.sim.workload import Workload
from homeostat.store.in_memory import MemoryStore
from homeostat.store.protocol import Store

SimulatedEngine = Dataflow | Microbatch
# A run ends healthy if this many of its last ticks or batches were all healthy. One alone may be luck. Chosen by hand.
HEALTHY_STRETCH = 5
# Seconds of real time between two writes of the present state of a simulated run, for viewers. A choice.
PRESENT_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class RunResult:
    scenario: str
    policy: str
    seed: int
    duration_s: float
    trajectory: tuple[AppliedAction, ...]
    final_parallelism: Mapping[str, Value]
    truth: tuple[TruthSample, ...] = field(repr=False)
    alerts: tuple[Record, ...] = ()
    advice: tuple[Record, ...] = ()
    cost_knobs: Mapping[Knob, float] = field(default_factory=dict, repr=False)
    oracle_instance_seconds: float = 0.0

    @property
    def healthy_since_s(self) -> float | None:
        """The time from which on the application was healthy until the end; None if it was not healthy at the end."""
        last = self.truth[-HEALTHY_STRETCH:]
        if not last or not all(sample.healthy for sample in last):
            return None
        return max((sample.at_s for sample in self.truth if not sample.healthy), default=0.0)

    def as_json(self) -> dict[str, Any]:
        time_s = self.healthy_since_s
        return {
            "scenario": self.scenario,
            "policy": self.policy,
            "seed": self.seed,
            "converged": time_s is not None,
            "steps": len(self.trajectory),
            "time_to_healthy_s": None if time_s is None else round(time_s, 3),
            "final_parallelism": dict(self.final_parallelism),
            "trajectory": [
                {
                    "time_s": round(applied.time_s, 3),
                    "action": applied.action,
                    "because": applied.because,
                    "parallelism": dict(applied.parallelism),
                }
                for applied in self.trajectory
            ],
            "slo_violation_s": round(sum(s.span_s for s in self.truth if not s.healthy), 3),
            "instance_seconds": round(sum(s.span_s * self._cost(s.values) for s in self.truth), 3),
            "oracle_instance_seconds": round(self.oracle_instance_seconds, 3),
            "needless_actions": sum(applied.needless for applied in self.trajectory),
        }

    def _cost(self, values: Mapping[Knob, Value]) -> float:
        return sum(cost * values.get(knob, 0) for knob, cost in self.cost_knobs.items())


def build_engine(scenario: Scenario, seed: int | None = None) -> SimulatedEngine:
    return (Dataflow if isinstance(scenario.engine, DataflowSpec) else Microbatch)(scenario, seed)


def interval_s(scenario: Scenario) -> float:
    engine = scenario.engine
    return engine.tick_s if isinstance(engine, DataflowSpec) else max(engine.trigger_s, 1.0)


def simulate(
    scenario: Scenario,
    policy: Policy,
    *,
    seed: int | None = None,
    store: Store | None = None,
    run: str = "",
    mode: Mode = "regulate",
    traffic: Traffic | None = None,
    on_step: Callable[[Trace, State, SimulatedEngine], None] | None = None,
) -> RunResult:
    engine = build_engine(scenario, seed)
    log = store if store is not None else MemoryStore()
    run = run or f"{scenario.name}/{policy.name}/{scenario.seed if seed is None else seed}"
    referee = Referee(scenario, engine)
    diary = Diary(store, run, policy, pause_s=PRESENT_PAUSE_S) if store is not None else None

    def after_step(trace: Trace, state: State) -> None:
        referee.watch(trace, state)
        if diary is not None:
            diary.note(trace, state)
        if on_step is not None:
            on_step(trace, state, engine)

    manager = Manager(
        engine, policy, log, run, objective=scenario.objective, mode=mode, traffic=traffic, on_step=after_step
    )
    manager.start()
    step_s = interval_s(scenario)
    while engine.now_s < scenario.duration_s:
        manager.advance(engine.next_event_s(min(engine.now_s + step_s, scenario.duration_s)))
    if diary is not None:
        diary.close()
    description = engine.describe()
    engine.close()
    cost_knobs = {knob: spec.cost for knob, spec in description.capabilities.knobs.items() if spec.cost}
    return RunResult(
        scenario=scenario.name,
        policy=policy.name,
        seed=scenario.seed if seed is None else seed,
        duration_s=scenario.duration_s,
        trajectory=tuple(referee.trajectory),
        final_parallelism=parallelism_json(description.configuration),
        truth=tuple(engine.truth),
        alerts=tuple(referee.alerts),
        advice=tuple(referee.advice),
        cost_knobs=cost_knobs,
        oracle_instance_seconds=_oracle_instance_seconds(scenario, cost_knobs),
    )


def _oracle_instance_seconds(scenario: Scenario, cost_knobs: Mapping[Knob, float]) -> float:
    """The cost of the smallest configuration that can process the noise-free load at each moment.

    If none can, this is the cost of the smallest one that does nearly as well as any.
    """
    engine, workload = build_engine(scenario), Workload(scenario.workload, scenario.seed)
    step_s = interval_s(scenario)
    total = 0.0
    for number in range(math.ceil(scenario.duration_s / step_s)):
        start_s = number * step_s
        span_s = min(step_s, scenario.duration_s - start_s)
        middle_s = start_s + span_s / 2
        needed_counts = engine.needed_parallelism(workload.mean_per_s(middle_s), middle_s)
        total += span_s * sum(cost * needed_counts.get(knob, 0) for knob, cost in cost_knobs.items())
    return total
