"""Orders for a manager that runs in another process: left in its log, obeyed within a turn of its loop, once."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from typing import Any, cast, get_args

from homeostat.core.configuration import Knob, Value
from homeostat.core.errors import ConfigError
from homeostat.core.events import Operator, OperatorCommand
from homeostat.core.record_json import JSON
from homeostat.core.records import OPERATOR, ORDER, REJECTION, Record
from homeostat.store.protocol import Store
from homeostat.strict.toml_reading import nearest

COMMANDS: tuple[OperatorCommand, ...] = get_args(OperatorCommand)
# A person who got no answer for so long has turned to something else: what they wanted then may do harm now.
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
    """A record to append to the log of the run that it is meant for; a ConfigError if it makes no sense."""
    if command not in COMMANDS:
        raise ConfigError(f"there is no order {command!r}", where="order", fix=nearest(command, COMMANDS))
    if command == "approve" and not target:
        raise ConfigError("it does not say what to approve", where="order", fix="name an advice, such as v-1")
    if command == "resolve" and not target:
        raise ConfigError("it does not say which resolver", where="order", fix="name one, such as scale-up")
    if command == "apply" and not values:
        raise ConfigError("it does not say what to apply", where="order", fix="name a knob and a value")
    if not by.strip():
        raise ConfigError("it does not say who gives it", where="order", fix="give a name")
    for name, text in (("by", by), ("why", why), ("target", target)):
        if len(text) > LONGEST:
            raise ConfigError(f"{name!r} has {len(text)} characters", where="order", fix=f"at most {LONGEST}")
    body: dict[str, JSON] = {"command": command, "by": by, "why": why, "target": target, "values": dict(values or {})}
    wanted = [f"{name}={value:g}" for name, value in (values or {}).items()]
    text = " ".join(filter(None, (f"{by} asks: {command}", target, *wanted)))
    return Record(f"order-{uuid.uuid4().hex[:12]}", ORDER, now_s, text, body=body)


class Orders:
    """The manager's side: every order once, also over a restart; one that waited too long is answered, not obeyed."""

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._seen: set[str] = set()

    def start(self) -> None:
        self._seen = {record.id for record in self._newest() if self._answered(record.id)}

    def new(self, now_s: float) -> list[Operator]:
        found = [record for record in self._newest() if record.id not in self._seen]
        self._seen |= {record.id for record in found}
        late = [record for record in found if now_s - record.at_s > VALID_S]
        if late:
            self._store.append(self._run, [_too_late(record, now_s) for record in late])
        return [event for record in found if record not in late and (event := _event(record)) is not None]

    def _newest(self) -> list[Record]:
        return self._store.records(self._run, kinds=(ORDER,), limit=_LOOKED_AT, newest_first=True)[::-1]

    def _answered(self, id: str) -> bool:
        return any(record.kind in (OPERATOR, REJECTION) for record in self._store.chain(self._run, id))


def _event(record: Record) -> Operator | None:
    """None for what no program of ours has written: anyone who can write the file can write nonsense."""
    body = cast(Mapping[str, Any], record.body)
    command, values = body.get("command"), body.get("values")
    if command not in COMMANDS:
        return None
    numbers = values if isinstance(values, dict) else {}
    knobs = {
        Knob.parse(name): value
        for name, value in numbers.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }
    by, why, target = (str(body.get(name, "")) for name in ("by", "why", "target"))
    return Operator(command, by, why, target, knobs, record.id)


def _too_late(record: Record, now_s: float) -> Record:
    reason = f"nobody was there to take the order for {now_s - record.at_s:.0f} s"
    body: dict[str, JSON] = {"reason": reason}
    return Record(f"{record.id}.late", REJECTION, now_s, f"not done: {reason}", because=(record.id,), body=body)
