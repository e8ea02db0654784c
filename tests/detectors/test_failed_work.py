"""Attempts that fail and workers that are lost."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.observation import TaskFailure, WorkerLoss
from homeostat.detectors.failed_work import (
    FailedAttempts,
    FailedAttemptsDetector,
    LostWorkersDetector,
    WorkersLost,
)
from homeostat.testing import check_detector, view_of
from support.timed_batches import slow_sink

CALM = slow_sink(0.1, 8)


def test_attempts_that_fail_in_several_batches_are_reported_with_their_reason() -> None:
    observed = [
        replace(each, failures=(TaskFailure("read", number % 4, "ValueError"),)) if number % 2 else each
        for number, each in enumerate(CALM)
    ]
    (symptom,) = FailedAttemptsDetector().detect(view_of(observed))
    assert symptom.evidence == FailedAttempts(4.0, 4.0, "ValueError", None)
    assert symptom.evidence.summary() == "4 attempts in 4 batches failed: ValueError"


def test_the_same_partition_that_fails_again_and_again_is_named() -> None:
    observed = [replace(each, failures=(TaskFailure("read", 3, "ValueError", 3),)) for each in CALM]
    (symptom,) = FailedAttemptsDetector().detect(view_of(observed))
    assert symptom.instances == (3,)
    assert isinstance(symptom.evidence, FailedAttempts)
    assert symptom.evidence.same_partition == 3.0


def test_attempts_that_fail_everywhere_are_no_fault_of_one_partition() -> None:
    everywhere = tuple(TaskFailure("read", partition, "FetchFailed") for partition in range(4))
    twice = (TaskFailure("read", 3, "FetchFailed", 2),)
    observed = [replace(each, failures=(*everywhere[:3], *twice)) for each in CALM]
    (symptom,) = FailedAttemptsDetector().detect(view_of(observed))
    assert isinstance(symptom.evidence, FailedAttempts)
    assert symptom.evidence.same_partition is None


def test_one_failure_is_an_accident() -> None:
    once = [replace(CALM[0], failures=(TaskFailure("read", 3, "ValueError", 1),)), *CALM[1:]]
    assert list(FailedAttemptsDetector().detect(view_of(once))) == []


def test_failures_that_have_stopped_are_no_longer_reported() -> None:
    calm = slow_sink(0.1, 20)
    failing = [replace(each, failures=(TaskFailure("read", 1, "ValueError"),)) for each in calm[:4]]
    dying = [replace(each, losses=(WorkerLoss("7", "a", "out of memory"),)) for each in calm[:4]]
    for quiet, still in ((4, True), (8, False)):
        end = 4 + quiet
        assert bool(list(FailedAttemptsDetector().detect(view_of([*failing, *calm[4:end]])))) is still
        assert bool(list(LostWorkersDetector().detect(view_of([*dying, *calm[4:end]])))) is still


def test_losses_of_workers_are_remembered_for_minutes_if_batches_are_short() -> None:
    """A batch a second, and a loss every 80 s."""
    short = [replace(each, at_s=float(number), span_s=1.0) for number, each in enumerate(slow_sink(0.1, 240), start=1)]
    dying = [replace(o, losses=(WorkerLoss("7", "a", "out of memory"),)) if o.at_s % 80 == 70 else o for o in short]
    (symptom,) = LostWorkersDetector().detect(view_of(dying))
    assert isinstance(symptom.evidence, WorkersLost)
    assert symptom.evidence.lost_workers == 3.0


def test_workers_that_keep_dying_are_reported() -> None:
    dying = [replace(each, losses=(WorkerLoss("7", "a", "out of memory"),)) for each in CALM[:3]]
    (symptom,) = LostWorkersDetector().detect(view_of([*dying, *CALM[3:]]))
    assert symptom.evidence == WorkersLost(3.0, 8.0, "out of memory")
    assert list(LostWorkersDetector().detect(view_of([*dying[:1], *CALM[1:]]))) == []


def test_they_keep_their_contract() -> None:
    check_detector(FailedAttemptsDetector())
    check_detector(LostWorkersDetector())
