"""What an application is doing now, as far as its files and its log tell: read by another process, changing nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from homeostat.core.errors import ConfigError, StoreError
from homeostat.core.records import ACTION, BATCH, DIAGNOSIS, OUTCOME, RECEIPT, Record
from homeostat.runtime.announcement import is_running, read_announcement
from homeostat.runtime.launch import CAPABILITIES, KNOBS, read_json
from homeostat.store.sqlite import SqliteStore
from homeostat.views.timeline import behind, known

# Without news for longer than this and some batches, nobody knows how it is.
SILENT_S = 60.0
SILENT_BATCHES = 5.0
HOW_TO_START = "start it with `homeostat run APP.PY`, or call hs.attach(spark) in it"

HEALTHY = "healthy"
BEHIND = "falling behind"
UNKNOWN = "unknown"
STOPPED = "not running"


@dataclass(frozen=True, slots=True)
class QueryState:
    """One query. `diagnoses` are those that stand; `deed` is the last action with its receipt and outcome, if any;
    `errors` how far predictions about each component have been off, in ln of the time."""

    name: str
    health: str
    reason: str
    batch: Record | None = None
    newest_s: float | None = None
    diagnoses: tuple[Record, ...] = ()
    deed: tuple[Record, ...] = ()
    errors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Overview:
    directory: Path
    alive: bool
    about: Mapping[str, Any]
    knobs: Mapping[str, float]
    capabilities: Sequence[Mapping[str, Any]]
    queries: tuple[QueryState, ...] = field(default=())

    @property
    def health(self) -> str:
        """That of the query that is worst off."""
        if not self.alive:
            return STOPPED
        found = {query.health for query in self.queries}
        return next((each for each in (BEHIND, UNKNOWN, HEALTHY) if each in found), UNKNOWN)


def overview(directory: Path, now_s: float) -> Overview:
    about = read_announcement(directory)
    if about is None:
        raise ConfigError("no application was started in this directory", where=str(directory), fix=HOW_TO_START)
    alive = is_running(about)
    kept = read_json(directory / KNOBS) or {}
    knobs = dict(kept.get("values", {}))
    executors = kept.get("executors", {})
    if executors:
        knobs["executors.app"] = sum(executors.values())
    queries = tuple(_queries(about, alive, now_s))
    return Overview(directory, alive, about, knobs, read_json(directory / CAPABILITIES) or [], queries)


def query_state(name: str, records: Sequence[Record], alive: bool, now_s: float) -> QueryState:
    """From what the log holds since the driver started."""
    batches = [record for record in records if record.kind == BATCH]
    newest_s = max((record.at_s for record in records), default=None)
    batch = batches[-1] if batches else None
    health, reason = (STOPPED, "") if not alive else _health(batch, newest_s, now_s)
    return QueryState(name, health, reason, batch, newest_s, _standing(records), _last_deed(records), _errors(records))


def _queries(about: Mapping[str, Any], alive: bool, now_s: float) -> list[QueryState]:
    started_s = float(about["started_s"])
    try:
        store = SqliteStore(Path(about.get("store", "homeostat.sqlite")), read_only=True)
    except StoreError as error:
        return [QueryState(name, UNKNOWN if alive else STOPPED, error.line) for name in about["queries"]]
    try:
        return [
            query_state(name, store.records(run, since_s=started_s), alive, now_s)
            for name, run in about["queries"].items()
        ]
    finally:
        store.close()


def _health(batch: Record | None, newest_s: float | None, now_s: float) -> tuple[str, str]:
    if batch is None or newest_s is None:
        return UNKNOWN, "no batch has ended yet"
    seconds, trigger_s = known(batch.body, "seconds"), known(batch.body, "trigger_s")
    period_s = max((each for each in (seconds, trigger_s) if math.isfinite(each)), default=0.0)
    if now_s - newest_s > SILENT_S + SILENT_BATCHES * period_s:
        return UNKNOWN, f"no news for {now_s - newest_s:.0f} s"
    pending, arrival_per_s = known(batch.body, "pending_rows"), known(batch.body, "arrival_per_s")
    # A dataflow has neither trigger nor batches: there it is the interval of the measurement.
    period_s = next((each for each in (trigger_s, seconds, known(batch.body, "span_s")) if each > 0), 0.0)
    if behind(pending, arrival_per_s, period_s):
        return BEHIND, f"{pending:,.0f} rows wait, more than arrive in two triggers"
    return HEALTHY, ""


def _standing(records: Sequence[Record]) -> tuple[Record, ...]:
    over = {id for record in records if record.body.get("over") for id in record.because}
    found = [record for record in records if record.kind == DIAGNOSIS and not record.body.get("over")]
    return tuple(record for record in found if record.id not in over)


def _last_deed(records: Sequence[Record]) -> tuple[Record, ...]:
    actions = [record for record in records if record.kind == ACTION]
    if not actions:
        return ()
    last = actions[-1]
    later = [r for r in records if r.kind in (RECEIPT, OUTCOME) and r.body.get("action") == last.id]
    return (last, *later)


def _errors(records: Sequence[Record]) -> dict[str, float]:
    """As the newest judged action of each component left them."""
    judged = (record for record in records if record.kind == OUTCOME and record.component)
    return {r.component: known(r.body, "model_error") for r in judged if r.body.get("model_error") is not None}
