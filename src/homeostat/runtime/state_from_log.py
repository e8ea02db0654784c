"""Rebuilds parts of the state of a run from its records, if the saved state cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from homeostat.core.actions import REVERT
from homeostat.core.calibration import JudgedCauses, with_verdict
from homeostat.core.errors import UnreadableError
from homeostat.core.records import (
    ACTION,
    BATCH,
    KINDS,
    OPERATOR,
    ORDER,
    OUTCOME,
    ActionContent,
    OperatorContent,
    OutcomeContent,
    with_content,
)
from homeostat.store.protocol import Store

_ID = re.compile(r"([a-z])-(\d+)")
_NUMBERED = tuple(kind for kind in KINDS if kind not in (BATCH, ORDER))


def numbers_in_log(store: Store, run: str) -> dict[str, int]:
    """The last number used with each letter. The log ignores a new record with an id that it already has."""
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


def judged_in_log(store: Store, run: str) -> JudgedCauses:
    """The judged actions by the cause that they were chosen for; none if one of the records cannot be read."""
    try:
        actions = dict(_actions(store, run))
        outcomes = list(with_content(store.records(run, kinds=(OUTCOME,)), OutcomeContent))
    except UnreadableError:
        return {}
    judged: JudgedCauses = {}
    for _, outcome in outcomes:
        action = actions.get(outcome.action)
        if action is not None and action.action_kind != REVERT:
            judged = with_verdict(judged, action.cause, action.probability, outcome.verdict)
    return judged


def _actions(store: Store, run: str) -> Iterator[tuple[str, ActionContent]]:
    for record, action in with_content(store.records(run, kinds=(ACTION,)), ActionContent):
        yield record.id, action
