"""Random episodes of the loop: an engine that obeys, refuses, answers late or twice, and changes by itself."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from homeostat.core.configuration import Capabilities, Configuration, KnobSpec, Patch
from homeostat.core.cycle import step
from homeostat.core.events import (
    Apply,
    EngineChanged,
    Event,
    Failure,
    Observed,
    Operator,
    OperatorCommand,
    Receipt,
)
from homeostat.core.findings import Diagnosis, Prediction, Proposal, Symptom
from homeostat.core.loop_state import State
from homeostat.core.observation import Observation
from homeostat.core.policy_definition import Policy
from homeostat.core.records import Record
from homeostat.core.view import View
from homeostat.testing import described, sample_views, view_of

STEP_S = 10.0
SAMPLES = ("overloaded", "idle", "a slow instance", "skewed", "overloaded batches", "idle batches", "a slow executor")
OPERATOR_COMMANDS: tuple[OperatorCommand, ...] = ("pause", "resume", "approve", "revert", "apply", "resolve")


@dataclass
class Restless:
    """A plug-in that always finds something and proposes anything: sizes, and workers to replace."""

    chance: random.Random
    name: str = "restless"

    def detect(self, view: View) -> Iterable[Symptom]:
        if self.chance.random() < 0.1:
            raise ValueError("restless")
        for component in view.topology:
            if self.chance.random() < 0.5:
                yield Symptom("restless", component.name, self.chance.random())

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        for symptom in symptoms:
            yield Diagnosis("restless", symptom.component, self.chance.random(), symptoms=(symptom,))

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        for diagnosis in diagnoses:
            prediction = Prediction(self.chance.uniform(-1.0, 1.0), (diagnosis.component,))
            yield Proposal(
                self.chance.choice(("grow", "shrink", "replace")),
                (diagnosis,),
                self._patch(view),
                diagnosis.component,
                prediction if self.chance.random() < 0.9 else None,
                benefit=self.chance.random(),
            )

    def _patch(self, view: View) -> Patch:
        latest = view.window.latest
        workers = latest.workers.ids if latest is not None else ()
        if workers and self.chance.random() < 0.4:
            return Patch({}, frozenset(self.chance.sample(workers, self.chance.randint(1, len(workers)))))
        knob = self.chance.choice(sorted(view.capabilities.knobs, key=str))
        return Patch({knob: self.chance.randint(-3, 40)})


@dataclass
class Episode:
    """One run of the loop against a whimsical engine. Everything follows from the seed."""

    seed: int
    policy: Policy
    steps: int = 60
    actions: list[Apply] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        sample = sample_views()[self.chance.choice(SAMPLES)]
        knobs = {
            knob: KnobSpec(1, int(sample.configuration[knob]) + 6, spec.live, 5.0, spec.cost)
            for knob, spec in sample.capabilities.knobs.items()
        }
        self.engine = view_of(sample.window.observations, capabilities=Capabilities(knobs, True, 5.0))
        self.configuration = self.engine.configuration
        self.state = State(mode=self.chance.choice(("regulate", "regulate", "regulate", "earn", "advise", "observe")))
        self.pace = 1.0
        self._answers: list[tuple[float, Event]] = []
        # What the engine ran without an action, within its bounds or not.
        self.own_configurations = [self.configuration]

    def play(self) -> None:
        now_s = 0.0
        events: list[Event] = [described(self.engine)]
        for number in range(self.steps):
            now_s += STEP_S * self.chance.choice((1.0,) * 20 + (0.1, 12.0))
            if self.chance.random() < 0.9:
                events.append(Observed(self._observation(number, now_s)))
            events += self._incidents(now_s)
            events += [event for at_s, event in self._answers if at_s <= now_s]
            self._answers = [(at_s, event) for at_s, event in self._answers if at_s > now_s]
            self.state, commands, trace = step(self.policy, self.state, events, now_s)
            self.records += trace.records
            for command in commands:
                if isinstance(command, Apply):
                    self.actions.append(command)
                    self._obey(command, now_s)
            events = []

    def _observation(self, number: int, now_s: float) -> Observation:
        observed = self.engine.window.observations
        sample = observed[number % len(observed)]
        pace = self.pace * self.chance.choice((0.98, 1.0, 1.0, 1.02))
        tasks = {name: replace(each, run_s=each.run_s * pace) for name, each in sample.tasks.items()}
        flows = tuple(replace(flow, seconds=flow.seconds * pace) for flow in sample.flows)
        return replace(sample, at_s=now_s, batch=number, tasks=tasks, flows=flows)

    def _obey(self, command: Apply, now_s: float) -> None:
        fate = self.chance.random()
        if fate < 0.03:
            return  # it is never answered
        applied = fate < 0.9
        if applied:
            self.configuration = command.desired
            self.pace = self.chance.choice((0.5, 1.0, 2.0))  # it helped, did nothing or did harm
        receipt = Receipt(command.id, now_s, self.configuration, applied)
        after_s = now_s + self.chance.choice((0.0, 0.0, 0.0, 15.0, 200.0))
        self._answers.append((after_s, receipt))
        if fate > 0.95:
            self._answers.append((after_s + 1.0, receipt))

    def _incidents(self, now_s: float) -> Iterable[Event]:
        kind = self.chance.random()
        if kind < 0.01:
            values = {knob: self.chance.randint(1, 8) for knob in self.configuration.values}
            self.configuration = Configuration(values)
            self.own_configurations.append(self.configuration)
            yield EngineChanged(self.engine.topology, self.configuration, self.engine.capabilities, now_s, "by itself")
        elif kind < 0.03:
            yield Receipt("a-999", now_s, self.configuration)
        elif kind < 0.05:
            yield Failure("a sensor", "it failed", now_s)
        elif kind < 0.1:
            yield Operator(
                self.chance.choice(OPERATOR_COMMANDS),
                by="alice",
                target=self.chance.choice(("", "a-1", "v-1", "restless", *(action.id for action in self.actions[-2:]))),
                values={knob: self.chance.randint(-1, 20) for knob in self.configuration.values},
            )
