"""The ratio rule of Spark's DStreams."""

from __future__ import annotations

import pytest

from homeostat.policies.peers import (
    dstream,
)
from support.one_thought import proposed_values, think_batches
from support.trajectories import run


def test_dstream_adds_until_no_instance_is_nine_tenths_busy() -> None:
    result = run("E7", dstream())
    assert result.final_parallelism["flatmap"] in (11, 12)
    assert result.final_parallelism["count"] in (22, 23)


@pytest.mark.parametrize(("seconds", "target"), [(9.0, 5), (24.0, 6), (26.0, 7), (8.9, None), (3.1, None), (3.0, 3)])
def test_dstream_adds_the_rounded_ratio_and_removes_one(seconds: float, target: int | None) -> None:
    trace = think_batches(dstream(), seconds=seconds, executors=4)
    assert proposed_values(trace) == ({"executors.app": target} if target else {})
