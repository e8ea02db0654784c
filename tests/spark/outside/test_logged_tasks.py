"""Tasks from a log of Spark 4.3, compared with what its REST API answered about the same stage."""

from __future__ import annotations

import json
from typing import Any

from homeostat.spark.outside.logged_tasks import read_attempt
from homeostat.spark.sense.task_answers import OtherAttempt, Task, TaskList
from support.paths import RECORDED

BOTH: Any = json.loads((RECORDED / "failing_task.json").read_text())


def test_the_log_says_the_same_as_the_rest_api() -> None:
    listed = TaskList.read(BOTH["rest"]["tasks"].values())
    attempts = [read_attempt(event) for event in BOTH["log"]]
    logged = {task.index: task for task in attempts if isinstance(task, Task)}
    assert logged == {task.index: task for task in listed.successful}
    assert tuple(other for other in attempts if isinstance(other, OtherAttempt)) == listed.others


def test_each_end_has_a_short_reason() -> None:
    (event,) = [event for event in BOTH["log"] if event["Task End Reason"]["Reason"] != "Success"]

    def reason(**end: Any) -> str:
        attempt = read_attempt({**event, "Task End Reason": end})
        assert isinstance(attempt, OtherAttempt)
        return attempt.reason

    lost = {"Executor ID": "1", "Exit Caused By App": True, "Loss Reason": "exit code 137"}
    assert reason(Reason="TaskKilled", **{"Kill Reason": "another attempt succeeded"}) == ""
    assert reason(Reason="TaskResultLost") == "TaskResultLost"
    assert reason(Reason="ExecutorLostFailure", **lost) == (
        "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: exit code 137"
    )
    address = {"Executor ID": "2", "Host": "127.0.0.3", "Port": 35281}
    blamed = reason(Reason="FetchFailed", **{"Block Manager Address": address})
    assert blamed == "FetchFailed: no shuffle blocks from executor 2 on 127.0.0.3"
