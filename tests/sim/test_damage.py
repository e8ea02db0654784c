"""Measurements that are lost or replaced by nonsense."""

from __future__ import annotations

import numpy as np

from homeostat.core.observation import Observation
from homeostat.sim.damage import NONSENSE, damage
from homeostat.sim.random_streams import stream
from homeostat.sim.scenario.spec import FaultSpec
from support.troubled_runs import costs, last

SAMPLE = last()
LOST = np.array([np.nan])


def damaged(spec: FaultSpec, seed: int = 1) -> Observation:
    return damage(SAMPLE, spec, LOST, stream(seed, "damage"))


def test_a_share_of_every_column_is_lost() -> None:
    samples = [damaged(FaultSpec("metric-gap", share=0.3), seed) for seed in range(50)]
    for column in ("cpu_s", "gc_s", "attempts"):
        lost = np.concatenate([np.isnan(getattr(costs(sample), column)) for sample in samples])
        assert 0.2 < lost.mean() < 0.4


def test_damage_at_one_component_leaves_the_others_and_the_driver_alone() -> None:
    sample = damaged(FaultSpec("metric-gap", share=1.0, component="lines"))
    assert np.isnan(costs(sample, "lines").cpu_s).all()
    assert costs(sample).cpu_s.tolist() == costs(SAMPLE).cpu_s.tolist()
    assert (sample.driver, sample.hosts, sample.states) == (SAMPLE.driver, SAMPLE.hosts, SAMPLE.states)


def test_what_was_not_measured_is_not_damaged() -> None:
    sample = damage(SAMPLE, FaultSpec("garbage-metrics", share=1.0), NONSENSE, stream(1, "damage"))
    assert sample.files is SAMPLE.files
    assert sample.workers.ids == SAMPLE.workers.ids
