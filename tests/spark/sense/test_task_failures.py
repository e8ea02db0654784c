"""Failed attempts by component, partition and reason."""

from __future__ import annotations

from homeostat.core.observation import TaskFailure
from homeostat.spark.sense.stage_names import RanStage
from homeostat.spark.sense.stage_run import StageRun
from homeostat.spark.sense.task_answers import OtherAttempt
from homeostat.spark.sense.task_failures import MOST_FAILURES, task_failures


def failing(*failures: tuple[int, str]) -> StageRun:
    return StageRun(RanStage(1, 1), 100, (), failures=tuple(OtherAttempt(p, p, 1.0, reason) for p, reason in failures))


def test_attempts_that_failed_alike_are_one_entry() -> None:
    failures, left_out = task_failures({"scan": [failing((3, "OOM"), (3, "OOM")), failing((3, "OOM"), (4, "OOM"))]})
    assert failures == (TaskFailure("scan", 3, "OOM", 3), TaskFailure("scan", 4, "OOM", 1))
    assert left_out == 0


def test_of_too_many_the_most_frequent_are_listed_and_the_others_counted() -> None:
    many = failing(*((partition, "OOM") for partition in range(MOST_FAILURES + 5)), (MOST_FAILURES + 4, "OOM"))
    failures, left_out = task_failures({"scan": [many]})
    assert len(failures) == MOST_FAILURES
    assert failures[0] == TaskFailure("scan", MOST_FAILURES + 4, "OOM", 2)
    assert left_out == 5
