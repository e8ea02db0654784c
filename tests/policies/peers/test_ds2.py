"""DS2 sizes all operators at once from true rates."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from homeostat.core.observation import Observation
from homeostat.policies.peers import (
    Ds2Settings,
    ds2,
)
from support.one_thought import chain, only, proposed_values, think
from support.trajectories import path, run


def test_ds2_sizes_everything_in_one_step() -> None:
    assert path(run("E7", ds2()), "source", "flatmap", "count") == [(1, 10, 20)]


def test_ds2_propagates_what_the_sources_would_send() -> None:
    """300 rows/s arrive, one instance takes 200/s of useful time, flatmap doubles the rows: 1.5, 1.5 and 3."""
    tasks = {**chain(1, 5.0), "flatmap": {"rows": [1000.0], "rows_out": [2000.0], "run_s": [5.0]}}
    trace = think(ds2(), tasks, arrival_per_s=300.0, taken_per_s=100.0)
    assert proposed_values(trace) == {"parallelism.source": 2, "parallelism.flatmap": 2, "parallelism.count": 3}
    proposal = only(trace)
    assert proposal.component == "count"
    assert proposal.prediction is not None
    assert proposal.prediction.gain == pytest.approx(math.log(3))
    assert proposal.because[0].evidence.figures()["optimum"] == pytest.approx(3.0)


def test_ds2_headroom_and_least_change() -> None:
    def at(arrival_per_s: float, headroom: float = 0.0, min_change: int = 1) -> dict[str, float]:
        policy = ds2(Ds2Settings(headroom=headroom, min_change=min_change))
        return proposed_values(think(policy, chain(10, 5.0), arrival_per_s=arrival_per_s))

    assert at(2000.0) == {}
    assert at(2000.0, headroom=0.2) == {f"parallelism.{name}": 12 for name in ("source", "flatmap", "count")}
    assert at(2100.0, min_change=2) == {}
    assert at(2300.0, min_change=2) == {f"parallelism.{name}": 12 for name in ("source", "flatmap", "count")}


def test_ds2_waits_until_enough_intervals_agree() -> None:
    def late(observation: Observation) -> Observation:
        if observation.at_s <= 240.0:
            return observation
        return replace(observation, flows=(replace(observation.flows[0], arrival_per_s=4000.0),))

    def at(activation_intervals: int) -> dict[str, float]:
        policy = ds2(Ds2Settings(activation_intervals=activation_intervals))
        return proposed_values(think(policy, chain(10, 5.0), arrival_per_s=2000.0, damage=late))

    assert at(1)["parallelism.count"] == 20
    assert at(2) == {}


def test_ds2_ignores_what_was_measured_just_after_a_deployment() -> None:
    def at(ticks: int) -> dict[str, float]:
        settings = Ds2Settings(warm_up_intervals=2)
        return proposed_values(think(ds2(settings), chain(10, 5.0), arrival_per_s=4000.0, ticks=ticks))

    assert at(12) == {}
    assert at(19)["parallelism.count"] == 20


def test_ds2_corrects_sizes_that_its_model_finds_enough_but_that_do_not_keep_up() -> None:
    """2,000 rows/s arrive, and the true rates promise that ten instances process them. Only 1,000 are processed."""

    def at(ratio: float) -> dict[str, float]:
        policy = ds2(Ds2Settings(target_rate_ratio=ratio))
        return proposed_values(think(policy, chain(10, 5.0), arrival_per_s=2000.0, taken_per_s=1000.0))

    assert at(math.inf) == {}
    assert at(1.5) == {f"parallelism.{name}": 20 for name in ("source", "flatmap", "count")}


def test_ds2s_manager_does_not_deploy_one_instance_less() -> None:
    def at(min_shrink: int) -> dict[str, float]:
        policy = ds2(Ds2Settings(min_shrink=min_shrink))
        return proposed_values(think(policy, chain(10, 5.0), arrival_per_s=1800.0))

    assert at(1)["parallelism.count"] == 9
    assert at(2) == {}
