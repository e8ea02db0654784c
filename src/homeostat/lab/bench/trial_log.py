"""Reads the loop's actions from the log of an experiment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from homeostat.core.records import ActionContent, BatchContent, OutcomeContent, ReceiptContent, Record, with_content


def action_kinds(records: Iterable[Record]) -> list[str]:
    return [action.action_kind for _, action in with_content(records, ActionContent)]


def settled_since_s(records: Sequence[Record]) -> float | None:
    """When the last action took effect or was refused; None while an action is under way or not yet judged.

    Minus infinity if there was no action.
    """
    receipts = {
        receipt.action: (record.at_s, receipt.applied) for record, receipt in with_content(records, ReceiptContent)
    }
    judged_ids = {outcome.action for _, outcome in with_content(records, OutcomeContent)}
    since_s = -math.inf
    for action, _ in with_content(records, ActionContent):
        if action.id not in receipts:
            return None
        at_s, applied = receipts[action.id]
        if applied and action.id not in judged_ids:
            return None
        since_s = max(since_s, at_s)
    return since_s


def batches_after(records: Iterable[Record], since_s: float) -> list[BatchContent]:
    return [batch for record, batch in with_content(records, BatchContent) if record.at_s > since_s]
