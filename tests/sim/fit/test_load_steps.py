"""The load of a recorded run comes back as steps of a constant rate."""

from __future__ import annotations

from homeostat.core.observation import NAN
from homeostat.sim.fit.load_steps import workload
from support.recorded_batches import batches


def test_load_comes_from_what_arrived_in_steps() -> None:
    arrived = [0.0, 1000.0, 2050.0, 4050.0, 6000.0, NAN, 9900.0]
    run = batches(*((100 + 10.0 * n, 5.0, 700.0, total, 0.0) for n, total in enumerate(arrived)))
    assert workload(run).steps == ((0.0, 102.5), (20.0, 197.5))


def test_load_of_a_source_that_tells_nothing_is_what_was_taken() -> None:
    run = batches(*((10.0 * n, 5.0, 500.0, NAN, NAN) for n in range(5)))
    assert workload(run).steps == ((0.0, 50.0),)
    assert workload(run[:1]).steps == ((0.0, 100.0),)
