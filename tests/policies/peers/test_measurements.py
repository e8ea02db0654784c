"""Load and speed of everything that one scaling knob drives."""

from __future__ import annotations

import math

import pytest

from homeostat.core.configuration import EXECUTORS_KNOB, PARALLELISM, Knob
from homeostat.policies.peers import measurements
from homeostat.testing import instances, observations, view_of

# 50 of 100 rows/s arrive at each count; it is busy for half of the 10 s.
TASKS = {"lines": instances(1000.0, 2.0, rows_out=2000.0), "count": instances([1000.0] * 2, 5.0)}


def test_each_component_of_a_dataflow_is_a_unit_with_its_true_rate() -> None:
    view = view_of(observations(6, TASKS, arrival_per_s=100.0))
    units = measurements.units(view)
    assert [(unit.component, unit.knob, unit.now) for unit in units] == [
        ("lines", Knob(PARALLELISM, "lines"), 1),
        ("count", Knob(PARALLELISM, "count"), 2),
    ]
    load = measurements.measure(view, units[1], measurements.recent(view, 60.0))
    assert load.instances == 2
    assert load.rate_per_s == pytest.approx(200.0)
    assert load.capacity_per_s == pytest.approx(400.0)
    assert load.busy == pytest.approx(0.5)


def test_demand_follows_what_each_component_makes_of_a_row() -> None:
    view = view_of(observations(6, TASKS, arrival_per_s=100.0))
    digests = measurements.recent(view, 60.0)
    loads = {unit.component: measurements.measure(view, unit, digests) for unit in measurements.units(view)}
    assert measurements.arrivals(view, digests) == {"lines": 100.0}
    assert measurements.demands(view, loads, {"lines": 100.0}) == pytest.approx({"lines": 100.0, "count": 200.0})


def test_all_stages_of_micro_batches_are_one_unit_that_is_named_after_the_longest() -> None:
    tasks = {"lines": instances([500.0] * 4, 0.5, finish_s=0.5), "count": instances([500.0] * 4, 2.0, finish_s=2.0)}
    view = view_of(observations(6, tasks, executors=4, seconds=3.0, trigger_s=10.0, rows=2000.0, arrival_per_s=200.0))
    (unit,) = measurements.units(view)
    assert (unit.component, unit.knob, unit.touched) == ("count", EXECUTORS_KNOB, ("lines", "count"))
    load = measurements.measure(view, unit, measurements.recent(view, 60.0))
    assert load.instances == 4
    assert load.demand == pytest.approx(0.3)


def test_nothing_is_measured_before_the_configuration_has_run_long_enough() -> None:
    view = view_of(observations(3, TASKS, arrival_per_s=100.0))
    assert measurements.recent(view, 60.0) == ()
    assert math.isnan(measurements.measure(view, measurements.units(view)[0], ()).rate_per_s)
