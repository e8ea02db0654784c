"""What recorded tasks say about each other."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.recorded_data.run import RecordedTasks


def tasks(*rows: tuple[str, float, float]) -> RecordedTasks:
    executor, start_s, finish_s = zip(*rows, strict=True)
    nothing = np.zeros(len(rows))
    return RecordedTasks(nothing, nothing, nothing, np.array(start_s), np.array(finish_s), np.array(executor))


def test_a_task_is_beside_those_of_other_executors_for_as_long_as_both_run() -> None:
    recorded_tasks = tasks(("1", 0.0, 4.0), ("2", 0.0, 2.0), ("3", 1.0, 2.0), ("2", 4.0, 5.0))
    assert recorded_tasks.executors == 3
    assert recorded_tasks.busy.tolist() == pytest.approx([1 + 2 / 4 + 1 / 4, 1 + 1 + 1 / 2, 3.0, 1.0])


def test_tasks_of_one_executor_count_once() -> None:
    recorded_tasks = tasks(("1", 0.0, 1.0), ("1", 0.0, 1.0), ("2", 0.0, 1.0))
    assert recorded_tasks.busy.tolist() == pytest.approx([2.0, 2.0, 2.0])
