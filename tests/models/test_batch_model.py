"""How long batches took: a fixed part, and stages whose tasks ran in waves."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from homeostat.core.view import View
from homeostat.models.batch_model import batch_time
from homeostat.models.capacity import (
    loads,
)
from homeostat.models.model_fitting import batch_model
from homeostat.testing import instances, observations, view_of


def sixty_partitions(executors: int) -> View:
    """Six seconds of one-second tasks in as many waves as the slots ask for, and two seconds beside them."""
    waves = math.ceil(60 / executors)
    tasks = {"lines": instances([100.0] * 4, 0.1, finish_s=0.1), "count": instances([10.0] * 60, 1.0, finish_s=waves)}
    flow = {"arrival_per_s": 60.0, "rows": 600.0, "seconds": waves + 2.1, "trigger_s": 10.0}
    return view_of(observations(8, tasks, executors=executors, **flow))


def replayed(view: View, executors: int, **partitions: int) -> float:
    """Seconds of a batch like the latest ones, with so many executors and other partitions where they are named."""
    model = batch_model(view)
    assert model is not None
    return model.plain_s(view.current[-1].rows, replace(model.setup, executors=executors, partitions=partitions))


@pytest.mark.parametrize(("slots", "waves"), [(10, 6), (11, 6), (12, 5), (20, 3), (30, 2)])
def test_a_batch_runs_in_waves(slots: int, waves: int) -> None:
    """Predicted from ten slots: an eleventh wins nothing, a twelfth saves a wave."""
    now = batch_time(sixty_partitions(10))
    assert now is not None

    assert (now.bottleneck, now.stages["count"].partitions, now.slots) == ("count", 60, 10.0)
    assert now.fixed_s == pytest.approx(2.0)
    assert now.seconds == pytest.approx(8.1)
    assert replayed(sixty_partitions(10), slots) == pytest.approx(2.0 + 0.1 + waves)
    assert replayed(sixty_partitions(10), slots) == pytest.approx(replayed(sixty_partitions(slots), slots), abs=0.1)


def test_a_batch_is_never_shorter_than_its_longest_tasks() -> None:
    tasks = {"lines": instances([100.0] * 4, 0.1, finish_s=0.1), "count": instances([10.0] * 8, 1.0, finish_s=2.0)}
    flow = {"arrival_per_s": 8.0, "rows": 80.0, "seconds": 4.1, "trigger_s": 10.0}
    assert replayed(view_of(observations(8, tasks, executors=4, **flow)), 4_000) == pytest.approx(2.0 + 1.1)


def test_more_partitions_make_shorter_tasks() -> None:
    """One task on one of four slots: slots alone win nothing, eight partitions on them do."""
    tasks = {"lines": instances([100.0], 0.1, finish_s=0.1), "count": instances([80.0], 8.0, finish_s=8.0)}
    flow = {"arrival_per_s": 8.0, "rows": 80.0, "seconds": 10.1, "trigger_s": 10.0}
    view = view_of(observations(8, tasks, executors=1, **flow))

    assert replayed(view, 4) == pytest.approx(replayed(view, 1))
    # Two waves of a second each, and the 20 ms that a task is taken to cost where its rows never varied.
    assert replayed(view, 4, count=8) == pytest.approx(2.0 + 0.1 + 2.0 + 7 / 8 * 2 * 0.02)


def test_more_partitions_do_not_cool_a_hot_key() -> None:
    tasks = {"count": instances([10.0, 10.0, 10.0, 90.0], [1.0, 1.0, 1.0, 9.0], finish_s=9.0)}
    flow = {"arrival_per_s": 12.0, "rows": 120.0, "seconds": 11.0, "trigger_s": 10.0}
    view = view_of(observations(8, tasks, executors=4, **flow))

    # Of its 90 rows ten are like those of the others, and are shared with more of them.
    assert replayed(view, 4) == pytest.approx(11.0)
    assert replayed(view, 8, count=16) == pytest.approx(2.0 + 8.0 + 1.0 / 4)


def test_empty_batches_tell_no_batch_time() -> None:
    view = view_of(observations(6, {}, executors=2, arrival_per_s=0.0, rows=0.0, seconds=0.1, trigger_s=10.0))

    assert batch_time(view) is None
    assert not any(load.is_known for load in loads(view).values())
