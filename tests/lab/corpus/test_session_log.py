"""The log of an application is cut into one for each query, each with what the application had by then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from homeostat.lab.corpus.session_log import Cutter, SessionLog
from homeostat.lab.corpus.shrinking import LOG_START
from homeostat.spark.outside import event_log


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"Event": kind, **fields}


def added(executor: str) -> dict[str, Any]:
    return event(event_log.EXECUTOR_ADDED, **{"Executor ID": executor})


def removed(executor: str) -> dict[str, Any]:
    return event(event_log.EXECUTOR_REMOVED, **{"Executor ID": executor})


def test_each_query_gets_its_own_events_and_the_executors_that_live() -> None:
    start, a, b = event(LOG_START), "run-a", "run-b"
    manager = event(event_log.BLOCK_MANAGER_ADDED, **{"Block Manager ID": {"Executor ID": "driver"}})
    begin_a, end_a = event(event_log.QUERY_STARTED, runId=a), event(event_log.QUERY_TERMINATED, runId=a)
    begin_b, end_b = event(event_log.QUERY_STARTED, runId=b), event(event_log.QUERY_TERMINATED, runId=b)
    task_a, task_b, between = (event(event_log.TASK_END, number=number) for number in range(3))
    events = [
        start,
        manager,
        added("0"),
        added("1"),
        begin_a,
        task_a,
        removed("0"),
        added("2"),
        end_a,
    ]
    events += [between, begin_b, task_b, end_b]
    cutter = Cutter()
    cutter.take(events)
    cut = cutter.runs
    assert cut[a] == [start, manager, added("0"), added("1"), begin_a, task_a, removed("0"), added("2"), end_a]
    assert cut[b] == [start, manager, added("1"), added("2"), begin_b, task_b, end_b]


def test_a_log_is_followed_while_it_is_written(tmp_path: Path) -> None:
    first = [event(LOG_START), event(event_log.QUERY_STARTED, runId="a"), event(event_log.QUERY_TERMINATED, runId="a")]
    second = [event(event_log.QUERY_STARTED, runId="b"), event(event_log.QUERY_TERMINATED, runId="b")]
    file, log = tmp_path / "app-1.inprogress", SessionLog(tmp_path)
    plan = '{"Event":"SparkListenerSQLExecutionStart"}'
    file.write_text("".join(f"{line}\n" for line in [*map(as_line, first), plan]) + as_line(second[0])[:20])
    assert log.events_of("a") == first
    file.write_text("".join(f"{line}\n" for line in [*map(as_line, first), plan, *map(as_line, second)]))
    assert log.events_of("b") == [first[0], *second]


def as_line(event: dict[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":"))
