"""What an exception means, in one line, without all that Spark says before and behind it."""

from __future__ import annotations

import re

from homeostat.core.errors import HomeostatError

_LONGEST = 300
_STREAM_FAILED = "terminated with exception: "
_PYTHON_TRACE = "Traceback (most recent call last):"
_JAVA_CAUSE = re.compile(r"(?:Exception in thread \S+ )?(.*(?:Exception|Error|Invalid|Unrecognized).*)")
_JAVA_CALL = "An error occurred while calling"
_GIVEN_UP = re.compile(r"Application has been killed\. Reason: (.*)")


def first_line(error: BaseException) -> str:
    """The ids before the reason and the plan behind it are left out."""
    if isinstance(error, HomeostatError):
        return error.line
    text = str(error).strip() or type(error).__name__
    first, *rest = (text.partition(_STREAM_FAILED)[2] or text).splitlines()
    if first.startswith(_JAVA_CALL) and rest:
        first = rest[0].removeprefix(": ")
    if first.endswith(_PYTHON_TRACE):
        first = next((line for line in rest if line and not line[0].isspace()), first)
    return first[:_LONGEST].rstrip(";")


def java_reason(said: str) -> str:
    """Why Java's process ended, from what it wrote; empty if that does not tell."""
    found = next(filter(None, map(_JAVA_CAUSE.fullmatch, said.splitlines())), None)
    return found[1].strip()[:_LONGEST] if found else ""


def given_up(log: str) -> str:
    """Why Spark has given up on its master, from its log: what it raises then depends on where it was. Empty if not."""
    found = _GIVEN_UP.search(log)
    return found[1].strip()[:_LONGEST] if found else ""
