"""The cause of an exception in one line, without what Spark prints around it."""

from __future__ import annotations

import re

from homeostat.core.errors import HomeostatError

_LONGEST = 300  # characters: a few lines in a terminal
_STREAM_FAILED = "terminated with exception: "
_PYTHON_TRACE = "Traceback (most recent call last):"
_JAVA_CAUSE = re.compile(r"(?:Exception in thread \S+ )?(.*(?:Exception|Error|Invalid|Unrecognized).*)")
_JAVA_CALL = "An error occurred while calling"
_GIVEN_UP = re.compile(r"Application has been killed\. Reason: (.*)")


def first_line(error: BaseException) -> str:
    """Leaves out the ids before the reason and the query plan after it."""
    if isinstance(error, HomeostatError):
        return error.line
    text = str(error).strip() or type(error).__name__
    first, *rest = (text.partition(_STREAM_FAILED)[2] or text).splitlines()
    if first.startswith(_JAVA_CALL) and rest:
        first = rest[0].removeprefix(": ")
    if first.endswith(_PYTHON_TRACE):
        first = next((line for line in rest if line and not line[0].isspace()), first)
    return first[:_LONGEST].rstrip(";")


def java_reason(output: str) -> str:
    """Why the Java process ended, from its output; empty if the output does not say."""
    match = next(filter(None, map(_JAVA_CAUSE.fullmatch, output.splitlines())), None)
    return match[1].strip()[:_LONGEST] if match else ""


def given_up(log: str) -> str:
    """Why Spark gave up on its master, from its log; empty if it did not. Its exceptions do not say so reliably."""
    match = _GIVEN_UP.search(log)
    return match[1].strip()[:_LONGEST] if match else ""
