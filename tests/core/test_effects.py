"""What a step leaves behind: records with ids and sources, and commands."""

from __future__ import annotations

from homeostat.core.effects import Effects
from homeostat.core.events import Notify
from homeostat.core.evidence import MissingMetric
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.symptoms import PRESSURE, UNKNOWN


def test_ids_count_on_from_those_of_the_step_before() -> None:
    effects = Effects({"s": 4}, 10.0)

    symptom = effects.symptom(Symptom(PRESSURE))

    assert symptom.id == "s-5"
    assert effects.numbers == {"s": 5}


def test_a_symptom_that_stands_keeps_its_id_and_is_recorded_when_it_begins_and_ends() -> None:
    first = Effects({}, 10.0)
    begun, standing = first.symptoms({}, [Symptom(PRESSURE, "count", 0.1)])
    second = Effects(first.numbers, 20.0)
    again, standing = second.symptoms(standing, [Symptom(PRESSURE, "count", 0.9)])
    third = Effects(second.numbers, 30.0)
    third.symptoms(standing, [])

    assert [record.id for record in first.records] == ["s-1"]
    assert (second.records, again[0].id, again[0].severity) == ((), begun[0].id, 0.9)
    (end,) = third.records
    assert (end.id, end.because, end.text) == ("e-1", ("s-1",), "pressure ended after 20 s")


def test_two_detectors_that_lack_a_metric_at_one_component_have_two_symptoms() -> None:
    gaps = [Symptom(UNKNOWN, "count", evidence=MissingMetric(name, "rows")) for name in ("idle", "pressure")]

    _, standing = Effects({}, 10.0).symptoms({}, gaps)

    assert len(standing) == 2


def test_a_chain_leads_from_the_proposal_to_the_symptom() -> None:
    effects = Effects({}, 10.0)
    symptom = effects.symptom(Symptom(PRESSURE))
    diagnosis = effects.diagnosis(Diagnosis("cause", symptoms=(symptom,)))
    proposal = effects.proposal(Proposal("scale-up", (diagnosis,)))

    sources = {record.id: record.because for record in effects.records}

    assert sources == {symptom.id: (), diagnosis.id: (symptom.id,), proposal.id: (diagnosis.id,)}


def test_an_alert_is_a_record_and_a_command_with_one_id() -> None:
    effects = Effects({}, 10.0)

    effects.alert("cause", "count", "look", ["d-1"])

    (record,), (command,) = effects.records, effects.commands
    assert isinstance(command, Notify)
    assert (record.id, record.text) == (command.id, command.message) == ("n-1", "look")


def test_a_part_that_goes_on_failing_is_reported_once() -> None:
    before = Effects({}, 10.0)
    before.left_out("idle", "ValueError", "no")
    after = Effects(before.numbers, 20.0, frozenset(before.failed))
    after.left_out("idle", "ValueError", "no")
    after.left_out("idle", "KeyError", "other")

    assert [record.text for record in before.records] == ["idle failed and was skipped: no"]
    assert [record.text for record in after.records] == ["idle failed and was skipped: other"]
