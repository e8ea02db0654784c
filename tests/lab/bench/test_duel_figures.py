"""What a duel is judged by, from a truth that is made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.lab.bench.duel_figures import dominates, lag_s, over_seeds, worst_pause_s
from homeostat.sim.truth import TruthSample


def sample(at_s: float, taken_per_s: float, pending_rows: float, span_s: float = 10.0) -> TruthSample:
    return TruthSample(at_s, span_s, 100.0, taken_per_s, pending_rows, True, {}, {})


def test_the_lag_is_the_time_from_arrival_to_the_end_of_the_batch() -> None:
    """Each batch ends with nothing waiting, so a row waits for at most ten seconds."""
    lags = lag_s([sample(10.0, 100.0, 0.0), sample(20.0, 100.0, 0.0)])
    assert lags == pytest.approx(np.concatenate([np.arange(9.5, 0, -1.0)] * 2))


def test_rows_that_wait_are_done_with_a_later_batch() -> None:
    truth = [sample(10.0, 0.0, 1_000.0), sample(20.0, 0.0, 2_000.0), sample(30.0, 300.0, 0.0)]
    assert lag_s(truth)[0] == pytest.approx(29.5)
    assert lag_s(truth[:2]).max() == pytest.approx(19.5)  # never done: at least until the end


def test_the_worst_pause_is_the_longest_time_without_a_row() -> None:
    truth = [sample(10.0, 100.0, 0.0), sample(20.0, 0.0, 0.0), sample(30.0, 0.0, 0.0), sample(45.0, 90.0, 0.0, 15.0)]
    assert worst_pause_s(truth) == 20.0


def run(violation_s: float, cost: float) -> dict[str, float]:
    return {"violation_s": violation_s, "cost_over_oracle": cost}


def test_better_in_both_dominates_and_a_trade_does_not() -> None:
    cheap, good = [run(20.0, 1.0), run(30.0, 1.1)], [run(10.0, 1.2), run(15.0, 1.3)]
    best = [run(10.0, 1.0), run(15.0, 1.1)]
    assert dominates(best, cheap)
    assert dominates(best, good)
    assert not dominates(cheap, good)
    assert not dominates(good, cheap)
    assert not dominates(best, best)


def test_figures_are_medians_with_an_interval_over_the_seeds() -> None:
    names = ("p95_lag_s", "p99_lag_s", "actions", "needless", "worst_pause_s", "cost_over_largest")
    summary = over_seeds([run(float(n), 1.0) | dict.fromkeys(names, 0.0) for n in range(1, 11)])
    assert summary["violation_s"] == {"median": 5.5, "low": 2.0, "high": 9.0}
