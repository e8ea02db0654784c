"""The loads of `homeostat bench duel`: the end of a trace, scaled, with its beginning as history."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.core.errors import ConfigError
from homeostat.lab.bench.duel_loads import DATAFLOW, MICROBATCH, PEAK_SHARE, built_in, from_trace, peak_per_s, scenario
from homeostat.recorded_data.load import Load
from homeostat.sim.scenario.spec import MicrobatchSpec
from homeostat.sim.simulation import build_engine


def trace(minutes: int = 300) -> Load:
    times_s = 60.0 * np.arange(minutes, dtype=np.float64)
    return Load("waves.csv", times_s, 50.0 + 40.0 * np.sin(times_s / 2_000.0))


def test_the_last_hours_are_simulated_and_the_rest_is_history() -> None:
    load = from_trace(trace(), hours=2.0)
    assert (load.times_s[0], load.duration_s) == (0.0, 7200.0)
    assert load.shares.max() == pytest.approx(1.0)
    history = load.history(1_000.0, seed=1)
    assert history is not None
    assert len(history.per_s) == 300 - 121
    assert history.end_s == 0.0
    # The history has the same scale, and noise of its own.
    assert max(history.per_s) == pytest.approx(1_000.0 * load.history_shares.max(), rel=0.15)


def test_a_short_trace_is_simulated_whole_and_has_no_history() -> None:
    load = from_trace(trace(), hours=18.0)
    assert load.duration_s == 299 * 60.0
    assert load.history(1_000.0, seed=1) is None


def test_too_few_values_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 30 are required"):
        from_trace(trace(), hours=0.2)


@pytest.mark.parametrize("engine", [MICROBATCH, DATAFLOW])
def test_the_peak_needs_about_three_quarters_of_the_largest_cluster(engine: str) -> None:
    application, most = built_in(engine, 24), 24
    contest = scenario(from_trace(trace(), 2.0), application, most, None, faulty=True)
    needed = build_engine(contest).needed_parallelism(peak_per_s(application, most))
    assert max(needed.values()) == pytest.approx(PEAK_SHARE * most, abs=2)
    assert {fault.kind for fault in contest.faults} == {"slow-instance", "crash"}


def test_all_contenders_can_start_with_everything() -> None:
    application = built_in(MICROBATCH, 24)
    contest = scenario(from_trace(trace(), 2.0), application, 24, 24, faulty=False)
    assert isinstance(contest.engine, MicrobatchSpec)
    assert contest.engine.executors == contest.engine.max_executors == 24
