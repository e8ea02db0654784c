"""What `homeostat bench noise` counts with."""

from __future__ import annotations

import pytest

from homeostat.lab.bench.noise import capacity_per_s, wilson
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, Scenario, WorkloadSpec


def test_wilsons_interval_holds_the_share_and_narrows_with_more_trials() -> None:
    low, high = wilson(5, 10)
    assert low < 0.5 < high
    narrow_low, narrow_high = wilson(500, 1000)
    assert narrow_high - narrow_low < high - low
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)


def test_capacity_is_the_largest_load_that_the_slowest_stage_can_process() -> None:
    stages = (
        ComponentSpec("lines", "source", rate_per_s=10_000.0),
        ComponentSpec("count", inputs=("lines",), parallelism=4, rate_per_s=50.0),
    )
    scenario = Scenario("noise", "", DataflowSpec(), 600.0, stages, WorkloadSpec("constant", 100.0))
    assert capacity_per_s(scenario) == pytest.approx(200.0, rel=0.1)
