"""What a plug-in yields is checked before it is used."""

from __future__ import annotations

import pytest

from homeostat.core.configuration import PARALLELISM, Knob, Patch
from homeostat.core.evidence import Evidence
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.topology import Component, Topology
from homeostat.core.validation import flaw

SPLIT = Knob(PARALLELISM, "split")
SHAPE = Topology((Component("split", "source", SPLIT),))
CAUSE = Diagnosis("cause", "split")


class Broken(Evidence):
    def summary(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "finding", [Symptom("x", "split", 1.0), CAUSE, Proposal("x", (CAUSE,), Patch({SPLIT: 3}), "split")]
)
def test_a_sound_finding_has_no_flaw(finding: Symptom | Diagnosis | Proposal) -> None:
    assert flaw(finding, type(finding), SHAPE) == ""


@pytest.mark.parametrize(
    ("finding", "expected", "reason"),
    [
        (CAUSE, Symptom, "it yields Diagnosis instead of Symptom"),
        (Symptom("x", "nowhere"), Symptom, "there is no component 'nowhere'"),
        (Diagnosis("x", probability=2.0), Diagnosis, "its probability 2.0 is not between 0 and 1"),
        (Proposal("x", ()), Proposal, "x does not name the diagnosis that it is for"),
    ],
)
def test_a_flaw_is_named(finding: object, expected: type, reason: str) -> None:
    assert flaw(finding, expected, SHAPE) == reason


def test_evidence_without_words_fails_here_and_not_later() -> None:
    with pytest.raises(RuntimeError, match="no words"):
        flaw(Symptom("x", evidence=Broken()), Symptom, SHAPE)
