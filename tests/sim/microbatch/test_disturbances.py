"""What faults do to the parts of a batch at one moment."""

from __future__ import annotations

import pytest

from homeostat.sim.microbatch.disturbances import (
    CALM,
    NO_BURDEN,
    RETENTION_S,
    STATE_COST,
    disturbance,
    gc_share,
    strength,
)
from homeostat.sim.scenario.spec import FaultSpec
from support.troubled_runs import SCENARIO

COMPONENTS = SCENARIO.components


def test_no_faults_disturb_nothing() -> None:
    assert disturbance((), COMPONENTS, 0.0) == CALM


def test_faults_of_the_same_kind_add_up() -> None:
    now = disturbance((FaultSpec("slow-sink"), FaultSpec("slow-sink", seconds=1.0, job=True)), COMPONENTS, 0.0)
    assert (now.sink_s, now.sink_job) == (6.0, True)


def test_a_fault_grows_by_its_share_per_hour() -> None:
    fault = FaultSpec("slow-planning", at_s=600.0, seconds=2.0, growth=0.5)
    assert [strength(fault, t) for t in (600.0, 4200.0, 7800.0)] == [1.0, 1.5, 2.0]
    assert disturbance((fault,), COMPONENTS, 4200.0).planning_s == 3.0


def test_a_fault_weighs_on_the_components_that_it_concerns() -> None:
    now = disturbance((FaultSpec("slow-network", row_s=0.1),), COMPONENTS, 0.0)
    assert now.burden("count").fetch_row_s == 0.1
    assert now.burden("lines") == NO_BURDEN


def test_garbage_collection_grows_with_used_over_free_memory() -> None:
    assert [gc_share(use) for use in (0.0, 0.5, 0.9)] == [0.0, pytest.approx(0.1), pytest.approx(0.9)]
    assert gc_share(5.0) < 10.0


def test_contention_multiplies_on_a_host() -> None:
    faults = (FaultSpec("contention", share=0.5), FaultSpec("contention", host="host-1", share=0.5))
    now = disturbance(faults, COMPONENTS, 0.0)
    assert [now.cpu_share(host) for host in ("host-0", "host-1")] == [0.5, 0.25]


def test_a_state_that_is_twice_as_large_makes_rows_dearer() -> None:
    stalled = disturbance((FaultSpec("stalled-watermark"),), COMPONENTS, RETENTION_S)
    growing = disturbance((FaultSpec("growing-state", growth=1.0),), COMPONENTS, 3600.0)
    for now in (stalled, growing):
        assert now.burden("count").state_growth == 2.0
        assert now.burden("count").row_factor == pytest.approx(1.0 + STATE_COST)
    assert stalled.watermark_stalled_s == 0.0
