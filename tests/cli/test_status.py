"""`homeostat status`: what an application is doing, from what it wrote down."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homeostat.core.record_json import JSON
from homeostat.core.records import Record
from homeostat.models.model_json import MODEL_KEY, to_json
from homeostat.store.sqlite import SqliteStore
from support.batch_plans import batches

Homeostat = Callable[..., Any]
CAPABILITIES = [
    {"what": "change the number of executors", "can": True, "reason": "standalone", "seen": True},
    {"what": "replace a slow executor", "can": True, "reason": "standalone", "seen": False},
    {"what": "words: state partitions", "can": False, "reason": "it has no state, or has done no batch yet"},
]


def batch(number: int, at_s: float, **more: JSON) -> Record:
    body: dict[str, JSON] = {"rows": 2000, "seconds": 1.5, "trigger_s": 2.0, "arrival_per_s": 1000.0, "span_s": 2.0}
    body |= {"pending_rows": 1500, "executors": 2, "workers": 2, "batch": number}
    return Record(f"b-{number}", "batch", at_s, f"batch {number}", body=body | more)


def application(place: Path, *records: Record, process: int | None = None, started_s: float | None = None) -> None:
    """The files of an application that this very process pretends to drive."""
    place.mkdir(parents=True)
    about = {
        "process": os.getpid() if process is None else process,
        "application": "app-1",
        "ui": "http://127.0.0.1:4040",
        "started_s": _began_s() if started_s is None else started_s,
        "queries": {"words": "clicks/words"},
        "mode": "regulate",
        "store": str(place / "log.sqlite"),
        "limits": {"log": 2_000_000_000, "least_free": 2_000_000_000},
    }
    (place / "driver.json").write_text(json.dumps(about))
    knobs = {"executors": {"words": 2}, "values": {"state_partitions.words": 4}}
    (place / "knobs.json").write_text(json.dumps(knobs))
    (place / "capabilities.json").write_text(json.dumps(CAPABILITIES))
    store = SqliteStore(place / "log.sqlite")
    store.append("clicks/words", records)
    store.close()


def _began_s() -> float:
    import psutil

    return float(psutil.Process().create_time())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".homeostat"


def test_one_that_keeps_up_is_healthy_and_reported_in_full(homeostat: Homeostat, home: Path) -> None:
    now_s = time.time()
    application(
        home / "clicks",
        batch(1, now_s - 0.3),
        Record("d-1", "diagnosis", now_s - 0.3, "scan is under-provisioned (probability 0.90)", "scan"),
        Record("d-2", "diagnosis", now_s - 0.3, "scan is slow-instance (probability 0.70)", "scan"),
        Record("e-1", "diagnosis", now_s - 0.2, "slow-instance is over", "scan", ("d-2",), {"over": True}),
        Record("a-1", "action", now_s - 0.2, "scale-up: executors.app = 4", "scan", ("d-1",)),
        Record("c-1", "receipt", now_s - 0.1, "a-1 took effect", "", ("a-1",), {"action": "a-1", "applied": True}),
        Record("u-1", "outcome", now_s - 0.1, "a-1 helped", "scan", ("a-1",), {"action": "a-1", "model_error": 0.2}),
        batch(2, now_s - 0.1),
    )
    result = homeostat("status")
    assert result.code == 0, result.out
    for words in (
        "healthy",
        "app-1",
        "http://127.0.0.1:4040",
        "executors.app 2",
        "1,000 rows/s, 1,000 rows/s arrive, 1,500 rows wait, took 1.5 s of 2 s, 2 executors",
        "under-provisioned",
        "scale-up: executors.app = 4 (a-1); a-1 took effect (c-1); a-1 helped (u-1)",
        "off by scan 22%",
        "replace a slow executor         not tried  standalone",
        "words: state partitions         no         it has no state",
    ):
        assert words in result.out
    assert "slow-instance" not in result.out
    status = homeostat("status", "--directory", "clicks", "--json").json
    assert (status["health"], status["alive"], status["knobs"]["executors.app"]) == ("healthy", True, 2)
    (query,) = status["queries"]
    assert [diagnosis["id"] for diagnosis in query["diagnoses"]] == ["d-1"]
    assert query["batch"]["batch"] == 2
    assert query["heartbeat_s"] < 60
    assert query["model_errors"] == {"scan": 0.2}


def test_it_shows_what_is_used_of_what_may_be_used(homeostat: Homeostat, home: Path) -> None:
    application(home / "clicks", batch(1, time.time() - 0.1))
    lines = homeostat("status").out.splitlines()
    (log,) = [line.split() for line in lines if line.startswith("log ")]
    assert log[3:] == ["2", "GB", str(home / "clicks" / "log.sqlite")]
    (events,) = [line.split() for line in lines if line.startswith("event logs")]
    assert events[2:4] == ["unknown", "unknown"]
    (disk,) = [line for line in lines if line.startswith("checkpoints, log")]
    assert str(home / "clicks") in disk
    status = homeostat("status", "--json").json
    by_name = {use["what"]: use for use in status["usage"]}
    assert by_name["log"]["used"] >= (home / "clicks" / "log.sqlite").stat().st_size
    assert (by_name["log"]["bound"], by_name["log"]["unit"]) == (2e9, "bytes")
    assert by_name["event logs"]["used"] is None
    assert by_name["threads of the driver's Python"]["used"] >= 1
    (free,) = status["disks"]
    assert 0 < free["free_bytes"] <= free["total_bytes"]
    assert free["alert_below_bytes"] >= 2e9


@pytest.mark.parametrize(
    ("records", "health", "words"),
    [
        ([], "unknown", "no batch has ended yet"),
        ([("pending_rows", 9000)], "falling behind", "9,000 rows wait"),
        ([("pending_rows", None)], "healthy", ""),
    ],
)
def test_its_health(homeostat: Homeostat, home: Path, records: list[tuple[str, JSON]], health: str, words: str) -> None:
    application(home / "clicks", *[batch(1, time.time() - 0.1, **dict([each])) for each in records])
    result = homeostat("status", "--json")
    assert result.json["health"] == health
    assert result.code == (0 if health == "healthy" else 3)
    assert words in result.json["queries"][0]["reason"]


def test_it_says_when_a_backlog_will_be_gone(homeostat: Homeostat, home: Path) -> None:
    now_s = time.time()
    application(home / "clicks", batch(1, now_s, pending_rows=620_000, arrival_per_s=2_000.0, trigger_s=10.0))
    store = SqliteStore(home / "clicks" / "log.sqlite")
    store.save_state("clicks/words", MODEL_KEY, to_json(batches()))
    store.close()
    catch_up = homeostat("status", "--json").json["queries"][0]["catch_up"]
    assert (catch_up["rows"], catch_up["arrival_per_s"]) == (620_000, 2_000.0)
    assert [each["instances"] for each in catch_up["times"]] == [3, 4]
    assert catch_up["times"][0]["at_s"] == pytest.approx(now_s + 612, abs=1)
    (line,) = [line for line in homeostat("status").out.splitlines() if line.startswith("  backlog")]
    assert re.fullmatch(r"  backlog +620,000 rows wait: caught up at [\d:]+ with 3 executors, at [\d:]+ with 4", line)


def test_without_news_nobody_knows(homeostat: Homeostat, home: Path) -> None:
    from homeostat.log_views.overview import query_state

    state = query_state("words", [batch(1, 1000.0)], alive=True, now_s=1100.0)
    assert (state.health, state.reason) == ("unknown", "no new records for 100 s")
    assert query_state("words", [batch(1, 1000.0)], alive=True, now_s=1060.0).health == "healthy"


def test_a_driver_that_has_ended_or_whose_number_another_process_has(homeostat: Homeostat, home: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    application(home / "ended", batch(1, time.time()), process=ended.pid)
    result = homeostat("status", "--directory", "ended")
    assert result.code == 3
    assert result.out.startswith("not running")
    assert f"process {ended.pid} has ended" in result.out
    application(home / "other", batch(1, time.time()), process=os.getpid(), started_s=_began_s() - 3600)
    assert homeostat("status", "--directory", "other.py", "--json").json["health"] == "not running"


def test_a_log_that_is_gone_is_unknown_and_the_rest_is_reported(homeostat: Homeostat, home: Path) -> None:
    application(home / "clicks", batch(1, time.time()))
    (home / "clicks" / "log.sqlite").unlink()
    result = homeostat("status")
    assert result.code == 3
    assert "unknown" in result.out


@pytest.mark.parametrize("arguments", [(), ("--directory", "clicks")])
def test_where_nothing_was_started_one_line_says_so(homeostat: Homeostat, arguments: tuple[str, ...]) -> None:
    result = homeostat("status", *arguments)
    assert result.code == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert "no application was started in this directory (start it with `homeostat run APP.PY`, or" in result.err


def test_the_log_leaves_batches_out_unless_asked_for(homeostat: Homeostat, home: Path) -> None:
    application(home / "clicks", batch(1, time.time()), Record("a-1", "action", time.time(), "grows"))
    log = home / "clicks" / "log.sqlite"
    assert [record["id"] for record in homeostat("log", "--store", log, "--json").json] == ["a-1"]
    records = homeostat("log", "--store", log, "--kind", "batch", "--json").json
    assert [record["id"] for record in records] == ["b-1"]
