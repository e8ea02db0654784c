"""A shrunk log keeps what is read, loses what is not, and says nothing about the machine."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from homeostat.lab.corpus.shrinking import LOG_START, Scrubber, kept_events, shrink, write_log
from homeostat.spark.outside import event_log
from homeostat.spark.outside.event_log import EventLog
from homeostat.spark.outside.logged_run import UPDATED_KEYS, record
from support.paths import RECORDED

TASK = {
    "Event": event_log.TASK_END,
    "Stage ID": 3,
    "Task End Reason": {
        "Reason": "ExceptionFailure",
        "Class Name": "java.lang.Exception",
        "Description": "x" * 5000,
        "Stack Trace": [{"Declaring Class": "a"}],
        "Full Stack Trace": "at …",
    },
    "Task Info": {
        "Index": 1,
        "Accumulables": [{"ID": 1, "Name": UPDATED_KEYS, "Update": "4"}, {"ID": 2, "Name": "duration", "Update": "9"}],
    },
    "Task Executor Metrics": {"JVMHeapMemory": 5},
    "Task Metrics": {"Executor Run Time": 7, "Shuffle Read Metrics": {"Fetch Wait Time": 1}, "Updated Blocks": []},
}


def test_a_task_keeps_its_metrics_and_the_start_of_its_reason() -> None:
    task = shrink(TASK)
    assert task["Task Metrics"] == {"Executor Run Time": 7, "Shuffle Read Metrics": {"Fetch Wait Time": 1}}
    assert task["Task Executor Metrics"] == TASK["Task Executor Metrics"]
    assert task["Task Info"] == {"Index": 1, "Accumulables": [{"Name": UPDATED_KEYS, "Update": "4"}]}
    assert task["Task End Reason"] == {
        "Reason": "ExceptionFailure",
        "Class Name": "java.lang.Exception",
        "Description": "x" * 300,
    }


def test_a_shrunk_log_gives_the_same_run(tmp_path: Path) -> None:
    whole = RECORDED / "wordcount.jsonl"
    write_log(tmp_path / "run.zstd", kept_events(whole))
    assert (tmp_path / "run.zstd").stat().st_size < whole.stat().st_size / 4
    small, large = record(tmp_path / "run.zstd"), record(whole)
    assert small.components == large.components
    assert [batch.seconds for batch in small.batches] == [batch.seconds for batch in large.batches]
    assert small.executors == large.executors


def test_names_of_the_machine_and_paths_are_replaced(tmp_path: Path) -> None:
    line = {
        "Event": event_log.EXECUTOR_REMOVED,
        "Timestamp": 1,
        "Executor ID": "1",
        "Removed Reason": f"lost on {socket.gethostname()}-x, see file:/var/tmp/abc/stderr and /opt/venv/bin/python3.",
    }
    write_log(tmp_path / "run.zstd", [{"Event": LOG_START, "Spark Version": "4.3.0"}, line])
    (event,) = EventLog(tmp_path / "run.zstd").new_events()
    assert event["Removed Reason"] == "lost on driver-host-x, see file:/path/stderr and /path/python3."


def test_what_only_looks_like_a_path_stays() -> None:
    text = json.dumps({"rate": "5 rows/s", "ratio": "1/2", "class": "org.apache.spark", "time": "2026-11-18T11:00:00Z"})
    assert Scrubber().clean(text) == text
