"""Errors of predictions, and when the models are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from homeostat.lab.bench.prediction_errors import LEAST_TRIED, MOST_ERROR, judged, summary


def line(error: float, coverage: float = 0.8) -> dict[str, Any]:
    return {"batch_error": error, "ratio_error": error, "throughput_error": error, "coverage": coverage}


def test_the_median_decides_and_the_worst_is_reported() -> None:
    figures = summary([*[line(0.05)] * LEAST_TRIED, line(0.9)], [0.02, 0.04, 0.5])
    assert figures["accepted"]
    assert figures["median_batch_error"] == pytest.approx(0.05)
    assert figures["worst_batch_error"] == pytest.approx(0.9)
    assert figures["median_saturation_error"] == pytest.approx(0.04)


def test_too_few_configurations_or_too_large_an_error_are_not_accepted() -> None:
    assert not summary([line(0.05)] * (LEAST_TRIED - 1), [0.02])["accepted"]
    assert not summary([line(2 * MOST_ERROR)] * LEAST_TRIED, [0.02])["accepted"]


@pytest.mark.parametrize(("coverage", "accepted"), [(0.47, False), (0.75, True), (0.9, True), (1.0, False)])
def test_intervals_that_cover_more_or_less_than_they_state_are_not_accepted(coverage: float, accepted: bool) -> None:
    figures = summary([line(0.05, coverage)] * LEAST_TRIED, [0.02])
    assert figures["holds"]["coverage"] is accepted
    assert figures["accepted"] is accepted


def test_a_wrong_largest_rate_is_not_accepted() -> None:
    figures = summary([line(0.05)] * LEAST_TRIED, [0.0, 0.32])
    assert [name for name, holds in figures["holds"].items() if not holds] == ["saturation"]
    assert not figures["accepted"]


def test_every_further_condition_must_hold_too() -> None:
    figures = summary([line(0.05)] * LEAST_TRIED, [0.02])
    assert judged(figures, {"latency": True})["accepted"]
    refused = judged(figures, {"latency": False})
    assert not refused["accepted"]
    assert refused["holds"] == {**figures["holds"], "latency": False}


def test_without_a_measured_saturation_its_error_is_unknown_and_nothing_is_accepted() -> None:
    figures = summary([line(0.05)] * LEAST_TRIED, [])
    assert figures["median_saturation_error"] is None
    assert not figures["accepted"]
