"""Judges the actions of a run by what really happened in the simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from homeostat.core.actions import ADJUST_SKEW, GATHER, REPLACE, REVERT
from homeostat.core.causes import RISE_AHEAD
from homeostat.core.change_parts import PartContent
from homeostat.core.configuration import EXECUTORS, PARALLELISM, Configuration, Knob, Value
from homeostat.core.cycle import Trace
from homeostat.core.guards import APPLICATION
from homeostat.core.loop_state import State
from homeostat.core.records import (
    ActionContent,
    AdviceContent,
    AlertContent,
    ChangeContent,
    OutcomeContent,
    ReceiptContent,
    Record,
)
from homeostat.sim.scenario.spec import FaultSpec, Scenario
from homeostat.sim.truth import TruthSample
from homeostat.sim.workload import Workload

# More partitions are justified if any of this many last ticks or batches was not healthy. Chosen by hand.
JUST_BEFORE = 3
# Room for the noise of the load, which stays below this many standard deviations 99.4 % of the time.
UPSWING_SIGMAS = 2.5
# An action ahead of a rise is justified if the load rises within this time, the default horizon of a plan.
AHEAD_S = 1800.0
# How closely that time is searched for the highest load. Finer steps find nothing new in the shipped scenarios.
AHEAD_EVERY_S = 60.0
CAPACITY_FAULTS = ("slow-instance", "slow-host", "crash", "hot-key", "hash-imbalance", "stuck-sink")


class JudgedEngine(Protocol):
    """The parts of a simulated engine that show what really happened."""

    truth: list[TruthSample]

    @property
    def now_s(self) -> float: ...

    def needed_parallelism(self, load_per_s: float, at_s: float | None = None) -> dict[Knob, int]: ...

    def faulty_workers(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class AppliedAction:
    """An action that took effect."""

    id: str
    time_s: float
    applied_s: float
    action: str
    because: str
    parallelism: Mapping[str, Value]
    needless: bool = False


def parallelism_json(configuration: Configuration) -> dict[str, Value]:
    """Instances per component, and the executors, under their names in reports."""
    instances: dict[str, Value] = {}
    for knob, value in sorted(configuration.values.items()):
        if knob.kind == PARALLELISM:
            instances[knob.scope] = value
        elif knob.kind == EXECUTORS:
            instances[EXECUTORS] = value
    return instances


def because(record: Record) -> str:
    """The cause of an action, a piece of advice or an alert, and its component."""
    content = record.content
    cause = content.cause if isinstance(content, ChangeContent | AlertContent) else ""
    return f"{cause} at {record.component}" if record.component else cause


class _Decided(NamedTuple):
    record: Record
    content: ActionContent
    needless: bool


class Referee:
    """Records each action with the facts when it was decided, and the time when it took effect."""

    def __init__(self, scenario: Scenario, engine: JudgedEngine) -> None:
        self._scenario, self._engine = scenario, engine
        self._decided: dict[str, _Decided] = {}
        self._judged: dict[str, str] = {}
        self.trajectory: list[AppliedAction] = []
        self.alerts: list[Record] = []
        self.advice: list[Record] = []

    def watch(self, trace: Trace, state: State) -> None:
        for record in trace.records:
            content = record.content
            if isinstance(content, ActionContent):
                self._decided[record.id] = _Decided(record, content, self._needless(record, content))
            elif isinstance(content, AlertContent):
                self.alerts.append(record)
            elif isinstance(content, AdviceContent):
                self.advice.append(record)
            elif isinstance(content, OutcomeContent):
                self._judged[record.id] = content.action
            elif isinstance(content, ReceiptContent) and content.applied:
                self._apply(self._decided[content.action], record.at_s, state)

    def _apply(self, decided: _Decided, applied_s: float, state: State) -> None:
        action, content = decided.record, decided.content
        self.trajectory.append(
            AppliedAction(
                action.id,
                action.at_s,
                applied_s,
                action.text,
                because(action),
                parallelism_json(state.observed),
                decided.needless,
            )
        )
        if content.action_kind == REVERT:
            self._mark_reverted(action)

    def _mark_reverted(self, revert: Record) -> None:
        """An increase that was reverted was needless, even if it looked right when it was decided."""
        ids = {self._judged[id] for id in revert.because if id in self._judged}
        growing_ids = {id for id in ids if id in self._decided and self._decided[id].content.grows}
        self.trajectory = [replace(each, needless=each.needless or each.id in growing_ids) for each in self.trajectory]

    def _needless(self, record: Record, action: ActionContent) -> bool:
        """Whether the run would have done as well without the action, judged by the truth and not by measurements.

        A plan is needless if one of its parts is.
        """
        if action.action_kind == REVERT or not self._engine.truth:
            return False
        if action.parts:
            return any(self._is_needless(part, part.component) for part in action.parts)
        return self._is_needless(action, record.component)

    def _is_needless(self, action: ActionContent | PartContent, component: str) -> bool:
        now_s, truth = self._engine.now_s, self._engine.truth[-1]
        if action.action_kind == REPLACE:
            return not set(action.retire) & self._engine.faulty_workers()
        faults = [f for f in self._scenario.faults if f.at_s <= now_s < f.until_s]
        if action.action_kind == GATHER:
            return any(f.kind == "hot-key" for f in faults)
        if action.action_kind == ADJUST_SKEW:
            return not any(f.kind in ("hot-key", "hash-imbalance") for f in faults) and not self._uneven(component)
        desired = {Knob.parse(name): value for name, value in action.patch.items()}
        shrinking_knobs = [knob for knob, value in desired.items() if value < truth.values.get(knob, value)]
        if shrinking_knobs:
            return any(desired[knob] < truth.needed.get(knob, 0) for knob in shrinking_knobs)
        growing_knobs = [knob for knob, value in desired.items() if value > truth.values.get(knob, value)]
        needed_counts = self._needed_ahead() if action.cause == RISE_AHEAD else truth.needed
        short = any(self._short(knob, needed_counts) for knob in growing_knobs)
        return not short and not any(self._weakens(f, growing_knobs) for f in faults)

    def _needed_ahead(self) -> dict[Knob, int]:
        """The values that are needed for the highest load of the next half hour."""
        workload, now_s = Workload(self._scenario.workload, self._scenario.seed), self._engine.now_s
        every = [now_s + number * AHEAD_EVERY_S for number in range(int(AHEAD_S / AHEAD_EVERY_S) + 1)]
        return self._engine.needed_parallelism(max(workload.mean_per_s(at_s) for at_s in every))

    def _short(self, knob: Knob, needed_counts: Mapping[Knob, int]) -> bool:
        """Whether the knob was too small for the load, including the usual noise.

        If the needed value is unknown (partitions), the knob was too small if the run was not healthy just before.
        """
        truth = self._engine.truth[-1]
        if knob not in needed_counts:
            return not all(sample.healthy for sample in self._engine.truth[-JUST_BEFORE:])
        upswing = math.exp(UPSWING_SIGMAS * self._scenario.workload.noise.sigma)
        return truth.values.get(knob, 0) < needed_counts[knob] * upswing

    def _weakens(self, fault: FaultSpec, growing_knobs: Sequence[Knob]) -> bool:
        """Whether the fault takes capacity from something that the action grows."""
        if fault.kind not in CAPACITY_FAULTS:
            return False
        if fault.kind == "slow-instance" and not self._engine.faulty_workers():
            return False  # healed: its worker was replaced
        scopes = {knob.scope for knob in growing_knobs}
        if APPLICATION in scopes or fault.component in scopes:
            return True
        if fault.kind == "stuck-sink" and not fault.component:
            inputs = {name for spec in self._scenario.components for name in spec.inputs}
            return bool(scopes - inputs)
        return fault.component in ("", APPLICATION)

    def _uneven(self, component: str) -> bool:
        spec = next((c for c in self._scenario.components if c.name == component), None)
        return spec is not None and spec.keyed and spec.zipf > 0
