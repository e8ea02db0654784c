"""Who did what: commands with their answers, sign-ins, and refused requests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from homeostat.core.access_records import access_of
from homeostat.core.records import ACTION, OPERATOR, ORDER, REJECTION, OrderContent, Record
from homeostat.runtime.announcement import user_state
from homeostat.store.access_file import AccessFile
from homeostat.store.address import LogAddress
from homeostat.store.protocol import Store

MOST_LINES = 5_000
UNANSWERED = "no answer yet"


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One action or attempted action of a person. `run` and `id` name the order's record, where it is an order."""

    at_s: float
    who: str
    role: str
    origin: str
    what: str
    answer: str
    run: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class _Order:
    run: str
    record: Record
    content: OrderContent


def audit_trail(store: Store, log: LogAddress, limit: int, run: str = "") -> list[AuditLine]:
    """The newest lines first. With a run, only the commands that were given to it."""
    runs = [run] if run else [info.name for info in store.runs()]
    orders = [
        _Order(name, record, content)
        for name in runs
        for record in store.records(name, kinds=(ORDER,), limit=limit, newest_first=True)
        if (content := record.content_as(OrderContent)) is not None
    ]
    accesses = [] if run else access_file(log).newest(limit)
    events: list[_Order | Record] = [*orders, *accesses]
    newest = sorted(events, key=_time, reverse=True)[:limit]
    lines = [_order_line(store, each) if isinstance(each, _Order) else access_line(each) for each in newest]
    return [line for line in lines if line is not None]


def access_file(log: LogAddress) -> AccessFile:
    """Beside the log. For a log in a database, it is on the machine of the dashboard, among the user's files."""
    if isinstance(log, Path):
        return AccessFile(log)
    name = hashlib.sha256(str(log).encode()).hexdigest()[:16]
    return AccessFile(user_state() / "access" / name)


def access_line(record: Record) -> AuditLine | None:
    access = access_of(record)
    if access is None:
        return None
    what = f"{access.event}: {access.request}" if access.request else access.event
    more = f" ({access.unrecorded} more refused requests before it)" if access.unrecorded else ""
    return AuditLine(record.at_s, access.by, access.role, access.origin, what, f"{access.answer}{more}")


def _order_line(store: Store, order: _Order) -> AuditLine:
    record, content = order.record, order.content
    values = [f"{name}={value:g}" for name, value in content.values.items()]
    why = f"({content.why})" if content.why else ""
    what = " ".join(filter(None, (content.command, content.target, *values, why)))
    answer = _answer(store.chain(order.run, record.id))
    return AuditLine(record.at_s, content.by, content.role, content.origin, what, answer, order.run, record.id)


def _answer(chain: Sequence[Record]) -> str:
    """A rejection says most, then the action that followed; else whether a manager accepted the order."""
    for kind in (REJECTION, ACTION):
        texts = [record.text for record in chain if record.kind == kind]
        if texts:
            return texts[0]
    return "accepted" if any(record.kind == OPERATOR for record in chain) else UNANSWERED


def _time(event: _Order | Record) -> float:
    return event.record.at_s if isinstance(event, _Order) else event.at_s
