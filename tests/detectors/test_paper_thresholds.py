"""The paper's detectors, each with its threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from homeostat.core.configuration import Configuration
from homeostat.core.objective import Objective
from homeostat.core.observation import Observation
from homeostat.core.policy_definition import Detector
from homeostat.core.symptoms import GROWING_BACKLOG, IDLE, PENDING_SKEW, PRESSURE, RATE_SKEW, SLO_VIOLATION, UNKNOWN
from homeostat.detectors.paper_thresholds import (
    GrowingQueueDetector,
    IdleDetector,
    PendingSkewDetector,
    PressureDetector,
    RateSkewDetector,
    SloDetector,
    ThroughputMissed,
)
from homeostat.testing import blanked, check_detector, instances, observations, view_of

DETECTORS: tuple[Detector, ...] = (
    PressureDetector(),
    PendingSkewDetector(),
    RateSkewDetector(),
    GrowingQueueDetector(),
    IdleDetector(),
    SloDetector(),
)


def dataflow(count: int = 12, growth: float = 0.0, **split: Sequence[float]) -> tuple[Observation, ...]:
    columns = {"rows": [50.0, 50.0], "run_s": [9.0, 9.0], "pending_rows": [100.0, 100.0], **split}

    def tasks(number: int) -> dict[str, object]:
        queues = [rows + growth * number for rows in columns["pending_rows"]]
        return {"lines": instances(100.0, 0.5), "split": instances(**{**columns, "pending_rows": queues})}  # type: ignore[arg-type]

    return observations(count, tasks, arrival_per_s=10.0)  # type: ignore[arg-type]


def kinds(detector: Detector, observed: Sequence[Observation], objective: Objective | None = None) -> list[str]:
    return [symptom.kind for symptom in detector.detect(view_of(observed, objective=objective))]


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_every_detector_keeps_its_contract(detector: Detector) -> None:
    check_detector(detector)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_a_short_look_says_nothing(detector: Detector) -> None:
    assert kinds(detector, dataflow(9, 500.0, pressured_s=[9.0, 9.0]), Objective(throughput_per_s=1e6)) == []


@pytest.mark.parametrize(("held_s", "expected"), [(0.15, []), (0.25, [PRESSURE])])
def test_pressure_begins_above_the_noise_filter(held_s: float, expected: list[str]) -> None:
    assert kinds(PressureDetector(), dataflow(pressured_s=[0.0, held_s])) == expected


@pytest.mark.parametrize(("shortest", "expected"), [(6.0, []), (4.0, [PENDING_SKEW])])
def test_queues_are_skewed_from_twenty_times_the_shortest(shortest: float, expected: list[str]) -> None:
    assert kinds(PendingSkewDetector(), dataflow(pending_rows=[100.0, shortest])) == expected


@pytest.mark.parametrize(("fewest", "expected"), [(70.0, []), (60.0, [RATE_SKEW])])
def test_rates_are_skewed_from_one_and_a_half_times_the_lowest(fewest: float, expected: list[str]) -> None:
    assert kinds(RateSkewDetector(), dataflow(rows=[100.0, fewest])) == expected


@pytest.mark.parametrize(("growth", "expected"), [(90.0, []), (110.0, [GROWING_BACKLOG])])
def test_a_queue_grows_from_ten_rows_a_second(growth: float, expected: list[str]) -> None:
    assert kinds(GrowingQueueDetector(), dataflow(growth=growth)) == expected


def test_a_component_with_hardly_anything_pending_is_idle_unless_a_metric_is_missing() -> None:
    calm = dataflow(pending_rows=[1.0, 1.0])

    assert kinds(IdleDetector(), calm) == [IDLE]
    assert kinds(IdleDetector(), dataflow(pending_rows=[5.0, 5.0])) == []
    assert kinds(IdleDetector(), blanked(calm, "pending_rows", component="split", last=1)) == [UNKNOWN]


def test_a_knob_that_the_engine_does_not_report_has_nothing_to_give_back() -> None:
    view = view_of(dataflow(pending_rows=[1.0, 1.0]))

    assert list(IdleDetector().detect(replace(view, configuration=Configuration()))) == []


@pytest.mark.parametrize(("objective_per_s", "expected"), [(10.1, []), (10.5, [SLO_VIOLATION])])
def test_a_throughput_within_the_tolerance_meets_the_objective(objective_per_s: float, expected: list[str]) -> None:
    assert kinds(SloDetector(), dataflow(), Objective(throughput_per_s=objective_per_s)) == expected


def test_a_missed_throughput_is_reported_with_what_arrives() -> None:
    (symptom,) = SloDetector().detect(view_of(dataflow(), objective=Objective(throughput_per_s=20.0)))

    assert symptom.evidence == ThroughputMissed(20.0, 10.0, 10.0)
