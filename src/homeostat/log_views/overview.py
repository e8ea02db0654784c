"""The current state of an application, read from its files and its log by another process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from homeostat.core.errors import ConfigError, StoreError
from homeostat.core.records import (
    ACTION,
    BATCH,
    DELIVERY,
    DIAGNOSIS,
    OUTCOME,
    RECEIPT,
    BatchContent,
    DeliveryContent,
    DiagnosisContent,
    FindingContent,
    OutcomeContent,
    ReceiptContent,
    Record,
    with_content,
)
from homeostat.core.wording import rows_waiting
from homeostat.log_views.catching_up import catching_up
from homeostat.log_views.resource_usage import ResourceUsage, resource_usage
from homeostat.log_views.timeline import behind
from homeostat.models.caught_up import CatchUp
from homeostat.runtime.announcement import is_running, log_of, read_announcement
from homeostat.runtime.launch import CAPABILITIES, KNOBS, read_json
from homeostat.store.opening import open_store
from homeostat.store.present import load_present
from homeostat.store.protocol import Store

# Health is unknown after this much silence plus some batches: a restart takes less, and a crash is noticed soon.
SILENT_S = 60.0
SILENT_BATCHES = 5.0
# Records of one kind that are read at most. A choice: far more than there are current diagnoses, or answers to an
# action.
_PAGE = 500
_PAGES: tuple[tuple[tuple[str, ...], int], ...] = (
    ((), 1),
    ((BATCH,), 1),
    ((DELIVERY,), 1),
    ((ACTION,), 1),
    ((RECEIPT,), _PAGE),
    ((OUTCOME,), _PAGE),
    ((DIAGNOSIS,), _PAGE),
)
HOW_TO_START = "start it with `homeostat run APP.PY`, or call hs.attach(spark) in it"

HEALTHY = "healthy"
BEHIND = "falling behind"
UNKNOWN = "unknown"
STOPPED = "not running"


@dataclass(frozen=True, slots=True)
class QueryState:
    """One query. `diagnoses` are those that still hold; `last_action` is the last action followed by its receipt and
    its outcome, as far as there are any; `errors` is the mean error of predictions per component, in ln of the time;
    `undelivered` says which alerts did not reach the webhook; `catch_up` is when a backlog will be gone."""

    name: str
    health: str
    reason: str
    batch: Record | None = None
    newest_s: float | None = None
    diagnoses: tuple[Record, ...] = ()
    last_action: tuple[Record, ...] = ()
    errors: Mapping[str, float] = field(default_factory=dict)
    undelivered: str = ""
    catch_up: CatchUp | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    directory: Path
    alive: bool
    about: Mapping[str, Any]
    knobs: Mapping[str, float]
    capabilities: Sequence[Mapping[str, Any]]
    queries: tuple[QueryState, ...] = field(default=())
    usage: ResourceUsage = ResourceUsage()

    @property
    def health(self) -> str:
        """The worst health among the queries."""
        if not self.alive:
            return STOPPED
        states = {query.health for query in self.queries}
        return next((state for state in (BEHIND, UNKNOWN, HEALTHY) if state in states), UNKNOWN)


def overview(directory: Path, now_s: float) -> Overview:
    about = read_announcement(directory)
    if about is None:
        raise ConfigError("no application was started in this directory", where=str(directory), fix=HOW_TO_START)
    alive = is_running(about)
    saved_knobs = read_json(directory / KNOBS) or {}
    knobs = dict(saved_knobs.get("values", {}))
    executors = saved_knobs.get("executors", {})
    if executors:
        knobs["executors.app"] = sum(executors.values())
    queries = tuple(_queries(about, alive, now_s))
    usage = resource_usage(directory, about, alive)
    return Overview(directory, alive, about, knobs, read_json(directory / CAPABILITIES) or [], queries, usage)


def query_state(name: str, records: Sequence[Record], alive: bool, now_s: float) -> QueryState:
    """From the records since the driver started, by time."""
    batches = list(with_content(records, BatchContent))
    newest_s = max((record.at_s for record in records), default=None)
    record, batch = batches[-1] if batches else (None, None)
    health, reason = (STOPPED, "") if not alive else _health(batch, newest_s, now_s)
    return QueryState(
        name,
        health,
        reason,
        record,
        newest_s,
        _standing(records),
        _last_action(records),
        _errors(records),
        undelivered([each for each in records if each.kind == DELIVERY][-1:]),
    )


def _queries(about: Mapping[str, Any], alive: bool, now_s: float) -> list[QueryState]:
    started_s = float(about["started_s"])
    try:
        store = open_store(log_of(about), read_only=True)
    except StoreError as error:
        return [QueryState(name, UNKNOWN if alive else STOPPED, error.line) for name in about["queries"]]
    try:
        states = [
            (run, query_state(name, recent_records(store, run, started_s), alive, now_s))
            for name, run in about["queries"].items()
        ]
        return [replace(state, catch_up=catching_up(store, run) if alive else None) for run, state in states]
    finally:
        store.close()


def recent_records(store: Store, run: str, since_s: float) -> list[Record]:
    """The records that tell the state of a query, by time. An application that has run for months has millions of
    others."""
    newest = partial(store.records, run, since_s=since_s, newest_first=True)
    records = [record for kinds, limit in _PAGES for record in newest(kinds=kinds, limit=limit)]
    ids = {record.id for record in records}
    standing_ids = [finding.id for finding in load_present(store, run).diagnoses if finding.id not in ids]
    older = [store.get(run, id) for id in standing_ids[:_PAGE]]
    records += [record for record in older if record is not None and record.at_s >= since_s]
    return sorted({record.id: record for record in records}.values(), key=lambda record: record.at_s)


def _health(batch: BatchContent | None, newest_s: float | None, now_s: float) -> tuple[str, str]:
    if batch is None or newest_s is None:
        return UNKNOWN, "no batch has ended yet"
    longest_s = max((each for each in (batch.seconds, batch.trigger_s) if math.isfinite(each)), default=0.0)
    if now_s - newest_s > SILENT_S + SILENT_BATCHES * longest_s:
        return UNKNOWN, f"no new records for {now_s - newest_s:.0f} s"
    if behind(batch.pending_rows, batch.arrival_per_s, period_s(batch)):
        waiting = rows_waiting(batch.pending_rows, batch.pending_at_most)
        return BEHIND, f"{waiting}, more than arrive in two trigger intervals"
    return HEALTHY, ""


def period_s(batch: BatchContent) -> float:
    """The time that a batch may take. A dataflow has neither trigger nor batches: there it is the interval between two
    measurements."""
    return next((each for each in (batch.trigger_s, batch.seconds, batch.span_s) if each > 0), 0.0)


def undelivered(newest: Sequence[Record]) -> str:
    """What the newest record about the sending of alerts says, unless they were sent in the end."""
    return "; ".join(each.text for each, delivery in with_content(newest, DeliveryContent) if delivery.state != "sent")


def _standing(records: Sequence[Record]) -> tuple[Record, ...]:
    """The diagnoses that have not ended."""
    endings = [record for record in records if isinstance(record.content, FindingContent) and record.content.over]
    ended_ids = {id for record in endings for id in record.because}
    return tuple(
        record
        for record, diagnosis in with_content(records, DiagnosisContent)
        if not diagnosis.over and record.id not in ended_ids
    )


def _last_action(records: Sequence[Record]) -> tuple[Record, ...]:
    last = next((record for record in reversed(records) if record.kind == ACTION), None)
    if last is None:
        return ()
    answers = [
        record
        for record in records
        if isinstance(record.content, ReceiptContent | OutcomeContent) and record.content.action == last.id
    ]
    return (last, *answers)


def _errors(records: Sequence[Record]) -> dict[str, float]:
    """As the newest judged action of each component left them."""
    return {
        record.component: outcome.model_error
        for record, outcome in with_content(records, OutcomeContent)
        if record.component and not math.isnan(outcome.model_error)
    }
