"""Collects the results of one step of the loop: records for the log, and commands for the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from homeostat.core import sentences
from homeostat.core.change_parts import PartContent, PredictionContent
from homeostat.core.events import Command, Notify
from homeostat.core.evidence import LostTime, MissingMetric, SourceTrouble
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.loop_state import Standing
from homeostat.core.records import (
    AlertContent,
    ChangeContent,
    Content,
    DiagnosisContent,
    FailureContent,
    ProposalContent,
    Record,
    SymptomContent,
)
from homeostat.core.symptoms import UNKNOWN, with_subject

StandingFindings = Mapping[tuple[str, str], Standing]
# The first letter of the ids of each kind. Records that end a finding have a separate letter.
_LETTERS = {
    "symptom": "s",
    "diagnosis": "d",
    "proposal": "p",
    "rejection": "r",
    "action": "a",
    "receipt": "c",
    "outcome": "u",
    "alert": "n",
    "advice": "v",
    "operator": "o",
    "failure": "f",
    "engine": "g",
}
_ENDED = "e"


class Effects:
    """Collects the records and commands of one step. Records get ids in the order in which they are written."""

    def __init__(
        self, numbers: Mapping[str, int], now_s: float, failing: frozenset[tuple[str, str]] = frozenset()
    ) -> None:
        self.numbers = dict(numbers)
        self.now_s = now_s
        self.failed: set[tuple[str, str]] = set()
        self._failing = failing
        self._records: list[Record] = []
        self._commands: list[Command] = []

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(self._records)

    @property
    def commands(self) -> tuple[Command, ...]:
        return tuple(self._commands)

    def command(self, command: Command) -> None:
        self._commands.append(command)

    def next_id(self, letter: str) -> str:
        self.numbers[letter] = self.numbers.get(letter, 0) + 1
        return f"{letter}-{self.numbers[letter]}"

    def write(
        self, content: Content, text: str, *, id: str = "", component: str = "", because: Sequence[str] = ()
    ) -> str:
        """Append a record; returns its id."""
        id = id or self.next_id(_LETTERS[content.kind])
        sources = tuple(dict.fromkeys(source for source in because if source))
        self._records.append(Record.of(id, self.now_s, content, text, component, sources))
        return id

    def alert(self, cause: str, component: str, message: str, because: Sequence[str]) -> None:
        """Write an alert to the log and send it."""
        id = self.write(AlertContent(cause), message, component=component, because=because)
        self.command(Notify(id, self.now_s, cause, component, message, tuple(because)))

    def failure(self, where: str, error: str, *, harmless: bool = False) -> str:
        """Append a record; returns its id."""
        text = f"{where}: {error}" if harmless else sentences.failure_sentence(where, error)
        return self.write(FailureContent(where, error), text)

    def left_out(self, part: str, kind: str, error: str) -> None:
        """A part of the policy failed. It is reported once for as long as it fails in the same way."""
        if (part, kind) not in self._failing | self.failed:
            self.failure(part, error)
        self.failed.add((part, kind))

    def symptoms(
        self, before: StandingFindings, symptoms: Sequence[Symptom]
    ) -> tuple[list[Symptom], dict[tuple[str, str], Standing]]:
        """Give each symptom an id, which it keeps until it ends. Record the symptoms that begin and those that end."""
        symptoms_with_ids: list[Symptom] = []
        standing: dict[tuple[str, str], Standing] = {}
        for symptom in symptoms:
            key = (_standing_name(symptom), symptom.component)
            old = before.get(key) or Standing(self._begin_symptom(symptom), self.now_s, symptom)
            symptom = replace(symptom, id=old.id)
            symptoms_with_ids.append(symptom)
            standing[key] = replace(old, finding=symptom)
        for key, old in _ended_findings(before, standing):
            lasted_s = self.now_s - old.since_s
            self._end(SymptomContent(key[0], over=True, lasted_s=lasted_s), key, old, lasted_s)
        return symptoms_with_ids, standing

    def diagnoses(
        self, before: StandingFindings, diagnoses: Sequence[Diagnosis]
    ) -> tuple[list[Diagnosis], dict[tuple[str, str], Standing]]:
        """The same for diagnoses."""
        diagnoses_with_ids: list[Diagnosis] = []
        standing: dict[tuple[str, str], Standing] = {}
        for diagnosis in diagnoses:
            key = (diagnosis.cause, diagnosis.component)
            old = before.get(key) or Standing(self._begin_diagnosis(diagnosis), self.now_s, diagnosis)
            diagnosis = replace(diagnosis, id=old.id)
            diagnoses_with_ids.append(diagnosis)
            standing[key] = replace(old, finding=diagnosis)
        for key, old in _ended_findings(before, standing):
            lasted_s = self.now_s - old.since_s
            self._end(DiagnosisContent(key[0], over=True, lasted_s=lasted_s), key, old, lasted_s)
        return diagnoses_with_ids, standing

    def symptom(self, symptom: Symptom) -> Symptom:
        """Record a symptom that does not come from a detector of the policy."""
        return replace(symptom, id=self._begin_symptom(symptom))

    def diagnosis(self, diagnosis: Diagnosis) -> Diagnosis:
        return replace(diagnosis, id=self._begin_diagnosis(diagnosis))

    def write_end(self, content: SymptomContent, text: str) -> None:
        self.write(content, text, id=self.next_id(_ENDED))

    def proposal(self, proposal: Proposal) -> Proposal:
        id = self.write(
            ProposalContent(**change_fields(proposal)),
            sentences.change_sentence(proposal),
            component=proposal.component,
            because=[diagnosis.id for diagnosis in proposal.because],
        )
        return replace(proposal, id=id)

    def _begin_symptom(self, symptom: Symptom) -> str:
        content = SymptomContent(
            symptom.kind,
            symptom.severity,
            figures=symptom.evidence.figures(),
            instances=symptom.instances,
            workers=symptom.workers,
        )
        return self.write(content, sentences.symptom_sentence(symptom), component=symptom.component)

    def _begin_diagnosis(self, diagnosis: Diagnosis) -> str:
        content = DiagnosisContent(
            diagnosis.cause,
            diagnosis.probability,
            math.nan if diagnosis.before_outcomes is None else diagnosis.before_outcomes,
            figures=diagnosis.evidence.figures(),
            instances=diagnosis.instances,
            workers=diagnosis.workers,
        )
        because = [symptom.id for symptom in diagnosis.symptoms]
        text = sentences.diagnosis_sentence(diagnosis)
        return self.write(content, text, component=diagnosis.component, because=because)

    def _end(self, content: Content, key: tuple[str, str], old: Standing, lasted_s: float) -> None:
        text = sentences.ended_sentence(key[0], lasted_s)
        self.write(content, text, id=self.next_id(_ENDED), component=key[1], because=[old.id])


def _standing_name(symptom: Symptom) -> str:
    """Return the name of a standing symptom.

    The name distinguishes several detectors without a metric, and several causes that cost time, at one component.
    """
    match symptom.evidence:
        case MissingMetric(detector=detector) if symptom.kind == UNKNOWN:
            return with_subject(symptom.kind, detector)
        case LostTime(cause=cause) | SourceTrouble(cause=cause):
            return with_subject(symptom.kind, cause)
    return symptom.kind


def _ended_findings(before: StandingFindings, standing: StandingFindings) -> list[tuple[tuple[str, str], Standing]]:
    return [(key, old) for key, old in before.items() if key not in standing]


def change_fields(proposal: Proposal) -> dict[str, Any]:
    """Return the fields of a proposal that the contents of all changes share."""
    change = ChangeContent(
        action_kind=proposal.kind,
        cause=proposal.cause,
        probability=proposal.probability,
        patch={str(knob): value for knob, value in proposal.patch.values.items()},
        retire=tuple(sorted(proposal.patch.retire)),
        benefit=proposal.benefit,
        cost=proposal.cost,
        prediction=_prediction(proposal),
        message=proposal.message,
        parts=tuple(_part(part) for part in proposal.parts),
        left_out=proposal.left_out,
    )
    return {each.name: getattr(change, each.name) for each in fields(change)}


def _prediction(proposal: Proposal) -> PredictionContent | None:
    prediction = proposal.prediction
    return (
        None if prediction is None else PredictionContent(prediction.gain, tuple(prediction.touched), prediction.text)
    )


def _part(part: Proposal) -> PartContent:
    return PartContent(
        part.kind,
        part.cause,
        part.component,
        {str(knob): value for knob, value in part.patch.values.items()},
        tuple(sorted(part.patch.retire)),
        _prediction(part),
    )
