"""Keeps a log small: summarises old batches, deletes what is too old, and gives the space back to the disk.

Ages count from the newest record of each run, so that a run on a simulated clock is treated like any other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from homeostat.core.errors import StoreError
from homeostat.core.records import (
    BATCH,
    DIAGNOSIS,
    ENGINE,
    FAILURE,
    FLOW_KINDS,
    HOUR,
    MINUTE,
    PROPOSAL,
    REJECTION,
    SYMPTOM,
    Record,
)
from homeostat.settings import LogSettings
from homeostat.store.protocol import RunInfo, Store
from homeostat.store.rollups import HOUR_S, STEPS_S, period_end_s, summaries
from homeostat.store.sql import (
    DELETE_LINKS,
    DELETE_OLDEST,
    DELETE_RECORD,
    DELETE_RUN,
    HAS_OTHER_KIND,
    OLDEST,
)
from homeostat.store.sql_database import Connection, Cursor, Usage

_Result = TypeVar("_Result")
FINDINGS = (SYMPTOM, DIAGNOSIS, PROPOSAL, REJECTION, FAILURE, ENGINE)
# Records that one slice summarises and that it deletes: the cycle of the manager waits for it. 300 of each take about
# 20 ms, and a slice every two seconds keeps up with 100 batches a second. A choice.
SLICE = 300
EVERY_S = 2.0
# A batch may be written some time after it ended: a minute is summarised when it is this old. A choice.
GRACE_S = 300.0
# Pages of 4 kB that one slice gives back. A choice: 2 MB take a few milliseconds.
_PAGES = 500
# Above its largest size the log keeps batches and findings for this share of the time, again and again, but never for
# less than the least share; well below it, for longer again. Choices: slow enough that a log settles below its limit.
_SHORTER, _LEAST_SHARE, _ROOMY = 0.7, 0.01, 0.5
_HAS_DECISION = HAS_OTHER_KIND.format(kinds=", ".join(f"'{kind}'" for kind in (*FINDINGS, *FLOW_KINDS)))
_SOURCES = {MINUTE: BATCH, HOUR: MINUTE}
# Seconds since 1970 are larger than this, those of a simulation smaller.
_CLOCK_S = 1e8


class LogFile(Store, Protocol):
    """A store whose tables can be worked on."""

    def maintain(self, work: Callable[[Connection], _Result], *, in_transaction: bool = True) -> _Result: ...

    def usage(self) -> Usage: ...

    def shrink(self, pages: int = 0) -> None: ...


class Slice(NamedTuple):
    """What one slice did. `more` says whether there may be more to do."""

    summaries: int = 0
    deleted: int = 0
    more: bool = False


class Retention:
    """Works on a store in small slices. `share` is how much of the set ages the size of the log allows."""

    def __init__(self, store: LogFile, settings: LogSettings | None = None) -> None:
        self._store, self._settings = store, settings or LogSettings()
        self.share = 1.0
        self._round: Iterator[RunInfo] = iter(())
        self._finished: dict[str, tuple[float, float]] = {}
        self._looked_at: dict[tuple[str, str], tuple[float, int]] = {}

    def usage(self) -> Usage:
        return self._store.usage()

    def slice(self) -> Slice:
        """One small piece of work on the next run that has any. After the last run, the size is checked and space is
        given back."""
        for run in self._round:
            if self._finished.get(run.name) != (run.last_s, self.share):
                done = self._work(run)
                if not done.more:
                    self._finished[run.name] = (run.last_s, self.share)
                return done
        self._adapt()
        self._begin_round()
        self._store.shrink(_PAGES)
        return Slice()

    def finish(self) -> Slice:
        """All the work at once, for a command."""
        total = Slice()
        self._begin_round()
        for run in self._round:
            more = True
            while more:
                new_summaries, deleted, more = self._work(run)
                total = Slice(total.summaries + new_summaries, total.deleted + deleted)
        self._store.shrink()
        return total

    def _begin_round(self) -> None:
        runs = self._store.runs()
        now_s = time.time()
        # A run whose last record is older than any record may be; a simulated clock says nothing about that.
        newest = {placed.run for placed in self._store.after(self._store.position() - 1, 1)}
        ended = [run for run in runs if _CLOCK_S < run.last_s < now_s - self._settings.decisions]
        old = [run for run in ended if run.name not in newest]
        for run in old:
            self._store.maintain(partial(_delete_run, name=run.name))
        self._round = iter([run for run in runs if run not in old])
        names = {run.name for run in runs}
        self._finished = {name: state for name, state in self._finished.items() if name in names}
        self._looked_at = {key: place for key, place in self._looked_at.items() if key[0] in names}

    def _work(self, run: RunInfo) -> Slice:
        whole_s = run.last_s - GRACE_S
        new_summaries = self._summarise(run, MINUTE, whole_s)
        # An hour is summarised from its minutes, so all of these must be there.
        new_summaries += self._summarise(run, HOUR, min(whole_s, self._newest_s(run, MINUTE)))
        looked_at, deleted = self._delete(run)
        return Slice(new_summaries, deleted, more=new_summaries + looked_at > 0)

    def _summarise(self, run: RunInfo, kind: str, whole_s: float) -> int:
        """Summarise the oldest batches, or minutes, that are not summarised yet, up to the last period that was over by
        then."""
        since_s = math.nextafter(self._newest_s(run, kind), math.inf)
        flows = self._store.records(run.name, kinds=(_SOURCES[kind],), since_s=since_s, limit=SLICE)
        until_s = math.floor(whole_s / STEPS_S[kind]) * STEPS_S[kind] if math.isfinite(whole_s) else -math.inf
        whole = [flow for flow in flows if flow.at_s <= until_s]
        if len(flows) == SLICE and len(whole) == SLICE:
            whole = self._whole_periods(run, kind, whole)
        new_summaries = summaries(kind, whole)
        self._store.append(run.name, new_summaries)
        return len(new_summaries)

    def _whole_periods(self, run: RunInfo, kind: str, flows: Sequence[Record]) -> list[Record]:
        """Without the last period, which may go on; if there is only one, all of it."""
        step_s = STEPS_S[kind]
        last_s = period_end_s(flows[-1].at_s, step_s)
        whole = [flow for flow in flows if period_end_s(flow.at_s, step_s) < last_s]
        if whole:
            return whole
        rest = self._store.records(run.name, kinds=(_SOURCES[kind],), since_s=flows[0].at_s)
        return [flow for flow in rest if flow.at_s <= last_s]

    def _delete(self, run: RunInfo) -> tuple[int, int]:
        """Delete the oldest records of every kind that are too old, a slice of them together. Returns how many were
        looked at, and how many of them were deleted."""
        ages, name = self._settings, run.name
        others = [kind for kind in run.counts if kind not in FLOW_KINDS]
        until_s = [
            (BATCH, min(_cut_s(run.last_s - ages.detail * self.share), self._newest_s(run, MINUTE))),
            (MINUTE, min(_cut_s(run.last_s - ages.minutes * self.share), self._newest_s(run, HOUR))),
            (HOUR, _cut_s(run.last_s - ages.hours * self.share)),
            *((kind, run.last_s - ages.decisions) for kind in others),
        ]

        def work(connection: Connection) -> tuple[int, int]:
            deleted = 0
            for kind, kind_until_s in until_s:
                deleted += _delete_oldest(connection, name, kind, kind_until_s, SLICE - deleted)
            looked_at = deleted
            for kind in FINDINGS:
                examined, deleted_findings = self._delete_findings(
                    connection, name, kind, run.last_s - ages.findings * self.share, SLICE - looked_at
                )
                looked_at, deleted = looked_at + examined, deleted + deleted_findings
            return looked_at, deleted

        return self._store.maintain(work)

    def _newest_s(self, run: RunInfo, kind: str) -> float:
        """Up to here there are summaries: what they are made of may go."""
        newest = self._store.records(run.name, kinds=(kind,), limit=1, newest_first=True)
        return newest[0].at_s if newest else -math.inf

    def _delete_findings(
        self, connection: Connection, run: str, kind: str, until_s: float, most: int
    ) -> tuple[int, int]:
        """Those to which no decision is linked. The others stay as long as the decision, and are not looked at
        again."""
        since_s, since_number = self._looked_at.get((run, kind), (-math.inf, 0))
        place = {"since_s": since_s, "since_number": since_number, "until_s": until_s, "limit": most}
        rows = connection.execute(OLDEST, {"run": run, "kind": kind, **place}).fetchall()
        alone = [(key, id) for key, id, *_ in rows if not _has_decision(connection, key, id)]
        for key, id in alone:
            connection.execute(DELETE_RECORD, {"run": key, "id": id})
            connection.execute(DELETE_LINKS, {"run": key, "id": id})
        if rows:
            self._looked_at[run, kind] = (rows[-1][2], rows[-1][3])
        return len(rows), len(alone)

    def _adapt(self) -> None:
        used_bytes = self.usage().used_bytes
        if used_bytes > self._settings.largest:
            self.share = max(_LEAST_SHARE, self.share * _SHORTER)
        elif used_bytes < _ROOMY * self._settings.largest:
            self.share = min(1.0, self.share / _SHORTER)


class Housekeeper:
    """Does one slice every few seconds while a manager runs. A failure does not affect the manager."""

    def __init__(self, retention: Retention, complain: Callable[[str], None]) -> None:
        self._retention, self._complain = retention, complain
        self._next_s = -math.inf
        self._complaint = ""

    def look(self) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        try:
            self._retention.slice()
            self._complaint = ""
        except StoreError as error:
            if error.line != self._complaint:
                self._complain(f"could not delete old records: {error.line}")
            self._complaint = error.line


def _cut_s(until_s: float) -> float:
    """Whole hours, so that no summary covers a part of what is still there in detail."""
    return math.floor(until_s / HOUR_S) * HOUR_S


def _delete_oldest(connection: Connection, run: str, kind: str, until_s: float, most: int) -> int:
    values = {"run": run, "kind": kind, "until_s": until_s, "limit": most}
    return _deleted(connection, connection.execute(DELETE_OLDEST, values))


def _has_decision(connection: Connection, run: int, id: str) -> bool:
    return connection.execute(_HAS_DECISION, {"run": run, "id": id}).fetchone() is not None


def _deleted(connection: Connection, cursor: Cursor) -> int:
    rows = cursor.fetchall()
    connection.executemany(DELETE_LINKS, [{"run": run, "id": id} for run, id in rows])
    return len(rows)


def _delete_run(connection: Connection, name: str) -> None:
    for statement in DELETE_RUN:
        connection.execute(statement, {"run": name})
