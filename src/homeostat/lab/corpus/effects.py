"""The effect of a fault on the query, measured in the log: a share of the batch time, of the attempts, or of the
backlog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from homeostat.lab.corpus import labels
from homeostat.spark.outside import event_log
from homeostat.spark.sense.progress import Progress, read_progress

Json = Mapping[str, Any]
# The first batches of a query compile code and start Python workers, so they are not compared.
COLD_BATCHES = 3


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """The batches of a run that had rows, the ends of its tasks, and the executors that it lost."""

    batches: tuple[Progress, ...]
    reports: tuple[Json, ...]
    tasks: tuple[Json, ...]
    losses_s: tuple[float, ...]

    def between(self, at_s: float, until_s: float) -> list[Progress]:
        """The batches that began in this time, without the first few."""
        return [batch for batch in self.batches[COLD_BATCHES:] if at_s <= batch.started_s < until_s]

    def reports_between(self, at_s: float, until_s: float) -> list[Json]:
        numbers = {batch.batch for batch in self.between(at_s, until_s)}
        return [report for report in self.reports if report["batchId"] in numbers]

    def tasks_between(self, at_s: float, until_s: float) -> list[Json]:
        return [task for task in self.tasks if at_s <= task["Task Info"]["Launch Time"] / 1000 < until_s]


@dataclass(frozen=True, slots=True)
class Span:
    """When a fault acted, and how many slots there were."""

    at_s: float
    until_s: float
    slots: int


def logged_run(events: Iterable[Json]) -> LoggedRun:
    reports: list[Json] = []
    tasks: list[Json] = []
    losses_s: list[float] = []
    for event in events:
        match event["Event"]:
            case event_log.QUERY_PROGRESS:
                reports.append(event_log.progress_of(event))
            case event_log.TASK_END:
                tasks.append(event)
            case event_log.EXECUTOR_REMOVED:
                losses_s.append(event["Timestamp"] / 1000)
    with_rows = [(read_progress(report), report) for report in reports]
    with_rows = [pair for pair in with_rows if sum(source.rows for source in pair[0].sources) > 0]
    return LoggedRun(
        tuple(progress for progress, _ in with_rows),
        tuple(report for _, report in with_rows),
        tuple(tasks),
        tuple(losses_s),
    )


def mean_seconds(batches: Sequence[Progress]) -> float:
    return fmean(batch.seconds for batch in batches) if batches else 0.0


def _batch_time(run: LoggedRun, span: Span, before_s: float) -> float:
    during_s = mean_seconds(run.between(span.at_s, span.until_s))
    return 1 - before_s / during_s if before_s > 0 and during_s > 0 else 0.0


def _backlog(run: LoggedRun, span: Span, before_s: float) -> float:
    """The growth of the backlog, as a share of the rows that arrived meanwhile."""
    batches = run.between(span.at_s, span.until_s)
    if len(batches) < 2:
        return 0.0
    first, last = batches[0].sources[0], batches[-1].sources[0]
    arrived_rows = last.latest - first.latest
    return ((last.latest - last.end) - (first.latest - first.end)) / arrived_rows if arrived_rows > 0 else 0.0


def _failed_attempts(run: LoggedRun, span: Span, before_s: float) -> float:
    tasks = run.tasks_between(span.at_s, span.until_s)
    failed_tasks = [task for task in tasks if task["Task End Reason"]["Reason"] != "Success"]
    return len(failed_tasks) / max(1, len(tasks))


def _standstill(run: LoggedRun, span: Span, before_s: float) -> float:
    """The share of batches whose watermark did not advance. The first one still has rows from before the fault."""
    marks = [report.get("eventTime", {}).get("watermark") for report in run.reports_between(span.at_s, span.until_s)]
    pairs = list(pairwise(marks[1:]))
    return sum(earlier == later is not None for earlier, later in pairs) / len(pairs) if pairs else 0.0


def _state_growth(run: LoggedRun, span: Span, before_s: float) -> float:
    batches = run.between(span.at_s, span.until_s)
    return 1 - batches[0].state_rows / batches[-1].state_rows if batches and batches[-1].state_rows else 0.0


def _idle_slots(run: LoggedRun, span: Span, before_s: float) -> float:
    tasks = [task["Task Info"] for task in run.tasks_between(span.at_s, span.until_s)]
    busy_s = sum(float(info["Finish Time"] - info["Launch Time"]) for info in tasks) / 1000
    return 1 - busy_s / (span.slots * (span.until_s - span.at_s))


def _losses(run: LoggedRun, span: Span, before_s: float) -> float:
    """The number of lost executors, as a share of all executors."""
    return sum(span.at_s <= at_s <= span.until_s for at_s in run.losses_s) / span.slots


_MEASURED: Mapping[str, Callable[[LoggedRun, Span, float], float]] = {
    labels.BATCH_TIME: _batch_time,
    labels.BACKLOG: _backlog,
    labels.FAILED_ATTEMPTS: _failed_attempts,
    labels.STANDSTILL: _standstill,
    labels.STATE_GROWTH: _state_growth,
    labels.IDLE_SLOTS: _idle_slots,
    labels.LOSSES: _losses,
}


def effect_of(measure: str, run: LoggedRun, span: Span, before_s: float) -> float:
    """The effect, from 0 to 1. `before_s` is the mean duration of a batch without the fault; 0 if it is unknown."""
    return round(min(1.0, max(0.0, _MEASURED[measure](run, span, before_s))), 3)
