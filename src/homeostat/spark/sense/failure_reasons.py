"""Why an attempt at a task failed, in one short line, from the many lines that Spark has about it."""

from __future__ import annotations

import re

UNKNOWN_REASON = "Spark gave no reason"
# A choice: a class and the beginning of its message fit; an observation with many failures stays small.
_MOST_CHARACTERS = 200
_TRACEBACK = "Traceback (most recent call last):"
_FETCH_FAILED = re.compile(r"FetchFailed\(BlockManagerId\(([^,]+), ([^,]+),")


def short_reason(text: str) -> str:
    """The class of the error and the first line of its message. For an error in Python code, this is the Python error,
    not that of the JVM."""
    if match := _FETCH_FAILED.match(text):
        return fetch_failed(match[1], match[2])
    return _python_error(text) or _shortened(text)


def fetch_failed(executor: str, host: str) -> str:
    """Shuffle blocks of an executor could not be read."""
    return f"FetchFailed: no shuffle blocks from executor {executor} on {host}"


def executor_lost(executor: str, reason: str, *, caused_by_task: bool) -> str:
    """As Spark itself writes it over REST."""
    cause = "caused by one of the running tasks" if caused_by_task else "unrelated to the running tasks"
    return _shortened(f"ExecutorLostFailure (executor {executor} exited {cause}) Reason: {reason}")


def _python_error(text: str) -> str:
    """The line behind the last frame of a Python traceback, which is indented; empty if there is none."""
    _, marker, trace = text.partition(_TRACEBACK)
    lines = (line for line in trace.splitlines() if line and not line.startswith((" ", "\t")))
    return _shortened(next(lines, "")) if marker and trace else ""


def _shortened(text: str) -> str:
    line = text.strip().partition("\n")[0].strip()
    return line[:_MOST_CHARACTERS] if line else UNKNOWN_REASON
