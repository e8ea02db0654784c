"""After a crash: determines the results of the actions that were in progress, and closes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from homeostat.core.actions import REVERT
from homeostat.core.configuration import Configuration
from homeostat.core.engine import Engine
from homeostat.core.events import Receipt
from homeostat.core.records import ActionContent, OutcomeContent, ReceiptContent, Record, with_content
from homeostat.core.sentences import verdict_sentence
from homeostat.store.protocol import Store


class Intent(NamedTuple):
    """An action that was logged, and perhaps applied, before the crash."""

    id: str
    at_s: float
    desired: Configuration
    time_limit_s: float


def reconcile(store: Store, run: str, engine: Engine, reapply: Callable[[Intent], Receipt]) -> list[str]:
    """Close every open action: it is found applied, applied now, or given up. Return the ids of actions whose records
    cannot be read. Their content is unknown, so they are abandoned.
    """
    unreadable_ids = []
    for record, action in with_content(store.unjudged(run), ActionContent):
        _outcome(store, run, record, action, engine.now_s)
    for record, action in with_content(store.open_intents(run), ActionContent):
        intent = _intent(record, action)
        observed = engine.describe().configuration
        if not _is_readable(intent):
            unreadable_ids.append(record.id)
            receipt = Receipt(intent.id, engine.now_s, observed, False, "abandoned: its record cannot be read")
        elif _is_met(observed, intent.desired):
            receipt = Receipt(intent.id, engine.now_s, observed, True, "found applied after a restart")
        elif engine.now_s > intent.at_s + intent.time_limit_s:
            receipt = Receipt(
                intent.id, engine.now_s, observed, False, "abandoned: its time limit passed during a restart"
            )
        else:
            receipt = reapply(intent)
        _close(store, run, record, receipt)
        if receipt.applied:
            _outcome(store, run, record, action, engine.now_s)
    return unreadable_ids


def _is_readable(intent: Intent) -> bool:
    desired = intent.desired
    numbers = [intent.at_s, intent.time_limit_s, *desired.values.values()]
    try:
        finite = all(math.isfinite(number) for number in numbers)
    except OverflowError:
        return False
    return finite and intent.time_limit_s > 0 and bool(desired.values or desired.retired)


def _is_met(observed: Configuration, desired: Configuration) -> bool:
    same = all(observed.values.get(knob) == value for knob, value in desired.values.items())
    return same and desired.retired <= observed.retired


def _intent(record: Record, action: ActionContent) -> Intent:
    return Intent(record.id, record.at_s, action.desired_configuration, action.time_limit_s)


def _close(store: Store, run: str, record: Record, receipt: Receipt) -> None:
    text = f"{record.id} {'took effect' if receipt.applied else 'did not take effect'}: {receipt.detail}"
    content = ReceiptContent(record.id, receipt.applied, receipt.detail, receipt.configuration.as_json())
    closing = Record.of(f"{record.id}.receipt", receipt.at_s, content, text, record.component, (record.id,))
    store.append(run, [closing])


def _outcome(store: Store, run: str, record: Record, action: ActionContent, now_s: float) -> None:
    if action.action_kind == REVERT or action.prediction is None:
        return  # it predicted nothing, so it was not being judged
    reason = f"the manager restarted while {record.id} was being judged"
    content = OutcomeContent(record.id, "confounded", reason)
    text = verdict_sentence(record.id, content.verdict, content.reason)
    store.append(run, [Record.of(f"{record.id}.outcome", now_s, content, text, record.component, (record.id,))])
