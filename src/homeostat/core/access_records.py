"""Records of sign-ins, refusals and changes of the tokens. They belong to no run and are stored beside the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from homeostat.core.record_json import from_json
from homeostat.core.records import Content, Record

ACCESS = "access"


@dataclass(frozen=True, slots=True)
class AccessContent(Content):
    """A sign-in, a refusal or a change of the tokens. `unrecorded` counts the refusals since the last recorded one."""

    KIND: ClassVar[str] = ACCESS
    event: str
    by: str = ""
    role: str = ""
    origin: str = ""
    request: str = ""
    answer: str = ""
    unrecorded: int = 0


def access_of(record: Record) -> AccessContent | None:
    return from_json(AccessContent, record.body) if record.kind == ACCESS else None
