"""The interface of a store: the durable log of everything that was observed, decided and done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from homeostat.core.record_json import JSON
from homeostat.core.records import Record

BEGINNING_S = float("-inf")
SET_ASIDE = ".set-aside"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run in the log: the times of its first and last record, and how many it has of each kind."""

    name: str
    started_s: float
    last_s: float
    counts: Mapping[str, int] = field(default_factory=dict)


class Placed(NamedTuple):
    """A record with its run and its place in the log, which grows with every record of any run."""

    position: int
    run: str
    record: Record


class Store(Protocol):
    """Where records are kept, apart for each run.

    A store object is used by one thread at a time; another thread or process opens its own. Anything that
    goes wrong is a StoreError. `homeostat.testing.check_store` holds an implementation to all of this.
    """

    def append(self, run: str, records: Sequence[Record]) -> None:
        """Add all of them or, on an error, none. An id that the run already has is left as it was.

        When this returns, an action among them survives a loss of power, and so does all that came before.
        """
        ...

    def get(self, run: str, id: str) -> Record | None: ...

    def records(
        self,
        run: str,
        *,
        kinds: Sequence[str] = (),
        component: str = "",
        since_s: float = BEGINNING_S,
        limit: int = 0,
        newest_first: bool = False,
    ) -> list[Record]:
        """Records by time, then by insertion. Empty `kinds` and `component` mean all, `limit` 0 no limit."""
        ...

    def ids(self, run: str, kinds: Sequence[str]) -> list[str]:
        """The ids of the records of these kinds, also of those that cannot be read."""
        ...

    def chain(self, run: str, id: str) -> list[Record]:
        """The record, all records that led to it and all that followed from it, by time, then by insertion."""
        ...

    def open_intents(self, run: str) -> list[Record]:
        """Actions without a receipt: written down, and perhaps applied, before a crash.

        An action whose record cannot be read is returned without its body.
        """
        ...

    def unjudged(self, run: str) -> list[Record]:
        """Actions with an applied receipt and without an outcome."""
        ...

    def save_state(self, run: str, key: str, value: JSON) -> None:
        """Keep a value under a key, in place of the one before."""
        ...

    def load_state(self, run: str, key: str) -> JSON | None: ...

    def set_aside(self, run: str, key: str) -> None:
        """Move the value under the key, even if it is damaged, to the key with `SET_ASIDE` at its end."""
        ...

    def runs(self) -> list[RunInfo]:
        """Every run that has a record, in the order in which they came into the log."""
        ...

    def position(self) -> int:
        """The place of the record that was written last; 0 if there is none."""
        ...

    def after(self, position: int, limit: int) -> list[Placed]:
        """What was written after that place, in any run, in the order in which it was written."""
        ...

    def close(self) -> None: ...
