"""The formulas of the paper and of Heron. tests/policies/test_paper.py has them in the loop."""

from __future__ import annotations

import pytest

from homeostat.core.causes import OVER_PROVISIONED
from homeostat.core.configuration import PARALLELISM, Knob
from homeostat.core.findings import Diagnosis
from homeostat.resolvers.paper_actions import (
    FENCE,
    ScaleDown,
    heron_stage_pressure,
    scale_down_target,
    scale_up_target,
)
from support.stages import stage


@pytest.mark.parametrize(("pressure", "now", "target"), [(0.0, 4, 4), (0.5, 4, 8), (0.75, 2, 8), (1.0, 2, 10)])
def test_scale_up_adds_what_is_held_back_and_at_most_the_fence(pressure: float, now: int, target: int) -> None:
    assert scale_up_target(pressure, now) == target
    assert target <= now * (1 + FENCE)


def test_heron_clamps_the_sum_over_the_instances() -> None:
    assert heron_stage_pressure([400.0, 100.0]) == 0.5
    assert heron_stage_pressure([999.0, 999.0]) == 0.999


@pytest.mark.parametrize(("now", "target"), [(10, 8), (3, 2), (2, 1), (1, 1)])
def test_scale_down_removes_at_least_one_but_keeps_the_minimum(now: int, target: int) -> None:
    assert scale_down_target(now, 0.8) == target


def test_an_idle_component_shrinks_by_the_factor() -> None:
    (proposal,) = ScaleDown().resolve(stage(100.0, 10), [Diagnosis(OVER_PROVISIONED, "split")])
    assert proposal.patch.values == {Knob(PARALLELISM, "split"): 8}
    assert proposal.prediction is not None
    assert proposal.prediction.text == "split can process -20% rows"
