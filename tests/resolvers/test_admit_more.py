"""The limit on rows per trigger is raised far enough to catch up, or a person is alerted."""

from __future__ import annotations

import pytest

from homeostat.core.actions import ADMIT_MORE, ALERT
from homeostat.core.causes import ADMISSION_LIMITED
from homeostat.core.configuration import ROWS_PER_TRIGGER, Capabilities, Knob, KnobSpec
from homeostat.core.findings import Diagnosis
from homeostat.core.view import View
from homeostat.resolvers.admit_more import AdmitMoreResolver, rows_for
from homeostat.testing import check_resolver, instances, observations, view_of

ROWS = Knob(ROWS_PER_TRIGGER, "main")
LIMITED = Diagnosis(ADMISSION_LIMITED)


def limited(*, pending_rows: float = 0.0, settable: bool = True) -> View:
    """100 rows/s arrive, and a batch of 10 s may take 500."""
    flow = {"arrival_per_s": 100.0, "rows": 500.0, "seconds": 2.0, "trigger_s": 10.0, "pending_rows": pending_rows}
    observed = observations(6, {"lines": instances([250.0] * 2, 0.5, finish_s=0.5)}, executors=2, **flow)
    knobs = {ROWS: KnobSpec(1, 1e9)} if settable else {}
    return view_of(observed, values={ROWS: 500}, capabilities=Capabilities(knobs))


def test_the_new_limit_is_twice_what_arrives_in_a_trigger() -> None:
    (proposal,) = AdmitMoreResolver().resolve(limited(), [LIMITED])
    assert proposal.kind == ADMIT_MORE
    assert proposal.patch.values[ROWS] == pytest.approx(2000, abs=1)
    assert rows_for(limited(), 100.0) == 2000
    check_resolver(AdmitMoreResolver(), [LIMITED])


def test_a_large_backlog_needs_more() -> None:
    (proposal,) = AdmitMoreResolver().resolve(limited(pending_rows=90_000.0), [LIMITED])
    assert proposal.patch.values == {ROWS: 500 + 90_000 / 30}


def test_a_limit_that_the_application_sets_leads_to_an_alert() -> None:
    (proposal,) = AdmitMoreResolver().resolve(limited(settable=False), [LIMITED])
    assert proposal.kind == ALERT
    assert "the application sets it itself" in proposal.message
