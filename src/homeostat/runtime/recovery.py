"""What the records of a run say about its state, for when the saved state cannot be read."""

from __future__ import annotations

import re

from homeostat.core.records import BATCH, KINDS, OPERATOR, ORDER, OperatorContent, with_content
from homeostat.store.protocol import Store

_ID = re.compile(r"([a-z])-(\d+)")
_NUMBERED = tuple(kind for kind in KINDS if kind not in (BATCH, ORDER))


def numbers_in_log(store: Store, run: str) -> dict[str, int]:
    """The last number of each letter. A new record with an id that the log has would be ignored."""
    numbers: dict[str, int] = {}
    for id in store.ids(run, _NUMBERED):
        if match := _ID.fullmatch(id):
            numbers[match[1]] = max(numbers.get(match[1], 0), int(match[2]))
    return numbers


def pause_in_log(store: Store, run: str) -> str:
    """Why regulation is paused; empty if the last command of a person is not a pause."""
    commands = store.records(run, kinds=(OPERATOR,), newest_first=True)
    for _, operator in with_content(commands, OperatorContent):
        if operator.command == "resume":
            return ""
        if operator.command == "pause":
            return f"paused by {operator.by}" + (f": {operator.why}" if operator.why else "")
    return ""
