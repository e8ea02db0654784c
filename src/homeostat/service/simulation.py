"""Run a scenario under a policy on a simulated engine, and judge the run by what really happened in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.core.configuration import EXECUTORS, PARALLELISM, Configuration, Knob, Value
from homeostat.core.cycle import Trace
from homeostat.core.findings import ADJUST_SKEW, REPLACE, REVERT, Record
from homeostat.core.policy import Policy
from homeostat.core.state import Mode, State
from homeostat.service.manager import Manager
from homeostat.sim.dataflow import Dataflow
from homeostat.sim.microbatch import Microbatch
from homeostat.sim.spec import DataflowSpec, Scenario
from homeostat.sim.truth import TruthSample
from homeostat.sim.workload import Workload
from homeostat.store.memory import MemoryStore
from homeostat.store.protocol import Store

SimulatedEngine = Dataflow | Microbatch
_HEALTHY_STRETCH = 5


@dataclass(frozen=True, slots=True)
class Taken:
    """An action that took effect."""

    id: str
    time_s: float
    applied_s: float
    action: str
    because: str
    parallelism: Mapping[str, Value]
    needless: bool = False


@dataclass(frozen=True, slots=True)
class RunResult:
    scenario: str
    policy: str
    seed: int
    duration_s: float
    trajectory: tuple[Taken, ...]
    final_parallelism: Mapping[str, Value]
    truth: tuple[TruthSample, ...] = field(repr=False)
    alerts: tuple[Record, ...] = ()
    cost_knobs: Mapping[Knob, float] = field(default_factory=dict, repr=False)
    oracle_instance_seconds: float = 0.0

    @property
    def healthy_since_s(self) -> float | None:
        """When the application became healthy for good; None if it was not healthy at the end."""
        last = self.truth[-_HEALTHY_STRETCH:]
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
                    "time_s": round(taken.time_s, 3),
                    "action": taken.action,
                    "because": taken.because,
                    "parallelism": dict(taken.parallelism),
                }
                for taken in self.trajectory
            ],
            "slo_violation_s": round(sum(s.span_s for s in self.truth if not s.healthy), 3),
            "instance_seconds": round(sum(s.span_s * self._cost(s.values) for s in self.truth), 3),
            "oracle_instance_seconds": round(self.oracle_instance_seconds, 3),
            "needless_actions": sum(taken.needless for taken in self.trajectory),
        }

    def _cost(self, values: Mapping[Knob, Value]) -> float:
        return sum(cost * values.get(knob, 0) for knob, cost in self.cost_knobs.items())


def parallelism_json(configuration: Configuration) -> dict[str, Value]:
    """Instances per component, and the executors, by the names a reader knows."""
    named: dict[str, Value] = {}
    for knob, value in sorted(configuration.values.items()):
        if knob.kind == PARALLELISM:
            named[knob.scope] = value
        elif knob.kind == EXECUTORS:
            named[EXECUTORS] = value
    return named


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
    on_step: Callable[[Trace, State, SimulatedEngine], None] | None = None,
) -> RunResult:
    engine = build_engine(scenario, seed)
    log = store if store is not None else MemoryStore()
    run = run or f"{scenario.name}/{policy.name}/{scenario.seed if seed is None else seed}"
    referee = _Referee(scenario, engine)

    def after_step(trace: Trace, state: State) -> None:
        referee.watch(trace, state)
        if on_step is not None:
            on_step(trace, state, engine)

    manager = Manager(engine, policy, log, run, objective=scenario.objective, mode=mode, on_step=after_step)
    manager.start()
    step_s = interval_s(scenario)
    while engine.now_s < scenario.duration_s:
        manager.advance(min(engine.now_s + step_s, scenario.duration_s))
    described = engine.describe()
    engine.close()
    cost_knobs = {knob: spec.cost for knob, spec in described.capabilities.knobs.items() if spec.cost}
    return RunResult(
        scenario=scenario.name,
        policy=policy.name,
        seed=scenario.seed if seed is None else seed,
        duration_s=scenario.duration_s,
        trajectory=tuple(referee.trajectory),
        final_parallelism=parallelism_json(described.configuration),
        truth=tuple(engine.truth),
        alerts=tuple(referee.alerts),
        cost_knobs=cost_knobs,
        oracle_instance_seconds=_oracle_instance_seconds(scenario, cost_knobs),
    )


def _oracle_instance_seconds(scenario: Scenario, cost_knobs: Mapping[Knob, float]) -> float:
    """The smallest configuration that takes the noise-free load at each moment, whatever a policy made of the run."""
    engine, workload = build_engine(scenario), Workload(scenario.workload, scenario.seed)
    step_s = interval_s(scenario)
    total = 0.0
    for number in range(math.ceil(scenario.duration_s / step_s)):
        start_s = number * step_s
        span_s = min(step_s, scenario.duration_s - start_s)
        needed = engine.needed(workload.mean_per_s(start_s + span_s / 2))
        total += span_s * sum(cost * needed.get(knob, 0) for knob, cost in cost_knobs.items())
    return total


class _Referee:
    """Notes every action when it is decided, with what was true at that moment, and when it took effect."""

    def __init__(self, scenario: Scenario, engine: SimulatedEngine) -> None:
        self._scenario, self._engine = scenario, engine
        self._decided: dict[str, tuple[Record, bool]] = {}
        self.trajectory: list[Taken] = []
        self.alerts: list[Record] = []

    def watch(self, trace: Trace, state: State) -> None:
        for record in trace.records:
            if record.kind == "action":
                self._decided[record.id] = (record, self._needless(record))
            elif record.kind == "alert":
                self.alerts.append(record)
            elif record.kind == "receipt" and record.body.get("applied"):
                action, needless = self._decided[str(record.body["action"])]
                body: Mapping[str, Any] = action.body
                taken = Taken(
                    action.id,
                    action.at_s,
                    record.at_s,
                    action.text,
                    f"{body['cause']} at {action.component}" if action.component else str(body["cause"]),
                    parallelism_json(state.observed),
                    needless,
                )
                self.trajectory.append(taken)

    def _needless(self, record: Record) -> bool:
        """By what was true, not by what was measured, would the run have been as well off without it?"""
        body: Mapping[str, Any] = record.body
        if body["kind"] == REVERT or not self._engine.truth:
            return False
        now_s, truth = self._engine.now_s, self._engine.truth[-1]
        if body["kind"] == REPLACE:
            return not set(body["retire"]) & self._engine.faulty_workers()
        faults = [f for f in self._scenario.faults if f.at_s <= now_s < f.until_s]
        if body["kind"] == ADJUST_SKEW:
            return not any(f.kind in ("hot-key", "hash-imbalance") for f in faults) and not self._uneven(record)
        values = {Knob.parse(name): value for name, value in body["patch"].items()}
        changed = [(truth.values.get(knob, value), value, truth.needed.get(knob, 0)) for knob, value in values.items()]
        shrinking = any(wanted < present for present, wanted, _ in changed)
        if shrinking:
            return any(wanted < needed for present, wanted, needed in changed if wanted < present)
        recent = self._engine.truth[-3:]
        enough = all(present >= needed for present, _, needed in changed)
        return enough and all(sample.healthy for sample in recent) and not faults

    def _uneven(self, record: Record) -> bool:
        spec = next((c for c in self._scenario.components if c.name == record.component), None)
        return spec is not None and spec.keyed and spec.zipf > 0
