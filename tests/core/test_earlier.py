"""The observations that are kept of the past."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from homeostat.core.cycle import step
from homeostat.core.earlier import Earlier
from homeostat.core.events import EngineChanged
from homeostat.testing import instances, observations, play
from support.growing_loop import ENGINE, OBSERVED, SPLIT, policy


def kept_after(count: int, tasks: int = 2) -> list[int]:
    earlier = Earlier()
    for observation in observations(count, {"split": instances([1.0] * tasks, 0.1)}):
        earlier = earlier.after(observation)
    return [observation.batch for observation in earlier.observations]


def test_all_are_kept_at_first_and_then_fewer_at_even_distances() -> None:
    assert kept_after(40) == list(range(40))
    for count in (100, 400, 1500):
        batches = kept_after(count)
        assert 24 <= len(batches) <= 48
        assert batches[0] == 0
        assert batches[-1] >= count - 64
        assert len(set(np.diff(batches))) == 1


def test_the_oldest_are_forgotten_after_hours() -> None:
    batches = kept_after(4000)
    assert batches[0] > 2000
    assert len(batches) == 48


def test_fewer_are_kept_of_huge_stages_but_always_some() -> None:
    assert 8 <= len(kept_after(60, 10_000)) <= 16
    assert len(kept_after(20, 200_000)) >= 4


def test_batches_without_rows_tell_nothing() -> None:
    (observation,) = observations(1, {"split": instances([1.0], 0.1)})
    empty = replace(observation, flows=tuple(replace(flow, rows=0.0) for flow in observation.flows))
    assert Earlier().after(empty).observations == ()


def test_they_outlast_a_change_of_the_configuration_but_not_of_the_topology() -> None:
    state = play(policy(), ENGINE, OBSERVED[:4], mode="observe").state
    kept = state.earlier.observations
    assert kept
    values = replace(ENGINE.configuration, values={**ENGINE.configuration.values, SPLIT: 7})
    other, _, _ = step(policy(), state, [EngineChanged(ENGINE.topology, values, ENGINE.capabilities, 50.0)], 50.0)
    assert other.earlier.observations == kept
    smaller = replace(ENGINE.topology, components=ENGINE.topology.components[:1])
    state_after, _, _ = step(policy(), state, [EngineChanged(smaller, values, ENGINE.capabilities, 60.0)], 60.0)
    assert state_after.earlier.observations == ()
