"""The noise of recorded batches is found again. tests/sim/fit/test_scenario_fit.py has whole runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from homeostat.recorded_data.run import RecordedBatch, RecordedTasks
from homeostat.sim.fit.calibration import calibrate, percentiles, round_digits
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec

LINES = ComponentSpec("lines", "source", parallelism=4, rate_per_s=100.0, task_s=0.0)
ENGINE = MicrobatchSpec(slots=1, driver_s=0.1, commit_s=0.1)


def batches(sigma: float) -> list[RecordedBatch]:
    """Four tasks of 1 s on two executors, so 2 s and 0.2 s for the driver, with noise."""
    factors = np.exp(np.random.default_rng(5).normal(0.0, sigma, 40))
    names = np.array(["exec-0", "exec-1"] * 2)
    tasks = RecordedTasks(np.full(4, 100.0), np.full(4, 100.0), np.full(4, np.nan), np.zeros(4), np.ones(4), names)
    return [
        RecordedBatch("a", number, 10.0 * number, 0.2 + 2.0 * factor, 400.0, tasks={"lines": tasks})
        for number, factor in enumerate(factors)
    ]


def fixed_costs(batches: Sequence[RecordedBatch]) -> tuple[ComponentSpec, ...]:
    return (LINES,)


def test_more_varied_batches_give_more_noise() -> None:
    quiet, noisy = (calibrate(fixed_costs, ENGINE, batches(sigma)).noise.sigma for sigma in (0.02, 0.3))
    assert quiet < 0.1 < noisy


def test_a_single_run_has_no_noise_from_run_to_run() -> None:
    assert calibrate(fixed_costs, ENGINE, batches(0.1)).engine.run_sigma == 0.0


def test_percentiles_leave_a_tenth_outside_on_each_side() -> None:
    low, middle, high = percentiles(np.arange(1.0, 100.0))
    assert (low, middle, high) == (pytest.approx(10.0), pytest.approx(50.0), pytest.approx(90.0))


def test_figures_are_rounded_to_four_digits() -> None:
    assert round_digits(0.123456) == 0.1235
