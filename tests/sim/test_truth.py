"""The smallest parallelism and what counts as healthy."""

from __future__ import annotations

import pytest

from homeostat.core.objective import Objective
from homeostat.sim.scenario.spec import ComponentSpec
from homeostat.sim.truth import is_healthy, loads, smallest_parallelism

LINES = ComponentSpec("lines", "source", rate_per_s=100.0, selectivity=2.0)
SPLIT = ComponentSpec("split", inputs=("lines",), rate_per_s=100.0)


def test_the_smallest_parallelism_is_just_enough() -> None:
    assert [smallest_parallelism(SPLIT, load) for load in (0.0, 100.0, 100.1, 950.0)] == [1, 1, 2, 10]


def test_selectivity_counts_in_the_load_of_later_stages() -> None:
    assert loads((LINES, SPLIT), 50.0) == {"lines": 50.0, "split": 100.0}


@pytest.mark.parametrize(("pending", "replayable", "healthy"), [(90.0, True, True), (110.0, True, False)])
def test_a_backlog_of_more_than_a_tick_is_not_healthy(pending: float, replayable: bool, healthy: bool) -> None:
    assert healthy is is_healthy(
        arrived_rows=100.0,
        taken_rows=100.0,
        pending_rows=pending,
        span_s=10.0,
        replayable=replayable,
        objective=Objective(),
    )
