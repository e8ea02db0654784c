"""Follows a log that may be removed, damaged or locked at any time, and counts its batches, actions and receipts."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path

from homeostat.core.change_parts import Values
from homeostat.core.errors import HomeostatError
from homeostat.core.records import ACTION, ORDER, ActionContent, BatchContent, ReceiptContent, Record
from homeostat.log_views.timeline import behind
from homeostat.store.sqlite import SqliteStore

_MOST_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Change:
    """One action, or one remedy of a plan, against one cause. `retire` names the executors that it ends."""

    action_kind: str
    cause: str
    retire: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoggedAction:
    """An action, when the bench saw it (on its monotonic clock), and whether a person's order led to it.

    A batch is behind if it leaves more rows waiting than arrive in two triggers. `behind_since_s` is when the bench saw
    the first of the batches that were behind without a break until the action; infinite if the last one was not."""

    seen_s: float
    id: str
    action_kind: str
    text: str
    ordered: bool
    changes: tuple[Change, ...] = ()
    values: Values = field(default_factory=dict)
    behind_since_s: float = math.inf


class LogWatch:
    """Call `look` often, because the records of a log that is removed before the next call are lost."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.batches = 0
        self.actions: list[LoggedAction] = []
        self.receipts: set[str] = set()
        self.refusals: set[str] = set()
        self._inode, self._position = 0, 0
        self._behind_since_s = math.inf
        # A manager whose log is lost writes its open actions again into the new one.
        self._seen_actions: set[tuple[str, float]] = set()

    def look(self) -> None:
        try:
            inode = self.path.stat().st_ino
            store = SqliteStore(self.path, read_only=True)
        except (OSError, HomeostatError):
            return
        try:
            newest = store.position()
            if inode != self._inode or newest < self._position:
                self._inode, self._position = inode, 0
                # a new log numbers its actions from the start
                self.receipts, self.refusals = set(), set()
            for placed in store.after(self._position, _MOST_AT_ONCE):
                self._position = placed.position
                self._note(store, placed.run, placed.record)
        except HomeostatError:
            return
        finally:
            store.close()

    def open_actions(self, since: int) -> list[LoggedAction]:
        """Actions without a receipt, among those after the first `since`."""
        return [action for action in self.actions[since:] if action.id not in self.receipts]

    def _note(self, store: SqliteStore, run: str, record: Record) -> None:
        if (batch := record.content_as(BatchContent)) is not None:
            self.batches += 1
            is_behind = behind(batch.pending_rows, batch.arrival_per_s, batch.trigger_s)
            self._behind_since_s = min(self._behind_since_s, time.monotonic()) if is_behind else math.inf
        elif record.kind == ACTION and (record.id, record.at_s) not in self._seen_actions:
            self._seen_actions.add((record.id, record.at_s))
            action = record.content_as(ActionContent)
            assert action is not None
            ordered = any(each.kind == ORDER for each in store.chain(run, record.id))
            self.actions.append(
                LoggedAction(
                    time.monotonic(),
                    record.id,
                    action.action_kind,
                    record.text,
                    ordered,
                    _changes(action),
                    action.patch,
                    self._behind_since_s,
                )
            )
        elif (receipt := record.content_as(ReceiptContent)) is not None:
            self.receipts.add(receipt.action)
            if not receipt.applied:
                self.refusals.add(receipt.action)


def _changes(action: ActionContent) -> tuple[Change, ...]:
    parts = action.parts or (action,)
    return tuple(Change(part.action_kind, part.cause, part.retire) for part in parts)
