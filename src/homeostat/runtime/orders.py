"""Operator commands for a manager in another process. They go through the log; the manager obeys each one once."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from typing import get_args

from homeostat.core import sentences
from homeostat.core.configuration import Knob, Value
from homeostat.core.errors import ConfigError
from homeostat.core.events import Operator, OperatorCommand
from homeostat.core.records import OPERATOR, ORDER, REJECTION, OrderContent, Record, RejectionContent
from homeostat.store.protocol import Store
from homeostat.strict.toml_reading import nearest

COMMANDS: tuple[OperatorCommand, ...] = get_args(OperatorCommand)
# After this long without an answer the operator has moved on, and the command may do harm.
VALID_S = 120.0
LONGEST = 500
_LOOKED_AT = 50


def order(
    command: str,
    *,
    by: str,
    now_s: float,
    why: str = "",
    target: str = "",
    values: Mapping[str, Value] | None = None,
) -> Record:
    """The record of a command, to append to the log of its run. A ConfigError if the command is not valid."""
    if command not in COMMANDS:
        raise ConfigError(f"unknown command {command!r}", where="order", fix=nearest(command, COMMANDS))
    if command == "approve" and not target:
        raise ConfigError("the advice to approve is missing", where="approve", fix="give its id, such as v-1")
    if command == "resolve" and not target:
        raise ConfigError("the resolver to run is missing", where="resolve", fix="give its name, such as scale-up")
    if command == "apply" and not values:
        raise ConfigError("no knob to set is given", where="apply", fix="give a knob and a value")
    if not by.strip():
        raise ConfigError("the name of the operator is missing", where="order", fix="give a name in `by`")
    for name, text in (("by", by), ("why", why), ("target", target)):
        if len(text) > LONGEST:
            raise ConfigError(f"{name!r} has {len(text)} characters", where="order", fix=f"use at most {LONGEST}")
    content = OrderContent(command, by, why, target, dict(values or {}))
    assignments = [f"{name}={value:g}" for name, value in (values or {}).items()]
    text = " ".join(filter(None, (f"{by} asks: {command}", target, *assignments)))
    return Record.of(f"order-{uuid.uuid4().hex[:12]}", now_s, content, text)


class Orders:
    """The manager's side. Each command is obeyed once, also across restarts; one that is too old is rejected."""

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._read_ids: set[str] = set()

    def start(self) -> None:
        self._read_ids = {record.id for record in self._newest() if self._is_answered(record.id)}

    def new(self, now_s: float) -> list[Operator]:
        unread = [record for record in self._newest() if record.id not in self._read_ids]
        self._read_ids |= {record.id for record in unread}
        late = [record for record in unread if now_s - record.at_s > VALID_S]
        if late:
            self._store.append(self._run, [_too_late(record, now_s) for record in late])
        return [event for record in unread if record not in late and (event := _event(record)) is not None]

    def _newest(self) -> list[Record]:
        return self._store.records(self._run, kinds=(ORDER,), limit=_LOOKED_AT, newest_first=True)[::-1]

    def _is_answered(self, id: str) -> bool:
        return any(record.kind in (OPERATOR, REJECTION) for record in self._store.chain(self._run, id))


def _event(record: Record) -> Operator | None:
    """The command, or None if the record is not a valid one: anyone with write access can append to the log."""
    content = record.content_as(OrderContent)
    if content is None or content.command not in COMMANDS:
        return None
    knobs = {Knob.parse(name): value for name, value in content.values.items() if math.isfinite(value)}
    return Operator(content.command, content.by, content.why, content.target, knobs, record.id)


def _too_late(record: Record, now_s: float) -> Record:
    reason = f"no manager was running to receive the command for {now_s - record.at_s:.0f} s"
    return Record.of(
        f"{record.id}.late", now_s, RejectionContent(reason), sentences.refusal_sentence(reason), because=(record.id,)
    )
