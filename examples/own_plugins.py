"""A detector, a diagnoser and a resolver of your own, for tasks that take longer to start than to run.

Each is a plain object with a name and one method, without registration or base class. own_policy.toml uses them:

    homeostat sim run examples/own_policy.toml
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.causes import Cause, declare
from homeostat.core.configuration import PARALLELISM, Knob, Patch
from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.findings import Diagnosis, Prediction, Proposal, Symptom
from homeostat.core.policy_definition import Policy
from homeostat.core.symptoms import UNKNOWN
from homeostat.core.view import View

TINY_TASKS = "tiny-tasks"
OVERHEAD_BOUND = declare(
    Cause(
        "overhead-bound",
        "the tasks of {where} are so small that starting them takes most of the time",
        title="Tasks are too small",
        advice="use fewer partitions",
        mended_by=("fewer-tasks",),
    )
)


@dataclass(frozen=True)
class TaskTimes(Evidence):
    headline: ClassVar[str] = "the tasks of {where} are tiny"
    task_s: float
    tasks: int


@dataclass(frozen=True)
class TinyTasks:
    """The typical task of a batch takes less than `least_s`."""

    least_s: float = 0.05
    name: str = "tiny-tasks"

    def detect(self, view: View) -> Iterator[Symptom]:
        batches = [batch for batch in view.current[-5:] if batch.rows != 0]
        if not view.micro_batch or len(batches) < 3:
            return
        for component in view.topology.names:
            stages = [batch.components.get(component) for batch in batches]
            measured = [stage for stage in stages if stage is not None and stage.complete]
            if len(measured) < len(stages):
                yield Symptom(UNKNOWN, component, evidence=MissingMetric(self.name, "task times"))
                continue
            task_s = float(np.median([stage.run_s / stage.instances for stage in measured]))
            tasks = measured[-1].instances
            if task_s < self.least_s and tasks > 1:
                yield Symptom(TINY_TASKS, component, 1.0 - task_s / self.least_s, TaskTimes(task_s, tasks))


@dataclass(frozen=True)
class OverheadBound:
    """Tiny tasks mean overhead. The smaller the tasks, the higher the probability."""

    name: str = "overhead-bound"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        for symptom in symptoms:
            if symptom.kind == TINY_TASKS:
                probability = 0.5 + symptom.severity / 2.0
                yield Diagnosis(OVERHEAD_BOUND, symptom.component, probability, symptom.evidence, (symptom,))


@dataclass(frozen=True)
class FewerTasks:
    """Propose half as many tasks, each with twice the rows. `start_s` is the time to start a task."""

    start_s: float = 0.02
    name: str = "fewer-tasks"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in diagnoses:
            knob = Knob(PARALLELISM, diagnosis.component)
            tasks = int(view.configuration.get(knob, 0))
            if diagnosis.cause != OVERHEAD_BOUND or knob not in view.capabilities.knobs or tasks < 2:
                continue
            latest, batch_s = view.window.latest, float(np.median(view.flow("seconds", last=5)))
            slots = float(latest.workers.slots.sum()) if latest is not None else 1.0
            saved_s = self.start_s * (tasks - tasks // 2) / max(slots, 1.0)
            if 0.0 < saved_s < batch_s:
                gain = math.log(batch_s / (batch_s - saved_s))  # the outcome is judged against this
                prediction = Prediction(gain, (diagnosis.component,), f"a batch takes {saved_s:.1f} s less")
                patch = Patch({knob: tasks // 2})
                yield Proposal(self.name, (diagnosis,), patch, diagnosis.component, prediction, saved_s / batch_s)


def own_policy() -> Policy:
    """Only these three parts, with the default arbiter, guards, memory and judge."""
    return Policy("own", (TinyTasks(),), (OverheadBound(),), (FewerTasks(),))
