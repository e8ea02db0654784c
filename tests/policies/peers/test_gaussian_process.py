"""The surrogate of ContTune passes through the observations, and is the most likely one nearby."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.policies.peers.gaussian_process import FIRST_LENGTH, fitted
from support.published_abilities import QUERY_1


def test_it_passes_through_what_was_observed() -> None:
    process = fitted(list(QUERY_1), list(QUERY_1.values()))
    assert process.mean(list(QUERY_1)) == pytest.approx(list(QUERY_1.values()), rel=1e-6)


def test_the_published_load_needs_the_published_parallelism() -> None:
    """4 million rows per second need 10.64 in the figure of the README, so eleven instances are deployed."""
    process = fitted(list(QUERY_1), list(QUERY_1.values()))
    places = np.linspace(1.0, 26.0, 2_501)
    first = float(places[process.mean(places) >= 4e6][0])
    assert first == pytest.approx(10.64, abs=0.25)


def test_one_observation_does_not_change_the_length() -> None:
    process = fitted([10], [5_000.0])
    assert process.length == FIRST_LENGTH
    assert process.mean([10.0, 9.0]) == pytest.approx([5_000.0, 5_000.0 * np.exp(-0.5 / FIRST_LENGTH**2)])


def test_what_is_far_from_all_observations_is_unknown_and_so_nothing() -> None:
    assert fitted([10], [5_000.0]).mean([40.0]) == pytest.approx([0.0], abs=1e-3)
