"""The sentences of the log."""

from __future__ import annotations

import pytest

from homeostat.core import sentences
from homeostat.core.causes import UNDER_PROVISIONED
from homeostat.core.configuration import EXECUTORS_KNOB, Patch, Replace, Restart, SetLive, Step
from homeostat.core.events import Operator
from homeostat.core.evidence import Measured, MissingMetric
from homeostat.core.findings import Diagnosis, Outcome, Proposal, Symptom

GROW = Proposal("scale-up", (), Patch({EXECUTORS_KNOB: 4}, frozenset({"exec-2"})))


def test_a_symptom_is_reported_by_its_headline_or_else_by_its_kind() -> None:
    sentence = sentences.symptom_sentence(Symptom("unknown", "count", evidence=MissingMetric("idle", "rows")))
    plain = sentences.symptom_sentence(Symptom("odd", evidence=Measured({"rows": 3.0})))

    assert sentence == "cannot tell how count is doing: the detector idle needs rows, which is missing"
    assert plain == "odd at the application: rows 3"


def test_a_diagnosis_is_reported_with_its_cause_and_probability() -> None:
    text = sentences.diagnosis_sentence(Diagnosis(UNDER_PROVISIONED, "count", 0.756))

    assert text == "count has too few instances for the load (under-provisioned, probability 0.76)"


def test_a_change_names_every_knob_and_worker() -> None:
    assert sentences.change_sentence(GROW) == "scale-up: executors.app = 4, replace exec-2"
    assert sentences.advice_sentence(GROW) == "Homeostat would scale-up: executors.app = 4, replace exec-2"
    assert sentences.change_sentence(Proposal("alert", (), message="look")) == "alert: look"


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome("helped"), "a-1 helped"),
        (Outcome("failed", reason="too slow"), "a-1 did not help: too slow"),
        (Outcome("confounded", reason="a restart"), "Could not tell whether a-1 helped: a restart"),
    ],
)
def test_an_outcome_is_reported_with_its_reason(outcome: Outcome, text: str) -> None:
    assert sentences.outcome_sentence("a-1", outcome) == text


def test_a_receipt_says_why_only_if_the_action_did_not_take_effect() -> None:
    assert sentences.receipt_sentence("a-1", True, "in 3 s") == "a-1 took effect"
    assert sentences.receipt_sentence("a-1", False, "no room") == "a-1 did not take effect: no room"


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (SetLive({EXECUTORS_KNOB: 3}), "set executors.app = 3"),
        (Restart({EXECUTORS_KNOB: 3}), "restart with executors.app = 3"),
        (Replace(frozenset({"b", "a"})), "replace a, b"),
    ],
)
def test_each_step_has_words(step: Step, text: str) -> None:
    assert sentences.step_words(step) == text


def test_the_engine_and_people_are_informed() -> None:
    assert sentences.engine_sentence([], "start") == "the engine runs with no settings (start)"
    assert sentences.operator_sentence(Operator("pause", "ada", "a release")) == "ada: pause (a release)"
    assert sentences.ended_sentence("pressure", 61.4) == "pressure ended after 1 min 01 s"


def test_the_end_of_a_loss_and_of_a_gap_says_what_it_was_about() -> None:
    assert sentences.ended_sentence("lost-time:sink-bound", 61.4) == "time lost to sink-bound ended after 1 min 01 s"
    assert sentences.ended_sentence("unknown:idle", 5.0) == "the gap in the metrics of idle ended after 5 s"
