"""What an exception means, in one line, without all that Spark says before and behind it."""

from __future__ import annotations

import re

from homeostat.core.errors import HomeostatError

_LONGEST = 300
_STREAM_FAILED = "terminated with exception: "
_PYTHON_TRACE = "Traceback (most recent call last):"
_JAVA_CAUSE = re.compile(r"(?:Exception in thread \S+ )?(.*(?:Exception|Error|Invalid|Unrecognized).*)")
_JAVA_CALL = "An error occurred while calling"
# So Spark puts it when it has given up on its master before the session was made.
_GAVE_UP = "on a running MetricsSystem"


def first_line(error: BaseException) -> str:
    """The ids before the reason and the plan behind it are left out."""
    if isinstance(error, HomeostatError):
        return error.line
    text = str(error).strip() or type(error).__name__
    first, *rest = (text.partition(_STREAM_FAILED)[2] or text).splitlines()
    if first.startswith(_JAVA_CALL) and rest:
        first = rest[0].removeprefix(": ")
    if first.endswith(_GAVE_UP):
        return "no master took the application in: something else answers there, or a Spark of another version"
    if first.endswith(_PYTHON_TRACE):
        first = next((line for line in rest if line and not line[0].isspace()), first)
    return first[:_LONGEST].rstrip(";")


def java_reason(said: str) -> str:
    """Why Java's process ended, from what it wrote; empty if that does not tell."""
    found = next(filter(None, map(_JAVA_CAUSE.fullmatch, said.splitlines())), None)
    return found[1].strip()[:_LONGEST] if found else ""
