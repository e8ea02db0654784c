"""Files that batches read and wrote, from SQL events in the format of Spark 4.3."""

from __future__ import annotations

import math
from typing import Any

from homeostat.core.observation import FileSample
from homeostat.spark.outside.logged_files import LoggedFiles

WRITING = {
    "nodeName": "Execute InsertIntoHadoopFsRelationCommand",
    "metrics": [
        {"name": "number of written files", "accumulatorId": 38, "metricType": "sum"},
        {"name": "written output", "accumulatorId": 39, "metricType": "size"},
        {"name": "number of output rows", "accumulatorId": 40, "metricType": "sum"},
    ],
}
READING = {"nodeName": "Scan", "metrics": [{"name": "number of files read", "accumulatorId": 50}], "children": []}


def started(number: int, batch: int, *plans: dict[str, Any]) -> dict[str, Any]:
    description = f"words\nid = q\nrunId = run-1\nbatch = {batch}"
    return {"executionId": number, "description": description, "sparkPlanInfo": {"metrics": [], "children": plans}}


def test_the_executions_of_a_batch_are_added_up() -> None:
    files = LoggedFiles()
    files.started(started(1, 4, WRITING))
    files.started(started(2, 4, READING))
    files.started(started(3, 5, READING))
    files.counted({"executionId": 1, "accumUpdates": [[38, 2], [40, 100], [39, 1370]]})
    files.counted({"executionId": 2, "accumUpdates": [[50, 7]]})
    files.counted({"executionId": 3, "accumUpdates": [[50, 100]]})
    files.counted({"executionId": 99, "accumUpdates": [[50, 100]]})
    sample = files.of_batch("run-1", 4)
    assert (sample.read, sample.written, sample.written_bytes) == (7.0, 2.0, 1370.0)
    assert math.isnan(sample.read_bytes)


def test_metrics_of_a_plan_that_was_changed_count_too_and_those_without_a_value_are_unknown() -> None:
    files = LoggedFiles()
    files.started(started(1, 4))
    files.replanned({"executionId": 1, "sparkPlanInfo": READING})
    assert str(files.of_batch("run-1", 4)) == str(FileSample())
    files.counted({"executionId": 1, "accumUpdates": [[50, 3]]})
    assert files.of_batch("run-1", 4).read == 3.0


def test_an_execution_within_a_batch_belongs_to_it_whatever_its_description() -> None:
    files = LoggedFiles()
    files.started({**started(1, 4), "rootExecutionId": 1})
    files.started({**started(2, 4, READING), "rootExecutionId": 1, "description": "my own text"})
    files.counted({"executionId": 2, "accumUpdates": [[50, 3]]})
    assert files.of_batch("run-1", 4).read == 3.0
