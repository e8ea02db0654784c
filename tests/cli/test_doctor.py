"""`homeostat doctor`: what Spark needs on this machine, and what can be done for an application."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homeostat.cli import doctor

Homeostat = Callable[..., Any]


@pytest.mark.spark
def test_it_looks_for_all_that_spark_needs(homeostat: Homeostat) -> None:
    result = homeostat("doctor")
    assert result.code == 0, result.out
    assert "standalone: verified; YARN: not verified; Kubernetes: not verified" in result.out
    report = homeostat("doctor", "--json").json
    names = {check["name"] for check in report["checks"]}
    assert {"pyspark", "pyarrow", "pandas", "httpx", "psutil", "java", "loopback"} <= names
    assert report["capabilities"] == []


@pytest.mark.parametrize(("version", "ok"), [("2.3.3", True), ("3.0.1", False), ("", False)])
def test_pandas_must_be_there_and_not_too_new(monkeypatch: pytest.MonkeyPatch, version: str, ok: bool) -> None:
    monkeypatch.setattr(doctor, "_version", lambda name: version)
    checks = {check.name: check for check in doctor.run_checks(Path("log.sqlite"))}
    assert checks["pandas"].ok == ok
    assert bool(checks["pandas"].fix) != ok
    assert checks["pyspark"].ok == bool(version)


def test_without_a_usable_java_it_says_how_to_get_one(homeostat: Homeostat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.spark.cluster.java._candidates", lambda: iter(()))
    result = homeostat("doctor")
    assert result.code == 3
    assert "none found" in result.out
    assert "JAVA_HOME" in result.out


def test_a_missing_kafka_connector_is_no_fault_but_named(
    homeostat: Homeostat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (check,) = [check for check in homeostat("doctor", "--json").json["checks"] if check["name"] == "kafka connector"]
    assert check["ok"]
    assert check["fix"] == "for Kafka: homeostat fetch kafka"


def test_an_address_that_cannot_be_used_is_reported(homeostat: Homeostat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SECOND_ADDRESS", "192.0.2.1")
    result = homeostat("doctor")
    assert result.code == 3
    assert "192.0.2.1" in result.out
    assert "--master" in result.out


@pytest.mark.spark
def test_it_tells_what_can_be_done_for_an_application(homeostat: Homeostat, tmp_path: Path) -> None:
    place = tmp_path / ".homeostat" / "clicks"
    place.mkdir(parents=True)
    (place / "driver.json").write_text("{}")
    reason = "local[2] runs everything in one process"
    table = [{"what": "change the number of executors", "can": False, "reason": reason}]
    (place / "capabilities.json").write_text(json.dumps(table))
    for arguments in ((), ("--directory", "clicks"), ("--directory", str(place))):
        result = homeostat("doctor", *arguments)
        assert result.code == 0
        assert "change the number of executors  no  local[2] runs everything" in result.out
        assert homeostat("doctor", *arguments, "--json").json["capabilities"] == table
    refused = homeostat("doctor", "--directory", "clocks")
    assert refused.code == 2
    assert "no application was started in this directory" in refused.err


@pytest.mark.spark
def test_doctor_finds_this_machine_fit(homeostat: Homeostat) -> None:
    result = homeostat("doctor")
    assert result.code == 0
    assert "python" in result.out
    checks = {check["name"]: check for check in homeostat("doctor", "--json").json["checks"]}
    assert all(check["ok"] for check in checks.values())
    assert {"python", "numpy", "pydantic", "rich", "typer", "matplotlib", "terminal", "log"} <= set(checks)


def test_doctor_reports_a_log_that_cannot_be(homeostat: Homeostat, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    result = homeostat("doctor", "--store", "folder")
    assert result.code == 3
    assert "folder is a directory" in result.out
