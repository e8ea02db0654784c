"""What Spark's errors mean, in one line."""

from __future__ import annotations

from homeostat.core.errors import ConfigError
from homeostat.reasons import first_line


def test_the_cause_is_told_without_ids_and_plans() -> None:
    said = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: no room\n=== Plan ===\nScan"
    assert first_line(RuntimeError(said)) == "no room"
    python = "in the proxy: Traceback (most recent call last):\n  File 'a.py'\nValueError: no\n\tat py4j"
    assert first_line(RuntimeError(python)) == "ValueError: no"
    java = "An error occurred while calling o7.start.\n: java.lang.IllegalStateException: no\n\tat Query.start"
    assert first_line(RuntimeError(java)) == "java.lang.IllegalStateException: no"
    assert first_line(RuntimeError("")) == "RuntimeError"
    assert first_line(ConfigError("no such place", where="here", fix="go there")) == "here: no such place (go there)"
    assert first_line(ValueError("[PARSE_ERROR] near 'SELEC';\n'Project")) == "[PARSE_ERROR] near 'SELEC'"
