"""What a record's sentence leaves out: its figures in words, each once."""

from __future__ import annotations

import math

import pytest

from homeostat.core.change_parts import PredictionContent
from homeostat.core.record_json import JSON
from homeostat.core.records import (
    ActionContent,
    AlertContent,
    Content,
    DiagnosisContent,
    OutcomeContent,
    ProposalContent,
    ReceiptContent,
    Record,
    RejectionContent,
    SymptomContent,
)
from homeostat.store.details import details, headline, judgement, prediction, reason, receipt_line

PRESSURE = SymptomContent("pressure", 0.75, figures={"arrival_per_s": 2_000.0}, workers=("w-1", "w-2"))
GROWTH = ActionContent(
    action_kind="scale-up", patch={"parallelism.count": 8}, previous={"parallelism.count": 2}, steps=("set it", "wait")
)


def record(content: Content, text: str = "", at_s: float = 10.0) -> Record:
    return Record.of("x-1", at_s, content, text, "count")


def test_the_sentence_of_a_record_is_its_headline() -> None:
    assert headline(record(PRESSURE, "count is overloaded")) == "count is overloaded"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (PRESSURE, "pressure, severity 0.75"),
        (SymptomContent("pressure"), "pressure"),
        (DiagnosisContent("data-skew", 0.9), "data-skew, probability 0.9"),
        (GROWTH, "scale-up: parallelism.count 2 → 8"),
        (ProposalContent(action_kind="replace", retire=("w-1",)), "replace: replace w-1"),
        (RejectionContent("another action\ngoes first"), "another action goes first"),
        (AlertContent("data-skew", extra={"rows_seen": 3}), "rows seen 3"),
    ],
)
def test_without_a_sentence_the_headline_comes_from_the_content(content: Content, line: str) -> None:
    assert headline(record(content)) == line


def test_a_symptom_has_its_name_and_its_figures_with_the_workers() -> None:
    assert details(record(PRESSURE, "count is overloaded")) == [
        "pressure, severity 0.75",
        "arrival 2,000 /s · workers w-1, w-2",
    ]


def test_what_the_sentence_says_is_not_repeated() -> None:
    assert details(record(PRESSURE, "pressure, severity 0.75 at count")) == ["arrival 2,000 /s · workers w-1, w-2"]


@pytest.mark.parametrize(
    ("diagnosis", "is_stated"),
    [
        (DiagnosisContent("data-skew", 0.9), True),
        (DiagnosisContent("data-skew", 0.9, over=True), False),
        (DiagnosisContent("under-provisioned", 0.9), False),
    ],
)
def test_a_cause_that_more_workers_cannot_mend_says_so_while_it_stands(
    diagnosis: DiagnosisContent, is_stated: bool
) -> None:
    assert ("more workers would not help" in details(record(diagnosis))) == is_stated


def test_an_action_shows_its_settings_and_its_steps() -> None:
    assert details(record(GROWTH, "count grows")) == [
        "parallelism.count 2 → 8",
        "step 1 of 2: set it",
        "step 2 of 2: wait",
    ]


def test_a_proposal_shows_only_the_worth_that_is_known() -> None:
    assert details(record(ProposalContent(benefit=0.75, cost=0.2))) == ["benefit 0.75 · cost 0.2"]
    assert details(record(ProposalContent(benefit=0.75))) == ["benefit 0.75"]


def test_keys_of_a_later_version_are_shown() -> None:
    extra: dict[str, JSON] = {"colour": "red"}
    assert details(record(RejectionContent("no", extra=extra))) == ["colour red"]


def test_a_reason_is_taken_from_the_content_or_else_from_the_sentence() -> None:
    assert reason(record(RejectionContent("too soon"), "rejected")) == "too soon"
    assert reason(record(AlertContent("data-skew"), "mode is advise")) == "mode is advise"
    assert reason(record(RejectionContent(""))) == "no reason given"


def test_a_receipt_says_whether_and_when_the_action_took_effect() -> None:
    action = record(GROWTH)
    late, prompt = ReceiptContent("x-1", applied=False, detail="3 of 8 came"), ReceiptContent("x-1", applied=True)
    assert receipt_line(record(late, at_s=100.0), late, action) == "had no effect after 1 min 30 s (x-1): 3 of 8 came"
    assert receipt_line(record(prompt), prompt, action) == "took effect at once (x-1)"


def test_a_prediction_is_a_gain_in_batch_time() -> None:
    quarter = PredictionContent(math.log(4), ("split", "count"), "four times the capacity")
    assert prediction(ProposalContent(prediction=quarter)) == (
        "gain 1.39: batch time × 0.25 at equal load · four times the capacity · touches split, count"
    )
    assert prediction(ProposalContent()) == ""
    assert prediction(ProposalContent(prediction=PredictionContent(-1e6))).startswith("gain -1,000,000: batch time × ")


def test_an_outcome_is_compared_with_its_prediction() -> None:
    outcome = OutcomeContent("a-1", "helped", "", 0.5, 1.0, 0.1, before=20, after=12, model_error=math.log(1.1))
    assert judgement(outcome) == [
        "observed gain 0.5 ± 0.1, 1 predicted (50% of it)",
        "past predictions about it were off by 10%",
        "judged by 20 measurements before it and 12 after",
    ]
    assert judgement(OutcomeContent("a-1", "confounded")) == []


def test_a_diagnosis_says_what_earlier_outcomes_made_of_its_probability() -> None:
    line = "probability 0.90 before the outcomes of earlier actions, 0.83 with them"
    assert line in details(record(DiagnosisContent("data-skew", 0.83, 0.9)))
    assert not any("outcomes" in each for each in details(record(DiagnosisContent("data-skew", 0.901, 0.9))))
    assert not any("outcomes" in each for each in details(record(DiagnosisContent("data-skew", 0.9))))
