"""The tasks of a stage, from an answer of Spark 4.3 about a stage whose first task failed once."""

from __future__ import annotations

import json
import math
from typing import Any

from homeostat.spark.sense.task_answers import TaskList
from support.paths import RECORDED

ANSWER: Any = json.loads((RECORDED / "failing_task.json").read_text())["rest"]


def test_a_task_says_what_it_spent_its_time_on() -> None:
    listed = TaskList.read(ANSWER["tasks"].values())
    (cost,) = [task.cost for task in listed.successful if task.index == 0]
    assert (cost.cpu_s, cost.gc_s, cost.deserialise_s, cost.delay_s) == (0.013126243, 0.15, 0.002, 0.017)
    assert (cost.shuffle_write_s, cost.shuffle_write_bytes, cost.shuffle_read_bytes) == (0.00045672, 3854.0, 0.0)
    assert (cost.peak_memory_bytes, cost.spilled_disk_bytes, cost.locality) == (262144.0, 0.0, 0.0)


def test_an_attempt_that_failed_has_a_reason_and_one_that_was_killed_has_none() -> None:
    listed = TaskList.read(ANSWER["tasks"].values())
    (failed,) = listed.others
    assert (failed.index, failed.seconds, failed.reason) == (0, 6.118, "ValueError: the first attempt fails")
    killed = [{**task, "status": "KILLED"} for task in ANSWER["tasks"].values() if task["status"] == "FAILED"]
    assert [other.reason for other in TaskList.read(killed).others] == [""]


def test_what_an_older_spark_does_not_report_is_unknown() -> None:
    (task, *_) = [task for task in ANSWER["tasks"].values() if task["status"] == "SUCCESS"]
    few = {name: value for name, value in task.items() if name not in ("schedulerDelay", "taskLocality", "partitionId")}
    (read,) = TaskList.read([few]).successful
    assert math.isnan(read.cost.delay_s)
    assert math.isnan(read.cost.locality)
    assert read.partition == read.index
