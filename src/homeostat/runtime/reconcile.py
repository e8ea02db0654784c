"""After a crash: finds out what became of the actions that were in progress, and closes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from homeostat.core.configuration import Configuration
from homeostat.core.engine import Engine
from homeostat.core.events import Receipt
from homeostat.core.findings import REVERT
from homeostat.core.record_json import JSON
from homeostat.core.records import OUTCOME, RECEIPT, Record
from homeostat.store.protocol import Store


class Intent(NamedTuple):
    """An action that was logged, and perhaps applied, before the crash."""

    id: str
    at_s: float
    desired: Configuration
    time_limit_s: float


def reconcile(store: Store, run: str, engine: Engine, reapply: Callable[[Intent], Receipt]) -> None:
    """Close every open action: it is found applied, applied now, or given up."""
    for record in store.unjudged(run):
        _outcome(store, run, record, engine.now_s)
    for record in store.open_intents(run):
        intent = _intent(record)
        observed = engine.describe().configuration
        if _met(observed, intent.desired):
            receipt = Receipt(intent.id, engine.now_s, observed, True, "found applied after a restart")
        elif engine.now_s > intent.at_s + intent.time_limit_s:
            receipt = Receipt(intent.id, engine.now_s, observed, False, "given up: its time limit passed in a restart")
        else:
            receipt = reapply(intent)
        _close(store, run, record, receipt)
        if receipt.applied:
            _outcome(store, run, record, engine.now_s)


def _met(observed: Configuration, desired: Configuration) -> bool:
    same = all(observed.values.get(knob) == value for knob, value in desired.values.items())
    return same and desired.retired <= observed.retired


def _intent(record: Record) -> Intent:
    body = cast(Mapping[str, Any], record.body)
    desired = Configuration.from_json(body["desired"], body.get("retired", ()))
    return Intent(record.id, record.at_s, desired, float(body.get("time_limit_s", 60.0)))


def _close(store: Store, run: str, record: Record, receipt: Receipt) -> None:
    text = f"{record.id} {'took effect' if receipt.applied else 'did not take effect'}: {receipt.detail}"
    body: dict[str, JSON] = {"action": record.id, "applied": receipt.applied, "detail": receipt.detail}
    body["observed"] = dict(receipt.configuration.as_json())
    store.append(
        run, [Record(f"{record.id}.receipt", RECEIPT, receipt.at_s, text, record.component, (record.id,), body)]
    )


def _outcome(store: Store, run: str, record: Record, now_s: float) -> None:
    if record.body.get("kind") == REVERT or "prediction" not in record.body:
        return  # it promised nothing, so it was not being judged
    reason = "the manager restarted while it was being judged"
    body: dict[str, JSON] = {"action": record.id, "verdict": "confounded", "reason": reason}
    text = f"{record.id} confounded: {reason}"
    store.append(run, [Record(f"{record.id}.outcome", OUTCOME, now_s, text, record.component, (record.id,), body)])
