"""Why is nothing happening? Each thing that must hold before the loop acts, whether it does, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from homeostat.core.loop_state import EARN_AFTER
from homeostat.store.present import Present
from homeostat.views.overview import HEALTHY, STOPPED, UNKNOWN

YES, NO = "yes", "no"


class Condition(NamedTuple):
    name: str
    holds: str
    reason: str


def conditions(summary: Mapping[str, Any], present: Present) -> list[Condition]:
    return [_seen(summary), _needed(present), _allowed(present), _free(present), *_held_back(present)]


def answer(summary: Mapping[str, Any], found: list[Condition]) -> str:
    """In one sentence: the first of them that does not hold."""
    missing = next((condition for condition in found if condition.holds == NO), None)
    if missing is None:
        return "Nothing stands in the way: the loop acts when a resolver proposes something."
    if missing.name == "something to do" and summary["health"] == HEALTHY:
        return f"Nothing needs to happen: {missing.reason}."
    starts_with_id = missing.name == "no action under way"
    return f"{missing.reason}." if starts_with_id else f"{missing.reason[:1].upper()}{missing.reason[1:]}."


def _seen(summary: Mapping[str, Any]) -> Condition:
    seen = summary["health"] not in (STOPPED, UNKNOWN)
    return Condition("observations arrive", YES if seen else NO, "batches are reported" if seen else summary["reason"])


def _needed(present: Present) -> Condition:
    found = [f"{each.what} at {each.component or 'the application'}" for each in present.diagnoses]
    if found:
        return Condition("something to do", YES, "; ".join(found))
    seen = [each.what for each in present.symptoms]
    reason = f"seen, but not yet explained: {', '.join(seen)}" if seen else "no diagnosis stands"
    return Condition("something to do", NO, reason)


def _allowed(present: Present) -> Condition:
    name, mode = "may act", present.mode
    if present.paused:
        return Condition(name, NO, present.paused)
    if mode == "regulate":
        return Condition(name, YES, "mode regulate")
    if mode == "earn":
        earned = present.earned
        enough = earned >= EARN_AFTER
        return Condition(
            name, YES if enough else NO, f"mode earn: {earned} of {EARN_AFTER} pieces of advice proved right"
        )
    if mode == "advise":
        advised = [each.id for each in present.advised]
        waiting = f"; {', '.join(advised)} waits for approval" if advised else ""
        return Condition(name, NO, f"mode advise: it only says what it would do{waiting}")
    return Condition(name, NO, "mode observe: it only watches" if mode == "observe" else "no manager has told its mode")


def _free(present: Present) -> Condition:
    active = [f"{each.id} is {each.state}" for each in present.active]
    return Condition("no action under way", NO if active else YES, "; ".join(active) or "none is")


def _held_back(present: Present) -> list[Condition]:
    held = present.conditions
    return (
        [Condition("not held back", NO, "; ".join(held))] if held else [Condition("not held back", YES, "by nothing")]
    )
