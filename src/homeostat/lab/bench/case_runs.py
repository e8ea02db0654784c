"""A random simulated run with a policy that only advises: its observations, its diagnoses, and the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from homeostat.core.actions import RETUNE, SCALE_DOWN, SCALE_UP
from homeostat.core.configuration import EXECUTORS
from homeostat.core.cycle import Trace
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.loop_state import State
from homeostat.core.policy_definition import Policy
from homeostat.lab.bench.diagnosis_cases import Case
from homeostat.sim.simulation import SimulatedEngine, simulate
from homeostat.sim.truth import TruthSample
from homeostat.sim.truth_labels import Label, Labels


class Cycle(NamedTuple):
    at_s: float
    symptoms: tuple[Symptom, ...]
    diagnoses: tuple[Diagnosis, ...]


class Scaling(NamedTuple):
    """Advice to change the number of executors."""

    at_s: float
    grows: bool


@dataclass(slots=True)
class PlayedRun:
    labels: Labels
    truth: Sequence[TruthSample] = ()
    cycles: list[Cycle] = field(default_factory=list)
    scaled: list[Scaling] = field(default_factory=list)

    def watch(self, trace: Trace, state: State, engine: SimulatedEngine) -> None:
        if trace.symptoms or trace.diagnoses or not trace.conditions:
            self.cycles.append(Cycle(engine.now_s, trace.symptoms, trace.diagnoses))
        for record in trace.records:
            content = record.content
            kind = getattr(content, "action_kind", "")
            knobs = getattr(content, "patch", {})
            scales = kind in (SCALE_UP, SCALE_DOWN, RETUNE) and any(EXECUTORS in knob for knob in knobs)
            if record.kind == "advice" and scales:
                self.scaled.append(Scaling(record.at_s, kind != SCALE_DOWN))


def play(case: Case, policy: Policy) -> PlayedRun:
    """Run the case without acting on it."""
    run = PlayedRun(Labels(case.scenario))
    run.truth = simulate(case.scenario, policy, mode="advise", on_step=run.watch).truth
    return run


def is_right(cause: str, component: str, standing: Sequence[Label]) -> bool:
    return any(label.matches(cause, component) for label in standing)
