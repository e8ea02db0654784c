"""Rows flow through bounded queues; a full one holds its senders back."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.sim.dataflow.fluid import Fluid
from homeostat.sim.scenario.spec import ComponentSpec

LINES = ComponentSpec("lines", "source", rate_per_s=100.0)
COUNT = ComponentSpec("count", inputs=("lines",), rate_per_s=10.0, queue_s=2.0)


def fluid(count_rows: float, replayable: bool = True) -> Fluid:
    flow = Fluid((LINES, COUNT), {"lines": np.ones(1), "count": np.ones(1)}, 1.0, replayable)
    flow.stages["lines"].set_capacity(np.array([100.0]))
    flow.stages["count"].set_capacity(np.array([count_rows]))
    return flow


def test_a_queue_never_exceeds_its_limit_and_no_row_is_lost() -> None:
    flow = fluid(count_rows=10.0)
    for _ in range(20):
        flow.step(30.0)
        assert flow.stages["count"].queue.sum() <= COUNT.queue_s * COUNT.rate_per_s + 1e-9
    count = flow.stages["count"]
    assert flow.pending_rows["lines"] + count.queue.sum() + count.rows.sum() == pytest.approx(20 * 30.0)
    assert count.pressured_s.sum() > 0


def test_a_fast_stage_holds_nobody_back() -> None:
    flow = fluid(count_rows=50.0)
    for _ in range(5):
        flow.step(10.0)
    assert flow.pending_rows["lines"] == 0
    assert flow.stages["count"].pressured_s.sum() == 0


@pytest.mark.parametrize(("replayable", "pending_rows"), [(True, 30.0), (False, 0.0)])
def test_rows_that_arrive_during_an_outage_wait_or_are_lost(replayable: bool, pending_rows: float) -> None:
    flow = fluid(10.0, replayable)
    flow.stand_still(30.0)
    assert flow.pending_rows == {"lines": pending_rows}


def test_a_resized_stage_keeps_its_queued_rows() -> None:
    count = fluid(10.0).stages["count"]
    count.queue[:] = 12.0
    count.resize(np.array([0.25, 0.75]))
    assert count.queue.tolist() == [3.0, 9.0]
