"""The state of each run in the log: its health with the reason, and its latest numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from homeostat.core.errors import StoreError
from homeostat.core.records import BATCH, Record
from homeostat.log_views.overview import HEALTHY, STOPPED, UNKNOWN, query_state
from homeostat.store.present import PresentAction, StandingFinding, load_present
from homeostat.store.protocol import RunInfo, Store
from homeostat.web.series import contents, latest, rates
from homeostat.web.texts import as_sentence

SPARKLINE_POINTS = 40
# A run without new records for this long has ended: even a slow restart takes less time.
GONE_S = 600.0
# A time before this one (2001) comes from a simulated clock, which stops at the end of the run.
CLOCK_S = 1e9


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run. `reason` explains `health`. `latest` holds the newest value of each chart's column, `rates` and
    `arrivals` the newest process and input rates. `objective` holds only what is set, `counts` the records by kind."""

    run: str
    application: str
    query: str
    health: str
    reason: str
    mode: str
    paused: str
    objective: Mapping[str, float]
    started_s: float
    last_s: float
    counts: Mapping[str, int]
    latest: Mapping[str, float | None]
    rates: Sequence[float | None]
    arrivals: Sequence[float | None]
    diagnoses: tuple[StandingFinding, ...]
    advised: tuple[PresentAction, ...]
    active: tuple[PresentAction, ...]


@dataclass(frozen=True, slots=True)
class ApplicationRuns:
    name: str
    queries: list[RunSummary] = field(default_factory=list)


def by_application(summaries: Sequence[RunSummary]) -> tuple[ApplicationRuns, ...]:
    applications: dict[str, ApplicationRuns] = {}
    for summary in summaries:
        name = summary.application
        applications.setdefault(name, ApplicationRuns(name)).queries.append(summary)
    return tuple(applications.values())


def info(store: Store, run: str) -> RunInfo | None:
    return next((each for each in store.runs() if each.name == run), None)


def summarise(store: Store, info: RunInfo, now_s: float) -> RunSummary:
    application, _, query = info.name.partition("/")
    present = load_present(store, info.name)
    try:
        batches = store.records(info.name, kinds=(BATCH,), limit=SPARKLINE_POINTS, newest_first=True)[::-1]
        health, reason = _health(batches, info, now_s)
    except StoreError as error:  # one run that cannot be read must not hide the others
        batches, health, reason = [], UNKNOWN, error.what
    numbers = contents(batches)
    processed_rate, arrival_per_s = rates(numbers)
    return RunSummary(
        run=info.name,
        application=application,
        query=query or application,
        health=health,
        reason=reason,
        mode=present.mode,
        paused=present.paused,
        objective=present.objective,
        started_s=info.started_s,
        last_s=info.last_s,
        counts=dict(info.counts),
        latest=latest(batches[-1].at_s, numbers[-1]) if numbers else {},
        rates=processed_rate,
        arrivals=arrival_per_s,
        diagnoses=present.diagnoses,
        advised=present.advised,
        active=present.active,
    )


def is_simulated(info: RunInfo) -> bool:
    return info.last_s < CLOCK_S


def _health(batches: Sequence[Record], info: RunInfo, now_s: float) -> tuple[str, str]:
    has_ended = is_simulated(info)
    quiet_s = now_s - info.last_s
    if not has_ended and quiet_s > GONE_S:
        return STOPPED, f"No new records for {_span(quiet_s)}."
    state = query_state(info.name, batches, alive=True, now_s=info.last_s if has_ended else now_s)
    reason = "The query keeps up with the load." if state.health == HEALTHY else as_sentence(state.reason)
    return state.health, f"{reason} (End of a simulated run.)" if has_ended else reason


def _span(seconds: float) -> str:
    for unit, length_s in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= length_s:
            return f"{math.floor(seconds / length_s)} {unit}"
    return f"{seconds:.0f} s"
