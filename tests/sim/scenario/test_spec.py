"""What the values of a scenario compute."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.sim.scenario.spec import ComponentSpec


def test_selectivity_multiplies_the_rows() -> None:
    assert ComponentSpec("split", selectivity=3.0).rows_out(np.array([0.0, 10.0])).tolist() == [0.0, 30.0]


def test_tasks_that_merge_rows_send_fewer_of_many() -> None:
    few, many = ComponentSpec("count", combining=0.5).rows_out(np.array([100.0, 10_000.0]))
    assert few == pytest.approx(10.0)
    assert many == pytest.approx(100.0)
