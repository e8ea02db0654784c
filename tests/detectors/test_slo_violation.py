"""Objectives that are not met."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from homeostat.core.findings import Symptom
from homeostat.core.objective import Objective
from homeostat.core.observation import NAN, Array
from homeostat.core.symptoms import SLO_VIOLATION, UNKNOWN
from homeostat.detectors.slo_violation import CATCH_UP, LAG, THROUGHPUT, ObjectiveMissed, SloDetector
from homeostat.testing import instances, observations, view_of

Series = Sequence[float] | Array


def slo(
    rows_per_s: float | Series = 100.0,
    *,
    pending_rows: float | Series = 0.0,
    arrival_per_s: float | Series = 100.0,
    count: int = 20,
    throughput_per_s: float | None = None,
    lag_s: float | None = None,
    latency_p95_s: float | None = None,
    catch_up_s: float | None = None,
) -> list[Symptom]:
    rows = 10.0 * np.broadcast_to(np.asarray(rows_per_s, dtype=np.float64), (count,))
    tasks = {"lines": instances(1000.0, 1.0)}
    observed = observations(count, tasks, rows=rows, pending_rows=pending_rows, arrival_per_s=arrival_per_s)
    objective = Objective(
        throughput_per_s=throughput_per_s, lag_s=lag_s, latency_p95_s=latency_p95_s, catch_up_s=catch_up_s
    )
    return list(SloDetector().detect(view_of(observed, objective=objective)))


def test_without_an_objective_nothing_is_violated() -> None:
    assert slo(0.0, pending_rows=1e6) == []


def test_a_throughput_below_the_objective_is_found() -> None:
    (symptom,) = slo(80.0, throughput_per_s=100.0)

    assert (symptom.kind, symptom.component) == (SLO_VIOLATION, "")
    assert isinstance(symptom.evidence, ObjectiveMissed)
    assert (symptom.evidence.metric, symptom.evidence.objective) == (THROUGHPUT, 100.0)
    assert symptom.evidence.measured == pytest.approx(80.0, rel=0.03)
    assert symptom.severity == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("rows_per_s", [99.0, 100.0, 150.0])
def test_a_throughput_as_asked_for_is_fine(rows_per_s: float) -> None:
    assert slo(rows_per_s, throughput_per_s=100.0, count=300) == []


def test_a_moment_below_the_objective_is_no_violation() -> None:
    assert slo([110.0] * 19 + [40.0], throughput_per_s=100.0) == []


def test_a_violation_that_is_over_is_none() -> None:
    assert slo([50.0] * 12 + [120.0] * 8, throughput_per_s=100.0) == []


def test_noise_around_more_than_was_asked_for_is_no_violation() -> None:
    rng = np.random.default_rng(4)
    alarms = [slo(115.0 * np.exp(rng.normal(0.0, 0.1, 120)), throughput_per_s=100.0, count=120) for _ in range(20)]

    assert sum(map(len, alarms)) <= 1


def test_nothing_taken_at_all_is_the_worst_violation() -> None:
    (symptom,) = slo(0.0, throughput_per_s=100.0)

    assert symptom.severity == pytest.approx(1.0)


def test_a_lag_above_the_objective_is_found() -> None:
    """3,000 rows wait where 100 arrive each second: what is taken now is half a minute old."""
    (symptom,) = slo(pending_rows=3000.0, lag_s=10.0)

    assert symptom.kind == SLO_VIOLATION
    assert isinstance(symptom.evidence, ObjectiveMissed)
    assert (symptom.evidence.metric, symptom.evidence.objective) == (LAG, 10.0)
    assert symptom.evidence.measured == pytest.approx(30.0, rel=0.03)


@pytest.mark.parametrize("pending_rows", [0.0, 900.0])
def test_a_lag_as_asked_for_is_fine(pending_rows: float) -> None:
    assert slo(pending_rows=pending_rows, lag_s=10.0) == []


def test_nothing_waiting_is_no_lag_even_if_nothing_arrives() -> None:
    assert slo(pending_rows=0.0, arrival_per_s=0.0, lag_s=10.0) == []


def test_both_objectives_can_be_violated_at_once() -> None:
    symptoms = slo(50.0, pending_rows=3000.0, throughput_per_s=100.0, lag_s=10.0)

    assert [s.evidence.figures()["metric"] for s in symptoms] == ["throughput", "lag_s"]


def test_an_objective_is_unknown_without_its_metric() -> None:
    throughput = slo(NAN, throughput_per_s=100.0)
    lag = slo(pending_rows=NAN, lag_s=10.0)
    stuck = slo(pending_rows=500.0, arrival_per_s=0.0, lag_s=10.0)

    assert [s.kind for s in (*throughput, *lag, *stuck)] == [UNKNOWN] * 3
    assert [s.evidence.figures()["missing"] for s in (*throughput, *lag, *stuck)] == ["throughput", "lag_s", "lag_s"]


def test_the_latency_of_a_dataflow_is_unknown() -> None:
    (symptom,) = slo(latency_p95_s=1.0)

    assert (symptom.kind, symptom.evidence.figures()["missing"]) == (UNKNOWN, "latency_p95_s")


def test_rows_that_wait_for_longer_than_catching_up_may_take_are_found() -> None:
    waiting = [0.0] * 5 + [5_000.0] * 15
    (symptom,) = slo(pending_rows=waiting, catch_up_s=120.0)

    assert isinstance(symptom.evidence, ObjectiveMissed)
    assert (symptom.evidence.metric, symptom.evidence.measured) == (CATCH_UP, 140.0)
    assert symptom.evidence.summary() == (
        "rows have been waiting for 2 min 20 s, but the objective is to catch up within 2 min 00 s"
    )
    assert slo(pending_rows=waiting, catch_up_s=150.0) == []
    assert slo(pending_rows=[*waiting[:-1], 500.0], catch_up_s=120.0) == []


def test_a_moment_of_unknown_backlog_does_not_interrupt_the_wait() -> None:
    (symptom,) = slo(pending_rows=[5_000.0] * 10 + [NAN] + [5_000.0] * 9, catch_up_s=60.0)
    assert isinstance(symptom.evidence, ObjectiveMissed)
    assert symptom.evidence.measured == 190.0
