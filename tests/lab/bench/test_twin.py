"""`homeostat bench twin` compares the same things on both engines."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import cast

import numpy as np
import pytest

from homeostat.core.errors import HomeostatError
from homeostat.lab.bench import twin
from homeostat.lab.bench.twin import (
    FITTED,
    HELD_OUT,
    ROUNDS,
    SKIPPED,
    Setup,
    held_out_json,
    in_turn,
    is_accepted,
    settled_seconds,
    twin_seconds,
)
from homeostat.lab.bench.twin_experiments import TRIGGER_S
from homeostat.recorded_data.run import RecordedBatch, RecordedRun
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.workload import Workload

pytestmark = pytest.mark.slow

# About what is fitted to the word count: a millisecond a row, and half a second for the driver.
WORDCOUNT = Scenario(
    name="wordcount",
    title="as fitted",
    engine=MicrobatchSpec(trigger_s=TRIGGER_S, executors=2),
    duration_s=100.0,
    components=(
        ComponentSpec("work", "source", parallelism=12, rate_per_s=750.0, task_s=0.03, selectivity=0.3),
        ComponentSpec("count", inputs=("work",), parallelism=4, rate_per_s=50_000.0, keyed=True, stateful=True),
    ),
    workload=WorkloadSpec("constant", 1000.0),
    service_noise=Noise(0.05, 0.2),
)


def test_what_is_held_out_was_not_fitted() -> None:
    assert not set(FITTED) & set(HELD_OUT)


def test_fitted_and_held_out_setups_take_turns_in_every_round() -> None:
    order = list(in_turn(FITTED, HELD_OUT))
    rounds = [[setup for turn, setup in order if turn == number] for number in range(1, ROUNDS + 1)]
    assert [setup for _, setup in order] == [setup for its in rounds for setup in its]
    for its in rounds:
        assert set(its) == {*FITTED, *HELD_OUT}
        assert all((one in FITTED) != (after in FITTED) for one, after in pairwise(its))
    assert rounds[0] != rounds[1]
    assert order == list(in_turn(FITTED, HELD_OUT))


def test_experiments_alone_need_nothing_held_out() -> None:
    assert {setup for _, setup in in_turn(FITTED, ())} == set(FITTED)


def test_the_first_batches_of_every_run_do_not_count() -> None:
    batches = [
        RecordedBatch(run, number, started_s=0.0, seconds=9.0 if number < SKIPPED else 2.0, rows=1.0)
        for run in ("first", "second")
        for number in range(SKIPPED + 2)
    ]
    recorded = RecordedRun("word count", "words", components=(), batches=tuple(batches), executors=())
    assert settled_seconds(recorded).tolist() == [2.0] * 4


def test_a_wave_is_another_setup_whose_load_goes_up_and_down() -> None:
    steady, waving = Setup(2, 500.0), Setup(2, 500.0, wave=0.4)
    assert waving.name == "2 executors, 500 rows/s ± 40%"
    assert waving.name != steady.name
    rates = [Workload(waving.workload, seed=1).mean_per_s(at_s) for at_s in range(60)]
    assert (min(rates), max(rates)) == pytest.approx((300.0, 700.0), rel=0.01)
    assert {Workload(steady.workload, seed=1).mean_per_s(at_s) for at_s in range(60)} == {500.0}


@pytest.fixture
def few_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the simulated runs: enough where their spread does not matter."""
    monkeypatch.setattr(twin, "MANY_SEEDS", twin.MANY_SEEDS[:5])


def test_batches_like_the_simulated_ones_are_covered_and_slower_ones_are_not() -> None:
    setup = Setup(2, 700.0)
    like = twin_seconds(WORDCOUNT, setup)
    figures = held_out_json(WORDCOUNT, {setup: like})
    assert figures["fit_accepted"]
    assert figures["coverage"] == pytest.approx(0.8, abs=0.05)
    other = held_out_json(WORDCOUNT, {setup: like, Setup(3, 700.0): np.full(len(like), 99.0)})
    assert not other["fit_accepted"]
    assert other["held_out"]["3 executors, 700 rows/s"]["coverage"] == 0.0


def test_it_is_accepted_only_if_the_experiments_came_out_the_same_too() -> None:
    same, other = ({"same_actions": like, "same_executors": True} for like in (True, False))
    assert is_accepted({"fit_accepted": True, "experiments": {"E1": same}})
    assert not is_accepted({"fit_accepted": True, "experiments": {"E1": same, "E2": other}})
    assert not is_accepted({"fit_accepted": False, "experiments": {"E1": same}})
    assert is_accepted({"experiments": {"E1": same}})
    assert not is_accepted({"fit_accepted": False})


@pytest.mark.usefixtures("few_seeds")
def test_a_run_without_batches_is_reported_as_such() -> None:
    with pytest.raises(HomeostatError, match="too few batches ended with 2 executors"):
        held_out_json(WORDCOUNT, {Setup(2, 700.0): np.empty(0)})


@pytest.mark.usefixtures("few_seeds")
def test_more_rows_and_fewer_executors_make_longer_batches() -> None:
    def usual(setup: Setup) -> float:
        return float(np.median(twin_seconds(WORDCOUNT, setup)))

    assert usual(Setup(4, 1000.0)) < usual(Setup(2, 1000.0)) < usual(Setup(2, 1200.0))


@pytest.mark.usefixtures("few_seeds")
def test_how_cold_the_simulated_executors_were_does_not_matter() -> None:
    def late(warm_up: float) -> float:
        engine = replace(cast(MicrobatchSpec, WORDCOUNT.engine), warm_up=warm_up)
        return float(np.percentile(twin_seconds(replace(WORDCOUNT, engine=engine), Setup(2, 800.0)), 90))

    assert late(6.0) == pytest.approx(late(1.0), rel=0.01)
