"""Decisions as stories: what was seen, what it was taken for, what was done about it, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from homeostat.core.records import (
    ACTION,
    ADVICE,
    ALERT,
    DIAGNOSIS,
    FAILURE,
    OPERATOR,
    ORDER,
    OUTCOME,
    PROPOSAL,
    RECEIPT,
    REJECTION,
    SYMPTOM,
    Record,
)
from homeostat.core.wording import moment, one_line
from homeostat.store import phrases
from homeostat.store.protocol import Store

TELLING = (ACTION, ADVICE, REJECTION, ALERT, OPERATOR, FAILURE)
LONGEST_TEXT = 300
MOST_STEPS = 12
MOST_ORDERS = 5
_STAGES = {
    SYMPTOM: "symptom",
    DIAGNOSIS: "diagnosis",
    PROPOSAL: "proposal",
    REJECTION: "rejected",
    ADVICE: "advised",
    ACTION: "action",
    RECEIPT: "effect",
    OUTCOME: "outcome",
    ALERT: "alert",
    OPERATOR: "operator",
    FAILURE: "failure",
}


def stories(store: Store, run: str, offset: int, limit: int) -> dict[str, Any]:
    """One page of them, the newest first."""
    found = store.records(run, kinds=TELLING, limit=offset + limit + 1, newest_first=True)
    page = found[offset : offset + limit]
    return {
        "stories": [story(store, run, record) for record in page],
        "next": offset + limit if len(found) > offset + limit else None,
    }


def story(store: Store, run: str, told: Record) -> dict[str, Any]:
    chain = store.chain(run, told.id)
    ahead = [record for record in chain if not record.body.get("over")]
    steps = [_step(record) for record in ahead[:MOST_STEPS]]
    verdict = next((str(r.body.get("verdict", "")) for r in chain if r.kind == OUTCOME), "")
    return {
        **line(told),
        "verdict": clipped(verdict),
        "steps": steps,
        "left_out": max(0, len(ahead) - MOST_STEPS),
    }


def unanswered(store: Store, run: str) -> list[dict[str, Any]]:
    """The newest orders that no manager has taken up."""
    orders = store.records(run, kinds=(ORDER,), limit=MOST_ORDERS, newest_first=True)
    return [line(order) for order in orders if len(store.chain(run, order.id)) == 1]


def line(record: Record) -> dict[str, Any]:
    """A record as a line of a list: safe to show, however it was written."""
    return {
        "id": clipped(record.id),
        "kind": clipped(record.kind),
        "stage": _STAGES.get(record.kind, clipped(record.kind)),
        "at_s": record.at_s,
        "when": moment(record.at_s),
        "component": clipped(record.component),
        "text": clipped(record.text) or clipped(phrases.headline(record)),
    }


def whole(record: Record) -> dict[str, Any]:
    """A record with everything there is in it."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def clipped(text: object, longest: int = LONGEST_TEXT) -> str:
    shown = one_line(str(text)[: 4 * longest])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def _step(record: Record) -> dict[str, Any]:
    return line(record) | {
        "details": [clipped(each, 1_000) for each in _details(record) if each],
        "probability": _probability(record.body),
    }


def _details(record: Record) -> list[str]:
    if record.kind in (SYMPTOM, DIAGNOSIS):
        return phrases.evidence(record)
    if record.kind == OUTCOME:
        return phrases.judgement(record)
    if record.kind in (ACTION, PROPOSAL, ADVICE):
        return [phrases.prediction(record), *phrases.steps(record), *phrases.rest(record)]
    if record.kind in (REJECTION,):
        return [phrases.reason(record)]
    return phrases.rest(record)


def _probability(body: Mapping[str, Any]) -> float | None:
    value = body.get("probability")
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None
