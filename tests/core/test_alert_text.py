"""The text of an alert."""

from __future__ import annotations

from homeostat.core.actions import ALERT
from homeostat.core.alert_text import alert_about, message
from homeostat.core.causes import SLOW_INSTANCE
from homeostat.core.evidence import Measured
from homeostat.core.findings import Diagnosis, Symptom

SYMPTOM = Symptom("speed-skew", "count", 0.5, Measured({"times_peers": 3.0}))


def test_a_message_has_title_place_workers_measurements_and_advice() -> None:
    workers = ("exec-1", "exec-2", "exec-3", "exec-4")
    text = message(Diagnosis(SLOW_INSTANCE, "count", symptoms=(SYMPTOM,), workers=workers))

    assert text.startswith("Slow instance at count on exec-1, exec-2, exec-3 (times peers 3). What to do: restart it")


def test_an_alert_is_a_proposal_that_changes_nothing_and_says_why() -> None:
    diagnosis = Diagnosis(SLOW_INSTANCE, symptoms=(SYMPTOM,))

    alert = alert_about(diagnosis, "this engine cannot replace workers")

    assert (alert.kind, alert.because, bool(alert.patch)) == (ALERT, (diagnosis,), False)
    assert "at the application (times peers 3; this engine cannot replace workers)" in alert.message


def test_what_diagnosis_and_symptom_share_is_said_once() -> None:
    diagnosis = Diagnosis(SLOW_INSTANCE, "count", evidence=SYMPTOM.evidence, symptoms=(SYMPTOM,))

    assert message(diagnosis).count("times peers 3") == 1
