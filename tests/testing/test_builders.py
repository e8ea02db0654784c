"""The builders make what a plug-in sees in the loop."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from homeostat.core.configuration import EXECUTORS, SPREAD, Knob
from homeostat.core.objective import Objective
from homeostat.testing import blanked, instances, observations, view_of

TASKS = {"lines": instances(100.0, 1.0), "count": instances([60.0, 40.0], [6.0, 4.0], pending_rows=[5.0, 0.0])}


def test_a_dataflow_from_a_few_numbers() -> None:
    view = view_of(observations(5, TASKS, arrival_per_s=10.0), objective=Objective(lag_s=5.0))
    assert not view.micro_batch
    assert view.now_s == 50.0
    assert [component.name for component in view.topology] == ["lines", "count"]
    assert view.topology["count"].inputs == ("lines",)
    assert view.parallelism("count") == 2
    assert view.configuration[Knob(SPREAD, "count")] == 1
    assert len(view.current) == len(view.window) == 5
    assert view.window.tasks("count", "rows").tolist() == [[60.0, 40.0]] * 5
    assert view.flow("rows").tolist() == [100.0] * 5
    assert view.workers_of("count", (1,)) == ("count-1",)
    assert view.objective.lag_s == 5.0


def test_batches_share_their_executors() -> None:
    tasks = {"lines": instances([50.0] * 4, 0.5, finish_s=[0.5, 0.5, 1.0, 1.0])}
    view = view_of(observations(3, tasks, executors=2, seconds=[2.0, 2.5, 3.0], trigger_s=5.0, arrival_per_s=40.0))
    assert view.micro_batch
    assert view.configuration[Knob(EXECUTORS, "app")] == 2
    assert view.flow("seconds").tolist() == [2.0, 2.5, 3.0]
    assert view.workers_of("lines", (0, 2)) == ("exec-0",)
    assert np.isnan(view.window.tasks("lines", "pending_rows")).all()


def test_measurements_can_be_lost() -> None:
    measurements = observations(4, TASKS, arrival_per_s=10.0)
    view = view_of(blanked(measurements, "rows", component="count", last=1))
    assert np.isnan(view.column("count", "rows")).tolist() == [False, False, False, True]
    assert np.isfinite(view.flow("rows")).all()
    assert np.isnan(view_of(blanked(measurements)).flow("arrival_per_s")).all()


def test_what_was_built_cannot_be_changed() -> None:
    view = view_of(observations(2, TASKS))
    with pytest.raises(ValueError, match="read-only"):
        view.window.observations[0].tasks["count"].rows[0] = 7.0


def test_importing_the_builders_needs_no_test_library() -> None:
    code = "import sys, homeostat.testing; print('hypothesis' in sys.modules, 'pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
