"""A store in memory, for simulations and tests. It has the same contract, but its content is lost when the process
ends.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import NamedTuple

from homeostat.core.record_json import JSON
from homeostat.core.records import ACTION, OUTCOME, RECEIPT, OutcomeContent, ReceiptContent, Record, with_content
from homeostat.store.codec import dump_of, load, load_body, split_record
from homeostat.store.protocol import BEGINNING_S, SET_ASIDE, Placed, RunInfo


class _Entry(NamedTuple):
    at_s: float
    number: int
    record: Record


@dataclass(slots=True)
class _Run:
    by_id: dict[str, _Entry] = field(default_factory=dict)
    in_order: list[_Entry] = field(default_factory=list)
    by_kind: dict[str, list[_Entry]] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=dict)
    state: dict[str, JSON] = field(default_factory=dict)

    def parents(self, id: str) -> Sequence[str]:
        entry = self.by_id.get(id)
        return () if entry is None else entry.record.because


def _moment(entry: _Entry) -> tuple[float, int]:
    return entry.at_s, entry.number


class MemoryStore:
    """Keeps the log in memory. `close` does nothing, so that the log of a finished simulation can still be read."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._numbers = count(1)
        self._placed_records: list[Placed] = []

    def append(self, run: str, records: Sequence[Record]) -> None:
        plain = [_plain(record) for record in records]
        if not plain:
            return
        run_log = self._runs.setdefault(run, _Run())
        for record in plain:
            if record.id in run_log.by_id:
                continue
            entry = _Entry(record.at_s, next(self._numbers), record)
            run_log.by_id[record.id] = entry
            self._placed_records.append(Placed(entry.number, run, record))
            insort(run_log.in_order, entry, key=_moment)
            insort(run_log.by_kind.setdefault(record.kind, []), entry, key=_moment)
            for parent in dict.fromkeys(record.because):
                run_log.children.setdefault(parent, []).append(record.id)

    def get(self, run: str, id: str) -> Record | None:
        entry = self._run_log(run).by_id.get(id)
        return None if entry is None else entry.record

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
        run_log = self._run_log(run)
        entries = run_log.by_kind.get(kinds[0], []) if len(kinds) == 1 else run_log.in_order
        indices = range(bisect_left(entries, (since_s, -1), key=_moment), len(entries))
        matches = (
            entries[index].record
            for index in (reversed(indices) if newest_first else indices)
            if (not kinds or entries[index].record.kind in kinds)
            and (not component or entries[index].record.component == component)
        )
        return list(islice(matches, limit)) if limit > 0 else list(matches)

    def ids(self, run: str, kinds: Sequence[str]) -> list[str]:
        return [record.id for record in self.records(run, kinds=kinds)] if kinds else []

    def chain(self, run: str, id: str) -> list[Record]:
        run_log = self._run_log(run)
        if id not in run_log.by_id:
            return []
        linked_ids = _reachable(id, run_log.parents) | _reachable(
            id, lambda linked_id: run_log.children.get(linked_id, ())
        )
        entries = sorted(
            (run_log.by_id[linked_id] for linked_id in linked_ids if linked_id in run_log.by_id), key=_moment
        )
        return [entry.record for entry in entries]

    def open_intents(self, run: str) -> list[Record]:
        applied_ids = {
            receipt.action for _, receipt in with_content(self.records(run, kinds=(RECEIPT,)), ReceiptContent)
        }
        return [action for action in self.records(run, kinds=(ACTION,)) if action.id not in applied_ids]

    def unjudged(self, run: str) -> list[Record]:
        receipts = with_content(self.records(run, kinds=(RECEIPT,)), ReceiptContent)
        applied = {receipt.action for _, receipt in receipts if receipt.applied}
        judged_ids = {
            outcome.action for _, outcome in with_content(self.records(run, kinds=(OUTCOME,)), OutcomeContent)
        }
        actions = self.records(run, kinds=(ACTION,))
        return [action for action in actions if action.id in applied and action.id not in judged_ids]

    def save_state(self, run: str, key: str, value: JSON) -> None:
        self._runs.setdefault(run, _Run()).state[key] = load(dump_of(value, f"the state {key!r}"))

    def load_state(self, run: str, key: str) -> JSON | None:
        return self._run_log(run).state.get(key)

    def set_aside(self, run: str, key: str) -> None:
        state = self._run_log(run).state
        if key in state:
            state[f"{key}{SET_ASIDE}"] = state.pop(key)

    def runs(self) -> list[RunInfo]:
        return [_info(name, run_log) for name, run_log in self._runs.items() if run_log.in_order]

    def position(self) -> int:
        return len(self._placed_records)

    def after(self, position: int, limit: int) -> list[Placed]:
        return self._placed_records[position : position + limit]

    def close(self) -> None:
        pass

    def _run_log(self, run: str) -> _Run:
        return self._runs.get(run, _Run())


def _plain(record: Record) -> Record:
    head, body = split_record(record)
    return replace(head, body=load_body(body))


def _reachable(start: str, links: Callable[[str], Sequence[str]]) -> set[str]:
    """Everything that can be reached from the start, itself included."""
    reached_ids = {start}
    open_ids = [start]
    while open_ids:
        for linked_id in links(open_ids.pop()):
            if linked_id not in reached_ids:
                reached_ids.add(linked_id)
                open_ids.append(linked_id)
    return reached_ids


def _info(name: str, run_log: _Run) -> RunInfo:
    counts = {kind: len(entries) for kind, entries in sorted(run_log.by_kind.items())}
    return RunInfo(name, run_log.in_order[0].at_s, run_log.in_order[-1].at_s, counts)
