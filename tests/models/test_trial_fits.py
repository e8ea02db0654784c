"""Trial fits of many slowings at once give what a least-squares solve of each one gives."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.core.observation import Array
from homeostat.models.trial_fits import Trials


def _one_line(columns: Array, seconds: Array) -> float:
    """The errors after one round with the plain weights, where the full solution is not negative."""
    solution = np.linalg.lstsq((columns / seconds).T, np.ones(len(seconds)), rcond=None)[0]
    assert (solution >= 0).all()
    return float(np.abs(np.log(seconds / (solution @ columns))).sum())


@pytest.mark.parametrize("seed", range(5))
def test_each_line_is_the_least_squares_fit_of_its_own_columns(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, slow = random.uniform(500.0, 3000.0, 200), random.uniform(1.0, 1.3, 200)
    seconds = (0.5 + 0.001 * rows) * slow * np.exp(random.normal(0.0, 0.05, 200))
    starting, taking = np.stack([np.ones(200), slow, slow]), np.stack([np.ones(200), np.ones(200), slow])
    errors = Trials([starting, rows * taking], np.zeros(1), seconds, np.ones(200)).errors(1)
    expected = [_one_line(np.stack([a, rows * b]), seconds) for a, b in zip(starting, taking, strict=True)]
    assert errors == pytest.approx(np.array(expected), rel=1e-6)
    assert errors.argmin() == 2


def test_a_part_that_would_be_negative_is_left_out() -> None:
    rows = np.linspace(1000.0, 3000.0, 50)
    seconds = 0.001 * rows - 0.2  # a start of less than nothing
    errors = Trials([np.ones((1, 50)), rows[None, :]], np.zeros(1), seconds, np.ones(50)).errors(1)
    row_s = ((rows / seconds) @ np.ones(50)) / ((rows / seconds) @ (rows / seconds))
    assert errors[0] == pytest.approx(np.abs(np.log(seconds / (row_s * rows))).sum())


def test_a_few_wild_tasks_have_little_say_after_a_second_round() -> None:
    rows = np.linspace(500.0, 3000.0, 200)
    seconds = 0.1 + 0.001 * rows
    seconds[::20] *= 10.0
    lines = [np.ones((1, 200)), rows[None, :]]
    once, twice = (Trials(lines, np.zeros(1), seconds, np.ones(200)).errors(rounds)[0] for rounds in (1, 2))
    assert twice < once
