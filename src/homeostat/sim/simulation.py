"""Run a scenario under a policy on a simulated engine, and judge the run by what really happened in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from homeostat.core.actions import ADJUST_SKEW, GATHER, REPLACE, REVERT
from homeostat.core.causes import RISE_AHEAD
from homeostat.core.configuration import EXECUTORS, PARALLELISM, Configuration, Knob, Value
from homeostat.core.cycle import Trace
from homeostat.core.guards import APPLICATION
from homeostat.core.loop_state import Mode, State
from homeostat.core.policy import Policy
from homeostat.core.records import Record
from homeostat.core.traffic import Traffic
from homeostat.runtime.diary import Diary
from homeostat.runtime.manager import Manager
from homeostat.sim.dataflow.engine import Dataflow
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario.spec import DataflowSpec, FaultSpec, Scenario
from homeostat.sim.truth import TruthSample
from homeostat.sim.workload import Workload
from homeostat.store.in_memory import MemoryStore
from homeostat.store.protocol import Store

SimulatedEngine = Dataflow | Microbatch
_HEALTHY_STRETCH = 5
_JUST_BEFORE = 3
_UPSWING_SIGMAS = 2.5
_AHEAD_S = 1800.0
_AHEAD_EVERY_S = 60.0
_CAPACITY_FAULTS = ("slow-instance", "slow-host", "crash", "hot-key", "hash-imbalance", "stuck-sink")


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
    advice: tuple[Record, ...] = ()
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
    traffic: Traffic | None = None,
    on_step: Callable[[Trace, State, SimulatedEngine], None] | None = None,
) -> RunResult:
    engine = build_engine(scenario, seed)
    log = store if store is not None else MemoryStore()
    run = run or f"{scenario.name}/{policy.name}/{scenario.seed if seed is None else seed}"
    referee = _Referee(scenario, engine)
    diary = Diary(store, run, policy) if store is not None else None

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
        advice=tuple(referee.advice),
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


def because(record: Record) -> str:
    """The cause that an action or a piece of advice goes back to, and where."""
    cause = str(record.body["cause"])
    return f"{cause} at {record.component}" if record.component else cause


class _Referee:
    """Notes every action when it is decided, with what was true at that moment, and when it took effect."""

    def __init__(self, scenario: Scenario, engine: SimulatedEngine) -> None:
        self._scenario, self._engine = scenario, engine
        self._decided: dict[str, tuple[Record, bool]] = {}
        self._judged: dict[str, str] = {}
        self.trajectory: list[Taken] = []
        self.alerts: list[Record] = []
        self.advice: list[Record] = []

    def watch(self, trace: Trace, state: State) -> None:
        for record in trace.records:
            if record.kind == "action":
                self._decided[record.id] = (record, self._needless(record))
            elif record.kind == "alert":
                self.alerts.append(record)
            elif record.kind == "advice":
                self.advice.append(record)
            elif record.kind == "outcome":
                self._judged[record.id] = str(record.body["action"])
            elif record.kind == "receipt" and record.body.get("applied"):
                action, needless = self._decided[str(record.body["action"])]
                taken = Taken(
                    action.id,
                    action.at_s,
                    record.at_s,
                    action.text,
                    because(action),
                    parallelism_json(state.observed),
                    needless,
                )
                self.trajectory.append(taken)
                if action.body["kind"] == REVERT:
                    self._taken_back(action)

    def _taken_back(self, revert: Record) -> None:
        """A growth that did not last was of no use, whatever spoke for it when it was decided."""
        ids = {self._judged[id] for id in revert.because if id in self._judged}
        grown = {id for id in ids if id in self._decided and _grows(self._decided[id][0])}
        self.trajectory = [replace(t, needless=t.needless or t.id in grown) for t in self.trajectory]

    def _needless(self, record: Record) -> bool:
        """By what was true, not by what was measured, would the run have been as well off without it?"""
        body: Mapping[str, Any] = record.body
        if body["kind"] == REVERT or not self._engine.truth:
            return False
        now_s, truth = self._engine.now_s, self._engine.truth[-1]
        if body["kind"] == REPLACE:
            return not set(body["retire"]) & self._engine.faulty_workers()
        faults = [f for f in self._scenario.faults if f.at_s <= now_s < f.until_s]
        if body["kind"] == GATHER:
            return any(f.kind == "hot-key" for f in faults)
        if body["kind"] == ADJUST_SKEW:
            return not any(f.kind in ("hot-key", "hash-imbalance") for f in faults) and not self._uneven(record)
        wanted = {Knob.parse(name): value for name, value in body["patch"].items()}
        shrunk = [knob for knob, value in wanted.items() if value < truth.values.get(knob, value)]
        if shrunk:
            return any(wanted[knob] < truth.needed.get(knob, 0) for knob in shrunk)
        grown = [knob for knob, value in wanted.items() if value > truth.values.get(knob, value)]
        needed = self._needed_ahead() if body["cause"] == RISE_AHEAD else truth.needed
        short = any(self._short(knob, needed) for knob in grown)
        return not short and not any(self._weakens(f, grown) for f in faults)

    def _needed_ahead(self) -> dict[Knob, int]:
        """What the load of the next half hour will need, at its highest."""
        workload, now_s = Workload(self._scenario.workload, self._scenario.seed), self._engine.now_s
        every = [now_s + number * _AHEAD_EVERY_S for number in range(int(_AHEAD_S / _AHEAD_EVERY_S) + 1)]
        return self._engine.needed(max(workload.mean_per_s(at_s) for at_s in every))

    def _short(self, knob: Knob, needed: Mapping[Knob, int]) -> bool:
        """Whether there was too little of it for the load, or for what noise makes of the load now and then.

        Where nobody knows how much is needed (partitions), it was too little if the run was not healthy just before.
        """
        truth = self._engine.truth[-1]
        if knob not in needed:
            return not all(sample.healthy for sample in self._engine.truth[-_JUST_BEFORE:])
        upswing = math.exp(_UPSWING_SIGMAS * self._scenario.workload.noise.sigma)
        return truth.values.get(knob, 0) < needed[knob] * upswing

    def _weakens(self, fault: FaultSpec, grown: Sequence[Knob]) -> bool:
        """Whether the fault takes capacity from something that was to grow."""
        if fault.kind not in _CAPACITY_FAULTS:
            return False
        if fault.kind == "slow-instance" and not self._engine.faulty_workers():
            return False  # healed: its worker was replaced
        scopes = {knob.scope for knob in grown}
        if APPLICATION in scopes or fault.component in scopes:
            return True
        if fault.kind == "stuck-sink" and not fault.component:
            inputs = {name for spec in self._scenario.components for name in spec.inputs}
            return bool(scopes - inputs)
        return fault.component in ("", APPLICATION)

    def _uneven(self, record: Record) -> bool:
        spec = next((c for c in self._scenario.components if c.name == record.component), None)
        return spec is not None and spec.keyed and spec.zipf > 0


def _grows(action: Record) -> bool:
    body: Mapping[str, Any] = action.body
    return any(value > body["from"].get(knob, value) for knob, value in body["patch"].items())
