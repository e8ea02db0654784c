"""What a proposal says of its diagnoses."""

from __future__ import annotations

from homeostat.core.findings import Diagnosis, Proposal


def test_a_proposal_has_the_cause_of_its_first_diagnosis_and_the_probability_of_the_surest() -> None:
    proposal = Proposal("scale-up", (Diagnosis("first", probability=0.4), Diagnosis("second", probability=0.9)))

    assert (proposal.cause, proposal.probability) == ("first", 0.9)


def test_a_proposal_without_a_diagnosis_is_not_probable() -> None:
    assert (Proposal("by-hand", ()).cause, Proposal("by-hand", ()).probability) == ("", 0.0)
