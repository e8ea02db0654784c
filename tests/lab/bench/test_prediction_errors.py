"""Errors of predictions, and when the models are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from homeostat.lab.bench.prediction_errors import LEAST_TRIED, MOST_ERROR, summary


def line(error: float) -> dict[str, Any]:
    return {"batch_error": error, "ratio_error": error, "throughput_error": error, "coverage": 0.8}


def test_the_median_decides_and_the_worst_is_reported() -> None:
    figures = summary([*[line(0.05)] * LEAST_TRIED, line(0.9)], [0.02, 0.04, 0.5])
    assert figures["accepted"]
    assert figures["median_batch_error"] == pytest.approx(0.05)
    assert figures["worst_batch_error"] == pytest.approx(0.9)
    assert figures["median_saturation_error"] == pytest.approx(0.04)


def test_too_few_configurations_or_too_large_an_error_are_not_accepted() -> None:
    assert not summary([line(0.05)] * (LEAST_TRIED - 1), [])["accepted"]
    assert not summary([line(2 * MOST_ERROR)] * LEAST_TRIED, [])["accepted"]


def test_without_a_measured_saturation_its_error_is_unknown() -> None:
    assert summary([line(0.05)] * LEAST_TRIED, [])["median_saturation_error"] is None
