"""What Spark's errors mean, in one line."""

from __future__ import annotations

from homeostat.core.errors import ConfigError
from homeostat.spark_errors import first_line, given_up, java_reason


def test_the_cause_is_reported_without_ids_and_plans() -> None:
    message = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: no room\n=== Plan ===\nScan"
    assert first_line(RuntimeError(message)) == "no room"
    python = "in the proxy: Traceback (most recent call last):\n  File 'a.py'\nValueError: no\n\tat py4j"
    assert first_line(RuntimeError(python)) == "ValueError: no"
    java = "An error occurred while calling o7.start.\n: java.lang.IllegalStateException: no\n\tat Query.start"
    assert first_line(RuntimeError(java)) == "java.lang.IllegalStateException: no"
    assert first_line(RuntimeError("")) == "RuntimeError"
    assert first_line(ConfigError("no such place", where="here", fix="go there")) == "here: no such place (go there)"
    assert first_line(ValueError("[PARSE_ERROR] near 'SELEC';\n'Project")) == "[PARSE_ERROR] near 'SELEC'"


def test_why_java_ended_is_found_in_what_it_wrote() -> None:
    warned = "WARNING: Using incubator modules: jdk.incubator.vector\n"
    heap = "Invalid maximum heap size: -Xmxlots\nError: Could not create the Java Virtual Machine.\n"
    assert java_reason(warned + heap) == "Invalid maximum heap size: -Xmxlots"
    trace = 'Exception in thread "main" org.apache.spark.SparkException: no memory\n\tat org.apache.spark.A.b\n'
    assert java_reason(warned + trace) == "org.apache.spark.SparkException: no memory"
    assert java_reason(warned) == ""


def test_why_spark_has_given_up_is_found_in_its_log() -> None:
    tried = "10:00:01 WARN StandaloneAppClient: Failed to connect to master 127.0.0.1:7077\n"
    ended = "10:01:01 ERROR Backend: Application has been killed. Reason: All masters are unresponsive!"
    assert given_up(f"{tried}{ended}\n10:01:02 WARN more\n") == "All masters are unresponsive!"
    assert given_up(tried) == ""
