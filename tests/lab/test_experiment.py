"""What is read from the records of an experiment. Trials themselves run in the tests on Spark."""

from __future__ import annotations

from homeostat.core.configuration import EXECUTORS_KNOB, Configuration
from homeostat.core.records import (
    ActionContent,
    DiagnosisContent,
    OutcomeContent,
    Record,
)
from homeostat.lab.experiment import TrialResult, json_of

RECORDS = (
    Record.of("d-1", 101.0, DiagnosisContent(cause="under-provisioned"), "too few"),
    Record.of("a-1", 102.0, ActionContent(action_kind="scale-up"), "set executors to 3"),
    Record.of("d-2", 110.0, DiagnosisContent(cause="under-provisioned", over=True), "over"),
    Record.of("o-1", 120.0, OutcomeContent(action="a-1", verdict="helped"), "a-1 helped"),
    Record("f-1", "failure", 121.0, "a sensor failed"),
)


def result(**more: tuple[str, ...]) -> TrialResult:
    return TrialResult(100.0, RECORDS, Configuration({EXECUTORS_KNOB: 3}), 5_000, more.get("differences", ()))


def test_actions_verdicts_and_causes_are_read_from_the_records() -> None:
    assert result().actions == ["scale-up"]
    assert result().verdicts == ["helped"]
    assert result().causes() == ["under-provisioned"], "what is over is no cause"
    assert result().batches == []


def test_the_json_has_times_since_the_start_and_every_failure() -> None:
    written = json_of(result(differences=("row 3: lost",)))
    assert written["actions"] == [{"at_s": 2.0, "kind": "scale-up", "text": "set executors to 3"}]
    assert (written["rows"], written["differences"]) == (5_000, ["row 3: lost"])
    assert written["failures"] == ["a sensor failed"]
