"""How many steps to the right size: a few of the 36 runs, and E7 exactly."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.lab.bench.convergence import LEAST_START, MOST_START, QUERIES, Run, drawn_starts, one, summary
from homeostat.sim.scenario import catalogue

pytestmark = pytest.mark.slow


def test_e7_takes_one_step_to_the_known_minimum() -> None:
    run = one(catalogue.load("E7"), "provisioning")
    assert run.steps == 1
    assert (run.final["flatmap"], run.final["count"]) == (10, 20)


def test_there_are_thirty_six_runs_of_various_shape() -> None:
    assert len(drawn_starts()) == 36
    assert len({len(query.sources) + len(query.stages) for query in QUERIES}) >= 4


def test_starts_and_optima_are_drawn_at_random_and_the_same_every_time() -> None:
    starts = drawn_starts()
    assert starts == drawn_starts()
    assert starts != drawn_starts(2)
    assert len({start for _, start in starts}) > 10
    assert all(LEAST_START <= start <= MOST_START for _, start in starts)
    fractions = np.array([stage.instances % 1.0 for query, _ in starts for stage in query.stages])
    assert np.histogram(fractions, bins=4, range=(0.0, 1.0))[0].min() > len(fractions) / 8, "not always half-way"


@pytest.mark.parametrize(("query", "start"), [("Q3", 8), ("Q1", 28)])
def test_growing_and_shrinking_take_one_step_and_at_most_one_instance_too_many(query: str, start: int) -> None:
    chosen = next(each for each in QUERIES if each.name == query)
    run = one(chosen.scenario(start, "none"), "provisioning")
    assert run.converged
    assert run.steps == 1
    assert min(run.above.values()) >= 0
    assert max(run.above.values()) <= 1


def test_the_summary_counts_what_the_target_asks_for() -> None:
    good = [Run("a", "p", 1, True, {"x": 4.0}, {"x": 1.0}, 0.0)] * 34
    slow = [Run("b", "p", 2, True, {"x": 4.0}, {"x": 0.0}, 0.0)] * 2
    assert summary([*good, *slow])["accepted"]
    assert not summary([*good[1:], *slow, slow[0]])["accepted"]
    assert not summary([*good, slow[0], Run("d", "p", 1, False, {"x": 3.0}, {"x": 0.0}, 900.0)])["accepted"]
    assert not summary([*good, slow[0], Run("c", "p", 1, True, {"x": 5.0}, {"x": 2.0}, 0.0)])["accepted"]
