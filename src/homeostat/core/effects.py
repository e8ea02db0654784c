"""Bookkeeping of one step: numbers findings, writes a record for each that is new, and knows which ones stand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from homeostat.core.events import Notify
from homeostat.core.findings import UNKNOWN, Diagnosis, Evidence, Proposal, Symptom
from homeostat.core.loop_state import Standing
from homeostat.core.record_json import JSON
from homeostat.core.records import Record

Stood = Mapping[tuple[str, str], Standing]


class Book:
    def __init__(
        self, numbers: Mapping[str, int], now_s: float, failing: frozenset[tuple[str, str]] = frozenset()
    ) -> None:
        self.numbers = dict(numbers)
        self.now_s = now_s
        self.failed: set[tuple[str, str]] = set()
        self._failing = failing
        self._records: list[Record] = []

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(self._records)

    def next_id(self, prefix: str) -> str:
        self.numbers[prefix] = self.numbers.get(prefix, 0) + 1
        return f"{prefix}-{self.numbers[prefix]}"

    def write(
        self,
        kind: str,
        text: str,
        *,
        id: str = "",
        component: str = "",
        because: Sequence[str] = (),
        body: Mapping[str, JSON] | None = None,
    ) -> str:
        id = id or self.next_id(kind[0])
        because = tuple(dict.fromkeys(source for source in because if source))
        self._records.append(Record(id, kind, self.now_s, text, component, because, body or {}))
        return id

    def alert(self, cause: str, component: str, message: str, because: Sequence[str]) -> Notify:
        """Written down, and to be told to a person."""
        id = self.next_id("n")
        self.write("alert", message, id=id, component=component, because=because, body={"cause": cause})
        return Notify(id, self.now_s, cause, component, message, tuple(because))

    def failure(self, where: str, error: str) -> None:
        self.write("failure", f"{where} failed and was left out: {error}", id=self.next_id("f"))

    def left_out(self, part: str, kind: str, error: str) -> None:
        """A part of the policy failed. Told once for as long as it goes on in the same way."""
        if (part, kind) not in self._failing | self.failed:
            self.failure(part, error)
        self.failed.add((part, kind))

    def symptoms(self, stood: Stood, found: Sequence[Symptom]) -> tuple[list[Symptom], dict[tuple[str, str], Standing]]:
        """Give each symptom an id, the old one while it stands; record those that begin and those that end."""
        named: list[Symptom] = []
        standing: dict[tuple[str, str], Standing] = {}
        for symptom in found:
            detector = str(symptom.evidence.get("detector", "")) if symptom.kind == UNKNOWN else ""
            key = (symptom.kind + (f":{detector}" if detector else ""), symptom.component)
            old = stood.get(key)
            if old is None:
                body: dict[str, JSON] = {
                    "symptom": symptom.kind,
                    "severity": symptom.severity,
                    "evidence": evidence_json(symptom.evidence),
                }
                if symptom.instances:
                    body["instances"] = list(symptom.instances)
                id = self.write(
                    "symptom", describe(symptom), id=self.next_id("s"), component=symptom.component, body=body
                )
                old = Standing(id, self.now_s, symptom)
            symptom = replace(symptom, id=old.id)
            named.append(symptom)
            standing[key] = replace(old, finding=symptom)
        self._ended("symptom", stood, standing)
        return named, standing

    def diagnoses(
        self, stood: Stood, found: Sequence[Diagnosis]
    ) -> tuple[list[Diagnosis], dict[tuple[str, str], Standing]]:
        named: list[Diagnosis] = []
        standing: dict[tuple[str, str], Standing] = {}
        for diagnosis in found:
            key = (diagnosis.cause, diagnosis.component)
            old = stood.get(key)
            if old is None:
                id = self.write(
                    "diagnosis",
                    describe_diagnosis(diagnosis),
                    id=self.next_id("d"),
                    component=diagnosis.component,
                    because=[symptom.id for symptom in diagnosis.symptoms],
                    body={
                        "cause": diagnosis.cause,
                        "probability": diagnosis.probability,
                        "evidence": evidence_json(diagnosis.evidence),
                        "instances": list(diagnosis.instances),
                        "workers": list(diagnosis.workers),
                    },
                )
                old = Standing(id, self.now_s, diagnosis)
            diagnosis = replace(diagnosis, id=old.id)
            named.append(diagnosis)
            standing[key] = replace(old, finding=diagnosis)
        self._ended("diagnosis", stood, standing)
        return named, standing

    def _ended(self, kind: str, stood: Stood, standing: Stood) -> None:
        for key, old in stood.items():
            if key not in standing:
                self.write(
                    kind,
                    f"{key[0]} is over after {self.now_s - old.since_s:.0f} s",
                    id=self.next_id("e"),
                    component=key[1],
                    because=[old.id],
                    body={"over": True},
                )

    def proposal(self, proposal: Proposal) -> Proposal:
        id = self.write(
            "proposal",
            describe_proposal(proposal),
            id=self.next_id("p"),
            component=proposal.component,
            because=[diagnosis.id for diagnosis in proposal.because],
            body=proposal_json(proposal),
        )
        return replace(proposal, id=id)


def evidence_json(evidence: Evidence) -> dict[str, JSON]:
    return dict(evidence.items())


def proposal_json(proposal: Proposal) -> dict[str, JSON]:
    body: dict[str, JSON] = {
        "kind": proposal.kind,
        "cause": proposal.cause,
        "probability": proposal.probability,
        "patch": {str(knob): value for knob, value in proposal.patch.values.items()},
        "retire": list[JSON](sorted(proposal.patch.retire)),
        "benefit": proposal.benefit,
        "cost": proposal.cost,
    }
    if proposal.prediction is not None:
        body["prediction"] = {
            "gain": proposal.prediction.gain,
            "touched": list(proposal.prediction.touched),
            "text": proposal.prediction.text,
        }
    if proposal.message:
        body["message"] = proposal.message
    return body


def describe(symptom: Symptom) -> str:
    numbers = ", ".join(f"{name} {_short(value)}" for name, value in symptom.evidence.items())
    where = f" at {symptom.component}" if symptom.component else ""
    return f"{symptom.kind}{where}" + (f" ({numbers})" if numbers else "")


def describe_diagnosis(diagnosis: Diagnosis) -> str:
    where = f"{diagnosis.component} is " if diagnosis.component else ""
    return f"{where}{diagnosis.cause} (probability {diagnosis.probability:.2f})"


def describe_proposal(proposal: Proposal) -> str:
    parts = [f"{knob} = {_short(value)}" for knob, value in sorted(proposal.patch.values.items())]
    parts += [f"replace {worker}" for worker in sorted(proposal.patch.retire)]
    return f"{proposal.kind}: " + (", ".join(parts) or proposal.message)


def _short(value: float | str) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)
