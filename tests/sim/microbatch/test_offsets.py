"""Offsets count whole rows, up to the limit of a batch."""

from __future__ import annotations

from math import inf

from homeostat.sim.microbatch.offsets import Offsets
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.sim.workload import Workload


def offsets() -> Offsets:
    return Offsets(Workload(WorkloadSpec(rate_per_s=10.0), seed=1), ("a", "b"))


def test_sources_share_the_load_and_a_batch_takes_what_is_there() -> None:
    two = offsets()
    assert two.latest(10.0) == 50
    assert two.admit(inf, 10.0) == {"a": 50, "b": 50}
    two.commit({"a": 50, "b": 20})
    assert two.admit(inf, 10.0) == {"a": 0, "b": 30}


def test_a_limit_is_for_all_sources_together() -> None:
    assert offsets().admit(30, 10.0) == {"a": 15, "b": 15}
