"""ContTune doubles everything under back-pressure, then shrinks by what earlier sizes could process."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.observation import Observation
from homeostat.policies.peers import ContTuneSettings, conttune
from homeostat.policies.peers.conttune import observed_abilities, smallest
from homeostat.policies.peers.measurements import units
from homeostat.testing import instances, observations, view_of
from support.one_thought import Columns, chain, proposed_values, think, think_batches
from support.published_abilities import QUERY_1
from support.trajectories import path, run

ALL = ("source", "flatmap", "count")


def all_at(size: int) -> dict[str, int]:
    return {f"parallelism.{name}": size for name in ALL}


def test_the_published_observations_give_the_published_parallelism() -> None:
    """Eleven for 4 million rows per second, one away from the ten that were observed: trusted from α = 1 on."""
    assert smallest(4e6, QUERY_1, most=26, linear=13, alpha=1) == 11
    assert smallest(4e6, QUERY_1, most=26, linear=13, alpha=0) == 13


def test_the_process_never_recommends_more_than_the_big_phase_found() -> None:
    assert smallest(9e6, QUERY_1, most=26, linear=40, alpha=3) == 26
    assert smallest(1_000.0, {}, most=8, linear=12, alpha=3) == 8


def test_e7_doubles_until_nothing_is_held_back_and_then_shrinks_once() -> None:
    sizes = path(run("E7", conttune()), "flatmap", "count")
    assert sizes[:-1] == [(2, 2), (4, 4), (8, 8), (16, 16), (32, 32)]
    assert sizes[-1] in [(10, 20), (11, 20)]


def held_back(size: int, share: float) -> dict[str, Columns]:
    """Ten seconds each, of which `count` held its senders back for a share."""
    tasks = chain(size, 9.0)
    return {**tasks, "count": {**tasks["count"], "pressured_s": [10.0 * share] * size}}


def test_one_component_under_back_pressure_doubles_all_of_them() -> None:
    assert proposed_values(think(conttune(), held_back(4, 0.3))) == all_at(8)
    assert proposed_values(think(conttune(), held_back(4, 0.05))) == {}
    later = conttune(ContTuneSettings(back_pressure=0.5))
    assert proposed_values(think(later, held_back(4, 0.3))) == {}


def test_batches_that_take_longer_than_their_trigger_are_back_pressure() -> None:
    tasks = {name: {"run_s": [9.0] * 4} for name in ALL}
    assert proposed_values(think_batches(conttune(), seconds=11.0, tasks=tasks)) == {"executors.app": 8}
    assert proposed_values(think_batches(conttune(), seconds=9.9, tasks=tasks)) == {}


def test_what_is_little_used_shrinks_to_the_ability_that_the_process_expects() -> None:
    """Ten instances of 200 rows/s each. Only ten were observed, so one instance less is expected to do 92 % of it."""

    def at(arrival_per_s: float, low_use: float = 0.99, headroom: float = 0.0, alpha: int = 3) -> float:
        policy = conttune(ContTuneSettings(low_use=low_use, headroom=headroom, alpha=alpha))
        return proposed_values(think(policy, chain(10, 5.0), arrival_per_s=arrival_per_s)).get("parallelism.count", 10)

    assert at(1_700.0) == 9
    assert at(1_700.0, headroom=0.15) == 10
    assert at(1_700.0, low_use=0.4) == 10, "half of the time is in use"
    assert at(900.0) == 7, "three away from ten"
    assert at(900.0, alpha=2) == 5, "too far from ten: DS2's rule"
    assert at(500.0) == 3


def test_each_parallelism_counts_with_the_mean_of_its_latest_observations() -> None:
    """Four instances that became twice as fast two minutes ago."""

    def later(observation: Observation) -> Observation:
        if observation.at_s <= 180.0:
            return observation
        sample = observation.tasks["count"]
        return replace(observation, tasks={**observation.tasks, "count": replace(sample, run_s=sample.run_s / 2.0)})

    tasks = {"lines": instances(1000.0, 2.0, rows_out=2000.0), "count": instances([1000.0] * 4, 5.0)}
    view = view_of([later(each) for each in observations(30, tasks, arrival_per_s=100.0)])
    count = units(view)[1]
    assert observed_abilities(view, count, interval_s=60.0, top_k=2) == {4: pytest.approx(1_600.0)}
    assert observed_abilities(view, count, interval_s=60.0, top_k=4) == {4: pytest.approx(1_200.0)}
    assert observed_abilities(view, count, interval_s=600.0, top_k=4) == {}, "no interval is over yet"
