"""Alerts begin with a record and end with another."""

from __future__ import annotations

import pytest

from homeostat.core.records import AlertContent, DiagnosisContent, EngineContent, Record, SymptomContent
from homeostat.store.protocol import Placed
from homeostat.web.alert_messages import Alerts, message

AT_S = 1.7e9
ALERT = Record.of("n-1", AT_S, AlertContent("under-provisioned"), "Too slow. Add workers.", "count", ("d-1",))
SILENCE = Record.of("n-2", AT_S, AlertContent("inconclusive"), "No observation for 70 s.", "", ("d-2",))


def placed(*records: Record) -> list[Placed]:
    return [Placed(number, "app/words", record) for number, record in enumerate(records)]


@pytest.mark.parametrize(
    ("record", "ended"),
    [
        (Record.of("e-1", AT_S + 60, DiagnosisContent(over=True), "", "count", ("d-1",)), ["under-provisioned"]),
        (Record.of("e-2", AT_S + 60, SymptomContent(over=True), ""), ["inconclusive"]),
        (Record.of("g-1", AT_S + 60, EngineContent(reason="start"), ""), ["under-provisioned", "inconclusive"]),
        (Record.of("g-1", AT_S + 60, EngineContent(reason="a worker was lost"), ""), []),
        (Record.of("d-3", AT_S + 60, DiagnosisContent(), "", "count", ("d-1",)), []),
    ],
)
def test_an_alert_ends_with_its_diagnosis_its_silence_or_its_manager(record: Record, ended: list[str]) -> None:
    alerts = Alerts()
    alerts.take(placed(ALERT, SILENCE))
    assert [alert.firing for alert in alerts.take_changes()["app/words"]] == [True, True]
    alerts.take(placed(record))
    assert [alert.cause for alert in alerts.take_changes().get("app/words", []) if not alert.firing] == ended


def test_too_many_alerts_are_cut_and_the_rest_is_counted() -> None:
    alerts = Alerts()
    many = [Record.of(f"n-{n}", AT_S, AlertContent("slow"), "Slow.", f"c-{n}") for n in range(100)]
    alerts.take(placed(*many))
    (sent,) = alerts.take_changes().values()
    body = message("alertmanager", "app/words", [*sent, *sent], "")
    assert (len(body["alerts"]), body["truncatedAlerts"]) == (100, 100)


def test_a_run_whose_alerts_are_over_is_forgotten() -> None:
    alerts = Alerts()
    over = Record.of("e-1", AT_S + 60, DiagnosisContent(over=True), "", "count", ("d-1",))
    for number in range(100):
        alerts.take([Placed(0, f"app/query-{number}", each) for each in (ALERT, over)])
        assert len(alerts.take_changes()) == 1
    assert (alerts._firing, alerts._ended, alerts._changed) == ({}, {}, set())
