"""Causes are declared once, and those of plug-ins are treated like those that ship."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from homeostat.core.actions import SCALE_UP
from homeostat.core.causes import STATE_RISKS, UNBOUNDED_STATE, Cause, cause_of, declare, declared_causes
from homeostat.core.configuration import PARALLELISM, Knob, Patch
from homeostat.core.errors import ConfigError
from homeostat.core.findings import Diagnosis, Prediction, Proposal, Symptom
from homeostat.core.policy_definition import Policy
from homeostat.core.sentences import diagnosis_sentence
from homeostat.core.view import View
from homeostat.testing import instances, observations, play, view_of

OWN_FAULT = declare(Cause("own-fault", "{where} has a fault of a plug-in", title="Own fault", fault=True))
OWN_TROUBLE = declare(Cause("own-trouble", "{where} has trouble of a plug-in"))


@dataclass(frozen=True)
class TroubleThen:
    """Acts on split after a minute; from 90 s on it diagnoses `later` at count as well."""

    later: str
    name: str = "trouble-then"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> list[Diagnosis]:
        late = [Diagnosis(self.later, "count")] if view.now_s >= 90.0 else []
        return [Diagnosis("first", "split"), *late]

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> list[Proposal]:
        patch = Patch({Knob(PARALLELISM, "split"): 4})
        gain = Prediction(0.7, ("split",))
        return [Proposal(SCALE_UP, tuple(diagnoses[:1]), patch, "split", gain)] if view.now_s >= 60.0 else []


def outcomes(later: str) -> list[str]:
    def tasks(number: int) -> dict[str, object]:
        row_s = 0.1 if number < 6 else 0.05
        return {
            "lines": instances(100.0, 0.1),
            "split": instances([50.0, 50.0], 50.0 * row_s),
            "count": instances([50.0, 50.0], 0.5),
        }

    observed = observations(14, tasks, arrival_per_s=10.0)  # type: ignore[arg-type]
    part = TroubleThen(later)
    return play(Policy("own", (), (part,), (part,)), view_of(observed), observed).texts("outcome")


def test_a_plug_ins_own_fault_confounds_a_trial_and_its_other_causes_do_not() -> None:
    assert outcomes(OWN_FAULT) == [
        "Could not tell whether a-1 helped: a new problem appeared elsewhere: own-fault at count"
    ]
    assert outcomes(OWN_TROUBLE) == ["a-1 helped"]


def test_a_name_can_be_declared_again_only_with_the_same_entry() -> None:
    assert declare(cause_of(OWN_FAULT)) == OWN_FAULT
    with pytest.raises(ConfigError, match="declared twice"):
        declare(Cause(OWN_FAULT, "something else"))
    assert cause_of(OWN_FAULT).fault


def test_a_cause_that_nobody_declared_has_a_sentence_and_no_remedy() -> None:
    cause = cause_of("never-declared")

    assert (cause.fault, cause.alerts, cause.mended_by) == (False, False, ())
    assert diagnosis_sentence(Diagnosis("never-declared", "split", 0.5)).startswith("split has the problem")


@pytest.mark.parametrize("cause", declared_causes(), ids=lambda cause: cause.name)
def test_every_entry_says_what_people_need(cause: Cause) -> None:
    assert "{where}" in cause.sentence
    assert min(len(cause.title), len(cause.advice)) > 0
    assert not cause.alert_after_patience or cause.alerts


def test_risks_for_the_state_are_those_that_say_so() -> None:
    assert UNBOUNDED_STATE in STATE_RISKS
    assert all(cause_of(name).state_risk for name in STATE_RISKS)
