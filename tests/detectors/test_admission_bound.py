"""A limit on rows per trigger that holds a query back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from homeostat.core.configuration import ROWS_PER_TRIGGER, Knob, Value
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import ADMISSION_BOUND
from homeostat.detectors.admission_bound import AdmissionDetector, AdmissionEvidence
from homeostat.testing import check_detector, instances, observations, view_of

LIMIT = Knob(ROWS_PER_TRIGGER, "main")


def symptoms(
    rows: float = 1000.0,
    seconds: float = 6.0,
    pending_rows: float | Sequence[float] = 5000.0,
    limit: dict[Knob, Value] | None = None,
    count: int = 6,
) -> list[Symptom]:
    tasks = {"scan": instances([rows / 2] * 2, 1.0, finish_s=1.0)}
    observed = observations(
        count, tasks, executors=2, rows=rows, seconds=seconds, trigger_s=10.0, pending_rows=pending_rows,
        arrival_per_s=200.0,
    )  # fmt: skip
    return list(AdmissionDetector().detect(view_of(observed, values={LIMIT: 1000} if limit is None else limit)))


def test_full_batches_that_end_in_time_while_rows_wait_are_found() -> None:
    (symptom,) = symptoms()

    assert symptom.kind == ADMISSION_BOUND
    assert symptom.evidence == AdmissionEvidence(1000.0, 100.0, 5000.0)
    assert symptom.severity == pytest.approx(0.5), "half of what arrives is refused"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"rows": 900.0}, id="the batches are not full"),
        pytest.param({"seconds": 12.0}, id="the batches are late"),
        pytest.param({"pending_rows": 0.0}, id="nothing waits"),
        pytest.param({"pending_rows": [6000.0 - 500.0 * n for n in range(6)]}, id="fewer and fewer wait"),
        pytest.param({"limit": {}}, id="there is no limit"),
        pytest.param({"count": 2}, id="too few observations"),
    ],
)
def test_other_batches_are_not_held_back(other: dict[str, object]) -> None:
    assert symptoms(**other) == []  # type: ignore[arg-type]


def test_a_limit_that_nobody_told_shows_in_equal_batches_while_more_and_more_rows_wait() -> None:
    (symptom,) = symptoms(limit={}, pending_rows=[5000.0 + 500.0 * n for n in range(6)])

    assert symptom.evidence == AdmissionEvidence(1000.0, 100.0, 7500.0)


def test_rows_that_arrive_during_a_batch_show_no_limit() -> None:
    assert symptoms(limit={}, rows=2000.0, pending_rows=[1200.0 + 50.0 * n for n in range(6)]) == []


def test_it_keeps_its_contract() -> None:
    check_detector(AdmissionDetector())
