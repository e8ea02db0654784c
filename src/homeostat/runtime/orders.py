"""Operator commands for a manager in another process. They go through the log. The manager carries out each one
once.
"""

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
from homeostat.store.protocol import BEGINNING_S, Store
from homeostat.strict.toml_reading import nearest

COMMANDS: tuple[OperatorCommand, ...] = get_args(OperatorCommand)
# After this long without an answer, the operator no longer waits, and carrying out the command could do harm.
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
    role: str = "",
    origin: str = "",
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
    content = OrderContent(command, by, why, target, dict(values or {}), role, origin)
    assignments = [f"{name}={value:g}" for name, value in (values or {}).items()]
    text = " ".join(filter(None, (f"{by} requested: {command}", target, *assignments)))
    return Record.of(f"order-{uuid.uuid4().hex[:12]}", now_s, content, text)


class Orders:
    """The manager's side. Each command is carried out once, even across restarts. A command that is too old is
    rejected.
    """

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._read_ids: set[str] = set()
        self._offered_ids: set[str] = set()
        self._expires_s: dict[str, float] = {}
        self._looked_s = BEGINNING_S

    def start(self) -> None:
        self._read_ids = {record.id for record in self._newest() if self._is_answered(record.id)}

    def new(self, now_s: float) -> list[Operator]:
        """The commands that are not confirmed yet. Call `confirm` when the decision about them is in the log."""
        newest = self._newest()
        unread = [record for record in newest if record.id not in self._read_ids]
        # A command that was not there at the last look is newer than that look, whatever time its writer recorded.
        self._expires_s = {
            record.id: self._expires_s.get(record.id, max(record.at_s, self._looked_s) + VALID_S) for record in unread
        }
        late = [record for record in unread if now_s > self._expires_s[record.id]]
        commands = {record.id: _event(record) for record in unread if record not in late}
        refusals = [_too_late(record, now_s) for record in late]
        refusals += [_not_valid(record, now_s) for record in unread if commands.get(record.id, 0) is None]
        if refusals:
            self._store.append(self._run, refusals)
        self._offered_ids = {id for id, command in commands.items() if command is not None}
        self._read_ids = {record.id for record in newest} - self._offered_ids
        self._looked_s = now_s
        return [command for command in commands.values() if command is not None]

    def confirm(self) -> None:
        self._read_ids |= self._offered_ids
        self._offered_ids = set()

    def _newest(self) -> list[Record]:
        """As many of the newest commands as it takes to find one that was read before."""
        limit = _LOOKED_AT
        while True:
            newest = self._store.records(self._run, kinds=(ORDER,), limit=limit, newest_first=True)
            if len(newest) < limit or not self._read_ids or newest[-1].id in self._read_ids:
                return newest[::-1]
            limit *= 2

    def _is_answered(self, id: str) -> bool:
        return any(record.kind in (OPERATOR, REJECTION) for record in self._store.chain(self._run, id))


def _event(record: Record) -> Operator | None:
    """The command, or None if the record is not a valid one: anyone with write access can append to the log."""
    content = record.content_as(OrderContent)
    if content is None or content.command not in COMMANDS:
        return None
    try:
        knobs = {Knob.parse(name): value for name, value in content.values.items() if math.isfinite(value)}
    except (OverflowError, ValueError):
        return None
    return Operator(content.command, content.by, content.why, content.target, knobs, record.id)


def _too_late(record: Record, now_s: float) -> Record:
    return _refusal(record, now_s, f"no manager received the command within {VALID_S:.0f} s")


def _not_valid(record: Record, now_s: float) -> Record:
    return _refusal(record, now_s, "the record in the log is not a valid command")


def _refusal(record: Record, now_s: float, reason: str) -> Record:
    return Record.of(
        f"{record.id}.refused",
        now_s,
        RejectionContent(reason),
        sentences.refusal_sentence(reason),
        because=(record.id,),
    )
