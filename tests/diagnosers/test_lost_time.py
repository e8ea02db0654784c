"""Causes that cost batches time."""

from __future__ import annotations

from homeostat.core.causes import OVER_PROVISIONED, UNDER_PROVISIONED
from homeostat.core.evidence import LostTime
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import FAILED_ATTEMPTS, LOST_TIME, LOST_WORKERS, STILL_WATERMARK
from homeostat.core.time_causes import (
    DYING_EXECUTORS,
    FAILING_TASKS,
    GC_BOUND,
    POISON_ROW,
    SINK_BOUND,
    STALLED_WATERMARK,
)
from homeostat.detectors.failed_work import FailedAttempts, WorkersLost
from homeostat.detectors.still_watermark import StillWatermark
from homeostat.diagnosers.lost_time import LostTimeDiagnoser
from homeostat.policies import registry
from homeostat.testing import check_diagnoser, view_of
from support.timed_batches import slow_sink

SINK = Symptom(LOST_TIME, "", 0.6, LostTime(SINK_BOUND, 6.0, 8.0, 0.6, 10.0, batches_in_a_row=6))
GC = Symptom(LOST_TIME, "read", 0.4, LostTime(GC_BOUND, 4.0, 8.0, 0.4, 10.0, batches_in_a_row=6))
VIEW = view_of(slow_sink(6.0))


def test_causes_are_named_side_by_side_the_costliest_first() -> None:
    named = list(LostTimeDiagnoser().diagnose(VIEW, [GC, SINK]))
    assert [(d.cause, d.component) for d in named] == [(SINK_BOUND, ""), (GC_BOUND, "read")]
    assert named[0].probability > named[1].probability


def test_what_the_engine_reports_needs_no_weighing() -> None:
    symptoms = [
        Symptom(FAILED_ATTEMPTS, "read", 0.5, FailedAttempts(4.0, 4.0, "ValueError")),
        Symptom(FAILED_ATTEMPTS, "count", 0.5, FailedAttempts(9.0, 3.0, "ValueError", 3.0), (3,)),
        Symptom(LOST_WORKERS, "", 0.5, WorkersLost(3.0, 8.0, "killed")),
        Symptom(STILL_WATERMARK, "", 0.5, StillWatermark(200.0, 12.0)),
    ]
    named = list(LostTimeDiagnoser().diagnose(VIEW, symptoms))
    assert [d.cause for d in named] == [FAILING_TASKS, POISON_ROW, DYING_EXECUTORS, STALLED_WATERMARK]
    assert named[1].instances == (3,)


def test_a_sink_that_takes_longer_than_the_trigger_is_not_called_a_wrong_number_of_executors() -> None:
    """The review's case: a sink of twice the trigger was called over-provisioned."""
    view = view_of(slow_sink(20.0, 30))
    policy = registry.build("provisioning")
    symptoms = [symptom for detector in policy.detectors for symptom in detector.detect(view)]
    causes = {d.cause for diagnoser in policy.diagnosers for d in diagnoser.diagnose(view, symptoms)}
    assert SINK_BOUND in causes
    assert not causes & {OVER_PROVISIONED, UNDER_PROVISIONED}


def test_it_keeps_its_contract() -> None:
    check_diagnoser(LostTimeDiagnoser(), [SINK, GC])
