"""The cost of one step, of a simulated hour and of a plan: every figure is present. How fast they are is not tested."""

from __future__ import annotations

import pytest

from homeostat.lab.bench import control


@pytest.mark.slow
def test_every_number_is_there_and_consistent() -> None:
    messages: list[str] = []
    result = control.measure(sizes=(20, 40), steps=20, repeats=1, tell=messages.append)
    assert set(result["step_ms_p50"]) == set(result["step_ms_p99"]) == {"20", "40"}
    for size in ("20", "40"):
        assert 0 < result["step_ms_p50"][size] <= result["step_ms_p99"][size]
    low, high = result["sim_hour_s_range"]
    assert 0 < low <= result["sim_hour_s"] <= high
    assert result["sim_hour_instances"] == 40
    assert set(result["plan_s"]) == {"dataflow", "microbatch"}
    assert min(result["plan_s"].values()) > 0
    assert (result["plan_components"], result["plan_instances"]) == (50, 10_000)
    assert result["plan_accepted"] == (max(result["plan_s"].values()) <= 1.0)
    assert len(messages) == 4


def test_growth_is_the_steepest_between_two_sizes() -> None:
    assert control.growth_exponent({"10": 1.0, "100": 10.0, "1000": 10.0}) == 1.0
    assert round(control.growth_exponent({"10": 1.0, "100": 1.0, "1000": 100.0}), 6) == 2.0


def test_the_measured_application_has_the_size_it_is_named_after() -> None:
    for size in control.SIZES:
        components = control.scenario(size, 3600.0).components
        assert sum(component.parallelism for component in components) == size
    assert control.scenario(100, 3600.0).faults[0].component in {c.name for c in components}
