"""How runs on Spark are turned into predictions and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from homeostat.lab.bench import models_spark
from homeostat.lab.bench.prediction_errors import LEAST_TRIED, MOST_ERROR
from homeostat.lab.bench.twin import Setup
from homeostat.log_views.recorded_model import from_recording
from homeostat.recorded_data.run import RecordedBatch, RecordedRun
from homeostat.spark.outside.logged_run import record
from support.paths import RECORDED as LOGS

pytestmark = pytest.mark.slow

RECORDED = LOGS / "wordcount.jsonl"


def ran(setup: Setup, seconds: float, rows_per_s: float) -> list[RecordedBatch]:
    """Batches of so many rows per second. Of the six after the first two, five took so long and one far longer: one in
    five may lie outside of what was predicted."""
    every_s = max(setup.trigger_s, seconds)
    rows = rows_per_s * every_s
    return [
        RecordedBatch(setup.name, n, n * every_s, seconds * (10.0 if n == 7 else 1.0), rows, arrived_rows=n * rows)
        for n in range(8)
    ]


@pytest.fixture(scope="module")
def recorded() -> RecordedRun:
    return record(RECORDED)


def predictions(recorded: RecordedRun, setups: Iterable[Setup], factor: float = 1.0) -> dict[str, Any]:
    """Of runs in which every batch took as long as predicted, those that were not fitted `factor` times as long."""
    model = from_recording(recorded, "the recorded run")
    taken: list[RecordedBatch] = []
    for setup in setups:
        predicted = model.predict(models_spark.configuration(model, setup), setup.load_per_s)
        assert predicted.batch_s is not None
        longer = 1.0 if setup in models_spark.FITTED else factor
        taken += ran(setup, longer * predicted.batch_s.middle, predicted.throughput_per_s)
    runs = {setup: [setup.name] for setup in setups}
    return models_spark.predictions(model, replace(recorded, batches=tuple(taken)), runs)


def test_on_spark_too_the_error_of_the_largest_rate_is_reported(recorded: RecordedRun) -> None:
    figures = predictions(recorded, (*models_spark.FITTED, *models_spark.HELD_OUT, *models_spark.OVERLOADED))
    assert len(figures["saturation"]) == len(models_spark.OVERLOADED)
    errors = sorted(line["error"] for line in figures["saturation"])
    assert errors[0] <= figures["median_saturation_error"] <= errors[-1]
    assert figures["accepted"]


def test_one_setup_that_came_to_nothing_does_no_harm_and_fewer_than_twelve_prove_nothing(recorded: RecordedRun) -> None:
    others = (*models_spark.FITTED, *models_spark.OVERLOADED)
    assert predictions(recorded, (*others, *models_spark.HELD_OUT[1:]))["accepted"]
    few = predictions(recorded, (*others, *models_spark.HELD_OUT[: LEAST_TRIED - 1]))
    assert few["median_ratio_error"] <= MOST_ERROR
    assert not few["accepted"]


def test_what_took_longer_than_the_ratio_to_the_fitted_ones_says_is_not_accepted(recorded: RecordedRun) -> None:
    figures = predictions(
        recorded, (*models_spark.FITTED, *models_spark.HELD_OUT, *models_spark.OVERLOADED), factor=1.25
    )
    assert figures["median_ratio_error"] == pytest.approx(0.2, abs=0.01)
    assert not figures["accepted"]


@pytest.mark.parametrize(("caught_up", "kept"), [(True, False), (False, True)])
def test_a_backlog_or_an_objective_that_was_missed_is_not_accepted(caught_up: bool, kept: bool) -> None:
    figures = {
        "holds": {"batch": True},
        "accepted": True,
        "catch_up": [{"accepted": True}, {"accepted": caught_up}],
        "latency": {"accepted": kept},
    }
    followed = models_spark.with_what_followed(figures)
    assert followed["holds"] == {"batch": True, "catch_up": caught_up, "latency": kept}
    assert not followed["accepted"]


def test_real_spark_is_measured_unless_one_asks_for_less(homeostat: Callable[..., Any]) -> None:
    assert "[default: all]" in homeostat("bench", "models", "--help").out
