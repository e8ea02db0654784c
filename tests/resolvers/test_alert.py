"""What a person is alerted about, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.actions import ALERT
from homeostat.core.causes import EXTERNAL, INCONCLUSIVE, SLO_UNMET, UNDER_PROVISIONED
from homeostat.core.evidence import Measured
from homeostat.core.findings import Diagnosis
from homeostat.resolvers.alert import Alert
from support.stages import stage

SHORT = Diagnosis(UNDER_PROVISIONED, "split")


def test_an_alert_says_what_is_wrong_where_and_what_to_do() -> None:
    alert = Alert(frozenset({EXTERNAL}))

    (proposal,) = alert.resolve(
        stage(100.0), (SHORT, Diagnosis(EXTERNAL, "split", evidence=Measured({"capacity_per_s": 12.0})))
    )

    assert proposal.kind == ALERT
    assert proposal.message.startswith("An external system holds the application back at split (capacity 12 /s).")
    assert "What to do:" in proposal.message


@pytest.mark.parametrize(("stood_s", "alerts"), [(0.0, False), (299.0, False), (300.0, True)])
def test_an_inconclusive_diagnosis_leads_to_an_alert_only_after_a_while(stood_s: float, alerts: bool) -> None:
    view = stage(100.0)
    standing = replace(view, standing_since_s={(INCONCLUSIVE, "split"): view.now_s - stood_s})

    assert bool(list(Alert().resolve(standing, (Diagnosis(INCONCLUSIVE, "split"),)))) is alerts


def test_without_a_list_of_causes_those_that_declare_an_alert_can_be_chosen() -> None:
    diagnoses = (SHORT, Diagnosis(EXTERNAL, "split"))
    assert len(list(Alert().resolve(stage(100.0), diagnoses))) == 2
    (proposal,) = Alert(declared_only=True).resolve(stage(100.0), diagnoses)
    assert proposal.because[0].cause == EXTERNAL


def test_an_alert_about_rows_that_wait_says_when_that_will_be_over() -> None:
    """After 200 s, 60,000 rows wait. 100 rows/s arrive, and the application processes 400."""
    late = Diagnosis(SLO_UNMET, "")
    resolver = Alert(declared_only=True, patience_s=0.0)
    (proposal,) = resolver.resolve(stage(100.0, pending_rows=60_000.0), (late,))
    assert "(caught up at 0:06:40 with 5 instances)" in proposal.message
    (proposal,) = resolver.resolve(stage(100.0), (late,))
    assert "caught up" not in proposal.message
    (proposal,) = resolver.resolve(stage(100.0, pending_rows=60_000.0), (Diagnosis(EXTERNAL, "split"),))
    assert "caught up" not in proposal.message
