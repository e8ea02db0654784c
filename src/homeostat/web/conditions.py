"""Why is nothing happening? Every condition for the loop to act, whether it holds, and why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from homeostat.core.loop_state import EARN_AFTER
from homeostat.log_views.overview import HEALTHY, STOPPED, UNKNOWN
from homeostat.store.present import Present
from homeostat.web.summary import RunSummary
from homeostat.web.texts import as_sentence

YES: Literal["yes"] = "yes"
NO: Literal["no"] = "no"
OBSERVED, NEEDED, ALLOWED, FREE, UNHINDERED = (
    "Observations arrive",
    "There is a problem",
    "The loop may act",
    "No action is under way",
    "No guard blocks an action",
)


@dataclass(frozen=True, slots=True)
class Condition:
    """`reason` is a full sentence."""

    name: str
    holds: Literal["yes", "no"]
    reason: str


def conditions(summary: RunSummary, present: Present) -> tuple[Condition, ...]:
    return (
        _observed_condition(summary),
        _needed_condition(present),
        _allowed_condition(present),
        _free(present),
        _unhindered_condition(present),
    )


def answer(summary: RunSummary, conditions: tuple[Condition, ...]) -> str:
    """One sentence: the reason of the first condition that does not hold."""
    missing = next((condition for condition in conditions if condition.holds == NO), None)
    if missing is None:
        return "The loop acts as soon as a resolver proposes something."
    if missing.name == NEEDED and summary.health == HEALTHY:
        return f"There is nothing to do. {missing.reason}"
    return missing.reason


def _observed_condition(summary: RunSummary) -> Condition:
    if summary.health in (STOPPED, UNKNOWN):
        return Condition(OBSERVED, NO, summary.reason)
    return Condition(OBSERVED, YES, "Batches are reported.")


def _needed_condition(present: Present) -> Condition:
    if present.diagnoses:
        places = [f"{each.component or 'the application'} is {each.what}" for each in present.diagnoses]
        return Condition(NEEDED, YES, as_sentence("; ".join(places)))
    if present.symptoms:
        kinds = ", ".join(each.what for each in present.symptoms)
        return Condition(NEEDED, NO, f"There are symptoms, but no diagnosis yet: {kinds}.")
    return Condition(NEEDED, NO, "No problem is diagnosed.")


def _allowed_condition(present: Present) -> Condition:
    if present.paused:
        return Condition(ALLOWED, NO, as_sentence(present.paused))
    if present.mode == "regulate":
        return Condition(ALLOWED, YES, "The mode is regulate.")
    if present.mode == "earn":
        record_of_advice = f"{present.earned} of {EARN_AFTER} pieces of advice have proved right"
        return Condition(ALLOWED, YES if present.earned >= EARN_AFTER else NO, f"The mode is earn: {record_of_advice}.")
    if present.mode == "advise":
        return Condition(ALLOWED, NO, f"The mode is advise: Homeostat only says what it would do.{_waiting(present)}")
    if present.mode == "observe":
        return Condition(ALLOWED, NO, "The mode is observe: Homeostat only watches.")
    return Condition(ALLOWED, NO, "The mode is unknown: no manager has reported on this run.")


def _waiting(present: Present) -> str:
    ids = [each.id for each in present.advised]
    if not ids:
        return ""
    return f" {', '.join(ids)} {'waits' if len(ids) == 1 else 'wait'} for your approval."


def _free(present: Present) -> Condition:
    if not present.active:
        return Condition(FREE, YES, "There is none.")
    return Condition(FREE, NO, "; ".join(f"{each.id} is {each.state}" for each in present.active) + ".")


def _unhindered_condition(present: Present) -> Condition:
    if present.conditions:
        return Condition(UNHINDERED, NO, as_sentence("; ".join(present.conditions)))
    return Condition(UNHINDERED, YES, "No guard blocked an action in the last cycle.")
