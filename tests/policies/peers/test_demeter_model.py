"""What Demeter computes with."""

from __future__ import annotations

import math

import numpy as np
import pytest

from homeostat.policies.peers.demeter_model import bad_latency, efficient, forecast, recovery_s, segment


@pytest.mark.parametrize(("ratio", "bad"), [(1.0, False), (2.14, False), (2.15, True), (40.0, True), (0.0, False)])
def test_latencies_from_about_twice_the_lowest_are_bad(ratio: float, bad: bool) -> None:
    """tanh(log4 x) rounds to 1 from x = 4^0.549 on."""
    assert bad_latency(ratio) is bad


def test_the_time_to_recover_is_the_series_of_the_original() -> None:
    """What waits takes its share of time to process, and meanwhile more arrives: there it is a loop."""
    downtime_s, checkpoint_s, utilisation = 30.0, 10.0, 0.6
    wait_s = total_s = (downtime_s + checkpoint_s) * utilisation
    while wait_s > 1e-9:
        wait_s *= utilisation
        total_s += wait_s
    assert recovery_s(utilisation, downtime_s, checkpoint_s) == pytest.approx(downtime_s + total_s)
    assert recovery_s(0.0, downtime_s, checkpoint_s) == downtime_s
    assert recovery_s(1.0, downtime_s, checkpoint_s) == math.inf


def test_a_load_is_rounded_up_to_the_next_segment() -> None:
    edges = [segment(rate, 4_000.0, 10_000.0) for rate in (3_000.0, 4_000.0, 4_001.0, 14_000.0, 14_001.0)]
    assert edges == [4_000.0, 4_000.0, 14_000.0, 14_000.0, 24_000.0]
    assert segment(5_000.0, 4_000.0, 0.0) == 5_000.0


def test_neither_the_smallest_valid_size_nor_the_lowest_quarter_is_chosen() -> None:
    assert efficient([8, 12, 16, 20, 24], 1.25) == 12
    assert efficient([20, 24], 1.25) is None
    assert efficient([16], 1.25) == 16
    assert efficient([], 1.25) is None
    assert efficient(list(range(1, 25)), 1.25) == 7
    assert efficient(list(range(1, 25)), 1.0) == 1


def test_a_trend_goes_on_as_long_as_differences_explain_each_other() -> None:
    minutes = np.arange(240.0)
    wave = 1_000.0 + 400.0 * np.sin(2.0 * np.pi * minutes / 120.0)
    coming = 1_000.0 + 400.0 * np.sin(2.0 * np.pi * np.arange(240.0, 250.0) / 120.0)
    assert forecast(wave.tolist(), 10) == pytest.approx(coming, rel=0.1)


def test_noise_is_not_a_trend_and_a_short_series_stays_where_it_is() -> None:
    noise = 1_000.0 + np.random.default_rng(1).normal(0.0, 30.0, 300)
    assert forecast(noise.tolist(), 10) == pytest.approx(np.full(10, 1_000.0), rel=0.05)
    assert forecast([500.0, 700.0], 3).tolist() == [700.0] * 3


def test_only_what_was_measured_without_a_gap_counts() -> None:
    assert forecast([9_000.0, math.nan, 700.0], 2).tolist() == [700.0, 700.0]
    assert np.isnan(forecast([700.0, math.nan], 2)).all()
    assert np.isnan(forecast([], 2)).all()
