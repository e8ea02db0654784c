"""Whether a finished batch kept up with its load."""

from __future__ import annotations

import pytest

from homeostat.core.objective import Objective
from homeostat.sim.microbatch.batch_reports import Finished, observation
from homeostat.sim.microbatch.batches import Batch


def finished(*, seconds: float = 8.0, pending_rows: int = 0, trigger_s: float = 10.0) -> Finished:
    """1,000 rows arrive in 10 s, and the batch takes them."""
    batch = Batch(7, {"lines": 1000}, {"lines": 1000}, started_s=100.0, driver_s=0.5, slowness=1.0)
    batch.added_s = 100.0 + seconds
    return Finished(batch, 100.0 + seconds, 10.0, trigger_s, 1000, {"lines": pending_rows})


@pytest.mark.parametrize(
    ("batch", "kept_up"),
    [
        (finished(), True),
        (finished(seconds=11.0), False),
        (finished(pending_rows=2000), True),
        (finished(pending_rows=2001), False),
        (finished(seconds=60.0, trigger_s=0.0), True),
        (finished(pending_rows=2001, trigger_s=0.0), False),
    ],
)
def test_a_batch_keeps_up_if_it_ends_in_time_and_leaves_little(batch: Finished, kept_up: bool) -> None:
    assert batch.kept_up(Objective()) is kept_up


def test_a_throughput_objective_that_is_reached_is_enough() -> None:
    late = finished(seconds=11.0)
    assert not late.kept_up(Objective())
    assert late.kept_up(Objective(throughput_per_s=50.0))


def test_the_observation_has_the_flow_of_the_batch() -> None:
    sample = observation(finished(pending_rows=5), [], [], slots=2, run="run-1")
    (flow,) = sample.flows
    assert (flow.rows, flow.seconds, flow.arrival_per_s, flow.pending_rows) == (1000.0, 8.0, 100.0, 5.0)
    assert (sample.batch, sample.at_s, sample.run) == (7, 108.0, "run-1")
