"""Measurements from before a step in the cost of a task are brought to its present level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.observation import Array
from homeostat.models.cost_levels import at_present_level

BATCHES = 20


def lines(*stretches: tuple[float, float, float], noise: float = 0.02, task_s: float = 0.0) -> Array:
    """Lines of `mean_tasks`: stretches of batches with so many executors, seconds per row, and rows per task."""
    generator = np.random.default_rng(1)
    parts = []
    for executors, row_s, rows in stretches:
        each_rows = rows * np.exp(generator.normal(0.0, noise, BATCHES))
        seconds = (task_s + row_s * each_rows) * np.exp(generator.normal(0.0, noise, BATCHES))
        zeros, tasks = np.zeros(BATCHES), np.full(BATCHES, 8.0)
        parts.append(np.column_stack([each_rows, zeros, seconds, tasks, np.full(BATCHES, executors)]))
    return np.concatenate(parts)


def level(part: Array) -> float:
    return float(np.mean(part[:, 2] / part[:, 0]))


def test_a_slowdown_before_executors_were_added_is_not_taken_for_their_effect() -> None:
    levelled = at_present_level(lines((4, 0.01, 100.0), (4, 0.02, 100.0), (8, 0.02, 100.0)))
    assert level(levelled[:BATCHES]) == pytest.approx(0.02, rel=0.05)
    assert level(levelled[-BATCHES:]) == pytest.approx(0.02, rel=0.05)


def test_a_change_that_came_with_more_executors_is_left_to_the_fit() -> None:
    measured = lines((4, 0.01, 100.0), (8, 0.02, 100.0))
    assert np.array_equal(at_present_level(measured), measured)


def test_with_one_number_of_executors_nothing_changes() -> None:
    measured = lines((4, 0.01, 100.0), (4, 0.02, 100.0))
    assert np.array_equal(at_present_level(measured), measured)


def test_several_steps_add_up() -> None:
    levelled = at_present_level(lines((4, 0.01, 100.0), (4, 0.02, 100.0), (8, 0.02, 100.0), (8, 0.01, 100.0)))
    for start in range(0, len(levelled), BATCHES):
        assert level(levelled[start : start + BATCHES]) == pytest.approx(0.01, rel=0.05)


def test_fewer_seconds_per_row_because_of_more_rows_are_no_step() -> None:
    measured = lines((4, 0.01, 100.0), (4, 0.01, 400.0), (8, 0.01, 400.0), task_s=2.0)
    assert np.array_equal(at_present_level(measured), measured)


def test_lines_that_are_not_known_are_passed_over() -> None:
    measured = lines((4, 0.01, 100.0), (4, 0.02, 100.0), (8, 0.02, 100.0))
    measured[3, 2] = np.nan
    measured[5, 0] = 0.0
    levelled = at_present_level(measured)
    assert np.isnan(levelled[3, 2])
    assert level(levelled[7:BATCHES]) == pytest.approx(0.02, rel=0.05)


@given(st.floats(0.0, 0.2), st.floats(1.5, 4.0), st.sampled_from([2.0, 8.0, 16.0]))
def test_the_latest_measurements_are_never_changed(noise: float, factor: float, executors: float) -> None:
    measured = lines((4, 0.01, 100.0), (4, 0.01 * factor, 100.0), (executors, 0.01, 100.0), noise=noise)
    levelled = at_present_level(measured)
    assert np.array_equal(levelled[-3:], measured[-3:])
    assert np.array_equal(levelled[:, [0, 1, 3, 4]], measured[:, [0, 1, 3, 4]])
