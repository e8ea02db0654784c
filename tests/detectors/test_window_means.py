"""Means over the window, and what is missing in it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.observation import NAN
from homeostat.detectors.window_means import (
    batch_pressure,
    instance_means,
    longest_stage,
    missing_metric,
    observed_s,
    pressure_shares,
)
from homeostat.testing import blanked, instances, observations, view_of

TASKS = {"lines": instances(100.0, 1.0), "split": instances([60.0, 40.0], 1.0, pressured_s=[5.0, 0.0])}
OBSERVED = observations(6, TASKS, arrival_per_s=10.0)


def batches(seconds: float, pending_rows: float = 0.0, trigger_s: float = 10.0) -> list[float]:
    tasks = {"scan": instances(1000.0, 1.0, finish_s=2.0), "count": instances([500.0] * 2, 1.0, finish_s=5.0)}
    observed = observations(
        4, tasks, executors=2, arrival_per_s=200.0, rows=1000.0, seconds=seconds, trigger_s=trigger_s,
        pending_rows=pending_rows,
    )  # fmt: skip
    history = view_of(observed).history
    assert longest_stage(history) == "count"
    return [batch_pressure(history)]


def test_each_instance_has_its_mean_unless_it_was_measured_too_seldom() -> None:
    assert instance_means(view_of(OBSERVED).window, "split", "rows").tolist() == [60.0, 40.0]
    rare = view_of(blanked(OBSERVED, "rows", component="split", last=4)).window
    assert np.isnan(instance_means(rare, "split", "rows")).all()


def test_pressure_is_a_share_of_the_time() -> None:
    assert pressure_shares(view_of(OBSERVED).window, "split").tolist() == [0.5, 0.0]


@pytest.mark.parametrize(
    ("seconds", "pending_rows", "pressure"),
    [(8.0, 0.0, 0.0), (20.0, 0.0, 0.75), (8.0, 50_000.0, 0.5)],
    ids=["in time", "late", "many rows wait"],
)
def test_the_pressure_of_batches_is_the_share_of_the_load_that_they_cannot_process(
    seconds: float, pending_rows: float, pressure: float
) -> None:
    assert batches(seconds, pending_rows) == [pytest.approx(pressure)]


def test_the_pressure_is_unknown_without_any_duration() -> None:
    assert math.isnan(batches(NAN)[0])
    assert math.isnan(batches(0.0, 5000.0, NAN)[0]), "rows wait, but no batch has taken any time"


def test_what_is_missing_is_named() -> None:
    assert missing_metric(view_of(OBSERVED)) == ""
    assert missing_metric(view_of(OBSERVED), 1000.0) == "observations"
    assert missing_metric(view_of(blanked(OBSERVED, "run_s", component="split", last=1))) == "run_s of split"
    assert missing_metric(view_of(OBSERVED[:2] + OBSERVED[3:])) == "what was between 20 and 30 s"


def test_the_time_of_observation_begins_with_the_present_configuration() -> None:
    view = view_of(OBSERVED)
    changed = replace(view, history=(*(replace(d, epoch=0) for d in view.history[:4]), *view.history[4:]))

    assert (observed_s(view), observed_s(changed)) == (60.0, 20.0)
