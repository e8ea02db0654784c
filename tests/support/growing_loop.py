"""A loop with trouble at one component, which one instance more would mend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from homeostat.core.configuration import PARALLELISM, Knob, Patch
from homeostat.core.findings import Diagnosis, Outcome, Prediction, Proposal, Symptom, Verdict
from homeostat.core.loop_state import Mode
from homeostat.core.observation import Observation
from homeostat.core.policy_definition import Policy
from homeostat.core.trial import Trial
from homeostat.core.view import View
from homeostat.testing import Played, instances, observations, play, view_of

SPLIT = Knob(PARALLELISM, "split")
TASKS = {"lines": instances(100.0, 1.0), "split": instances([50.0, 50.0], 5.0)}
OBSERVED = observations(60, TASKS, arrival_per_s=10.0)
ENGINE = view_of(OBSERVED)
CAUSE = Diagnosis("cause", "split", 0.9)


@dataclass(frozen=True)
class Trouble:
    """At split, from the first to the last measurement given, but not in the pauses."""

    until_s: float = 1e9
    pauses_s: tuple[tuple[float, float], ...] = ()
    name: str = "trouble"

    def detect(self, view: View) -> Iterable[Symptom]:
        if view.now_s < self.until_s and not any(low <= view.now_s < high for low, high in self.pauses_s):
            yield Symptom("trouble", "split", 0.5)

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        return [replace(CAUSE, symptoms=(symptom,)) for symptom in symptoms]


@dataclass(frozen=True)
class Grow:
    """One instance more, up to a most."""

    most: int = 3
    name: str = "grow"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        for diagnosis in diagnoses:
            more = min(self.most, int(view.configuration[SPLIT]) + 1)
            yield Proposal("grow", (diagnosis,), Patch({SPLIT: more}), "split", Prediction(0.5, ("split",)))


@dataclass(frozen=True)
class Says:
    verdict: Verdict
    after_s: float = 30.0

    def judge(self, trial: Trial) -> Outcome | None:
        return Outcome(self.verdict) if trial.elapsed_s >= self.after_s else None


def policy(trouble: Trouble | None = None, verdict: Verdict = "helped", most: int = 3) -> Policy:
    parts = trouble or Trouble()
    return Policy("test", (parts,), (parts,), (Grow(most),), judge=Says(verdict), settle_s=60.0)


def run(mode: Mode, observed: Sequence[Observation] = OBSERVED, **parts: object) -> Played:
    return play(policy(**parts), ENGINE, observed, mode=mode)  # type: ignore[arg-type]
