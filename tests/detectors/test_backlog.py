"""Rows that wait at the source."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from homeostat.core.findings import Symptom
from homeostat.core.observation import NAN, Array
from homeostat.core.symptoms import GROWING_BACKLOG, UNKNOWN
from homeostat.detectors.backlog import GrowingBacklogDetector
from homeostat.testing import instances, observations, view_of

Series = Sequence[float] | Array


def backlog(pending_rows: Series, arrival_per_s: float | Series = 100.0) -> list[Symptom]:
    tasks = {"lines": instances(1000.0, 1.0)}
    observed = observations(len(pending_rows), tasks, arrival_per_s=arrival_per_s, pending_rows=pending_rows)
    return list(GrowingBacklogDetector().detect(view_of(observed)))


def test_a_backlog_that_grows_all_the_time_is_found() -> None:
    (symptom,) = backlog([500.0 * i for i in range(12)])

    assert (symptom.kind, symptom.component) == (GROWING_BACKLOG, "")
    assert symptom.evidence.figures()["pending_rows"] == 5500.0
    assert symptom.evidence.figures()["growth_per_s"] == pytest.approx(50.0)
    assert symptom.severity == pytest.approx(0.5)


@pytest.mark.parametrize(
    "pending_rows",
    [
        pytest.param([0.0] * 12, id="nothing waits"),
        pytest.param([9000.0] * 12, id="it stays"),
        pytest.param([9000.0 - 500.0 * i for i in range(12)], id="it shrinks"),
        pytest.param([0.0, 800.0] * 6, id="it comes and goes"),
        pytest.param([10.0 * i for i in range(12)], id="it hardly grows"),
        pytest.param([0.0] * 11 + [50_000.0], id="one burst"),
        pytest.param([0.0, 5000.0, 9000.0], id="too few observations"),
    ],
)
def test_any_other_backlog_is_not_growing(pending_rows: list[float]) -> None:
    assert backlog(pending_rows) == []


def test_a_gap_in_the_measurements_does_not_hide_growth() -> None:
    pending = [500.0 * i for i in range(12)]
    pending[7] = pending[9] = NAN

    assert [s.kind for s in backlog(pending)] == [GROWING_BACKLOG]


def test_growth_is_unknown_without_its_metrics() -> None:
    grows = [500.0 * i for i in range(12)]

    assert [s.evidence.figures()["missing"] for s in backlog([*grows[:9], NAN, NAN, NAN])] == ["pending rows"]
    assert [s.evidence.figures()["missing"] for s in backlog(grows, NAN)] == ["arrival"]
    assert {s.kind for s in (*backlog([NAN] * 12), *backlog(grows, NAN))} == {UNKNOWN}
