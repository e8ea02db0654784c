"""How each run in the log is doing: health, the reason for it, and its latest numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from homeostat.core.errors import StoreError
from homeostat.core.records import BATCH, Record
from homeostat.store.present import load_present
from homeostat.store.protocol import RunInfo, Store
from homeostat.views.overview import BEHIND, HEALTHY, STOPPED, UNKNOWN, query_state
from homeostat.web.series import latest, rates

SPARKLINE_POINTS = 40
GONE_S = 600.0
CLOCK_S = 1e9  # below it a clock is a simulated one, which stands still when the run is over


def runs(store: Store, now_s: float, offset: int, limit: int) -> dict[str, Any]:
    """One page of the runs, the newest first, by application."""
    infos = store.runs()[::-1]
    shown = [summary(store, info, now_s) for info in infos[offset : offset + limit]]
    applications: dict[str, list[dict[str, Any]]] = {}
    for each in shown:
        applications.setdefault(each["application"], []).append(each)
    more = offset + limit < len(infos)
    return {
        "applications": [{"name": name, "queries": queries} for name, queries in applications.items()],
        "total": len(infos),
        "next": offset + limit if more else None,
    }


def info(store: Store, run: str) -> RunInfo | None:
    return next((each for each in store.runs() if each.name == run), None)


def summary(store: Store, info: RunInfo, now_s: float) -> dict[str, Any]:
    application, _, query = info.name.partition("/")
    now = load_present(store, info.name)
    try:
        batches = store.records(info.name, kinds=(BATCH,), limit=SPARKLINE_POINTS, newest_first=True)[::-1]
        state, reason = _health(batches, info, now_s)
    except StoreError as error:  # one run that cannot be read hides no other
        batches, state, reason = [], UNKNOWN, error.what
    processed, arrived = rates(batches)
    return {
        "run": info.name,
        "application": application,
        "query": query or application,
        "health": state,
        "reason": reason,
        "mode": now.mode,
        "paused": now.paused,
        "objective": now.objective,
        "started_s": info.started_s,
        "last_s": info.last_s,
        "counts": dict(info.counts),
        "latest": latest(batches[-1]) if batches else {},
        "rates": processed,
        "arrivals": arrived,
        "diagnoses": [asdict(each) for each in now.diagnoses],
        "advised": [asdict(each) for each in now.advised],
        "active": [asdict(each) for each in now.active],
    }


def simulated(info: RunInfo) -> bool:
    return info.last_s < CLOCK_S


def _health(batches: Sequence[Record], info: RunInfo, now_s: float) -> tuple[str, str]:
    over = simulated(info)
    quiet_s = now_s - info.last_s
    if not over and quiet_s > GONE_S:
        return STOPPED, f"no news for {_span(quiet_s)}"
    state = query_state(info.name, batches, alive=True, now_s=info.last_s if over else now_s)
    told = {HEALTHY: "it keeps up", BEHIND: state.reason, UNKNOWN: state.reason}[state.health]
    return state.health, f"{told} (at the end of a simulated run)" if over else told


def _span(seconds: float) -> str:
    for unit, length in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{math.floor(seconds / length)} {unit}"
    return f"{seconds:.0f} s"
