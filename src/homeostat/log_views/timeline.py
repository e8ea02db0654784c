"""An application over time: its batches, the changes from outside, the actions and their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from homeostat.core.records import ActionContent, BatchContent, OutcomeContent, ReceiptContent, Record, with_content

# At the end of a healthy batch, one trigger's worth of rows waits: those that arrived while it ran. Twice that is too
# many.
LATE_TRIGGERS = 2.0


@dataclass(frozen=True, slots=True)
class Point:
    """One batch that ended at `at_s`: the load at that time, the rows processed per second since the previous batch,
    and the rows that wait."""

    at_s: float
    span_s: float
    load_per_s: float
    rate_per_s: float
    pending_rows: float
    executors: int
    seconds: float
    trigger_s: float

    @property
    def behind(self) -> bool:
        return behind(self.pending_rows, self.load_per_s, self.trigger_s or self.seconds)


@dataclass(frozen=True, slots=True)
class Change:
    """A change from outside: of the load, or a fault."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """How long a change disturbed the application: `healthy_after_s` is 0 if it never fell behind, None if it was still
    behind at the next change or at the end, or if no batch ended by then."""

    change: Change
    healthy_after_s: float | None


@dataclass(frozen=True, slots=True)
class TakenAction:
    """An action with its cause and its verdict. `took_s` is None if no effect was observed; `verdict` is empty until
    there is one."""

    id: str
    at_s: float
    kind: str
    text: str
    cause: str
    took_s: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """All times are seconds since the query was up. `load` holds pairs (from second, rows per second). `differences`
    lists rows that were lost or counted twice."""

    name: str
    title: str
    duration_s: float
    load: tuple[tuple[float, float], ...]
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    actions: tuple[TakenAction, ...]
    rows: int
    differences: tuple[str, ...]

    @property
    def behind_s(self) -> float:
        return sum(span_s for point, span_s in self._spans if point.behind)

    @property
    def largest_backlog(self) -> float:
        return max((point.pending_rows for point in self.points if math.isfinite(point.pending_rows)), default=math.nan)

    @property
    def executor_seconds(self) -> float:
        return sum(point.executors * span_s for point, span_s in self._spans)

    @property
    def _spans(self) -> Iterator[tuple[Point, float]]:
        """How long each batch counts; after the last one, its values are assumed to hold until the end."""
        yield from ((point, point.span_s) for point in self.points)
        if self.points:
            yield self.points[-1], max(0.0, self.duration_s - self.points[-1].at_s)

    @property
    def healthy(self) -> bool:
        """Whether it kept up at the end."""
        return bool(self.points) and not self.points[-1].behind

    @property
    def recoveries(self) -> tuple[Recovery, ...]:
        ends_s = [change.at_s for change in self.changes[1:]] + [math.inf]
        return tuple(
            Recovery(change, _healthy_after_s(self.points, change.at_s, end_s))
            for change, end_s in zip(self.changes, ends_s, strict=True)
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "duration_s": self.duration_s,
            "rows": self.rows,
            "differences": list(self.differences),
            "healthy": self.healthy,
            "behind_s": round(self.behind_s, 1),
            "largest_backlog_rows": self.largest_backlog,
            "executor_seconds": round(self.executor_seconds),
            "changes": [
                {
                    "at_s": round(recovery.change.at_s, 1),
                    "what": recovery.change.text,
                    "healthy_after_s": None if recovery.healthy_after_s is None else round(recovery.healthy_after_s, 1),
                }
                for recovery in self.recoveries
            ],
            "actions": [
                {
                    "id": action.id,
                    "at_s": round(action.at_s, 1),
                    "action": action.text,
                    "because": action.cause,
                    "took_s": None if action.took_s is None else round(action.took_s, 1),
                    "verdict": action.verdict,
                }
                for action in self.actions
            ],
        }


def behind(pending_rows: float, arrival_per_s: float, trigger_s: float) -> bool:
    """Whether more rows wait than arrive in two triggers; False where one of them is unknown."""
    return pending_rows > LATE_TRIGGERS * trigger_s * arrival_per_s


def processed_per_s(batch: BatchContent) -> float:
    """NaN where the length of the batch is unknown."""
    return batch.rows / batch.span_s if batch.span_s > 0 else math.nan


def points_of(records: Iterable[Record], started_s: float, load: Callable[[float], float]) -> list[Point]:
    """One for each batch in the records; `load` gives the rows per second at a time since the start."""
    return [_point(record.at_s - started_s, batch, load) for record, batch in with_content(records, BatchContent)]


def _point(at_s: float, batch: BatchContent, load: Callable[[float], float]) -> Point:
    return Point(
        at_s,
        batch.span_s,
        load(at_s),
        processed_per_s(batch),
        batch.pending_rows,
        batch.workers,
        batch.seconds,
        batch.trigger_s,
    )


def actions_of(records: Sequence[Record], started_s: float) -> tuple[TakenAction, ...]:
    """Every action in the records, as far as it has come."""
    effects_s = {receipt.action: r.at_s for r, receipt in with_content(records, ReceiptContent) if receipt.applied}
    verdicts = {outcome.action: outcome.verdict for _, outcome in with_content(records, OutcomeContent)}
    return tuple(
        TakenAction(
            record.id,
            record.at_s - started_s,
            action.action_kind,
            record.text,
            action.cause,
            effects_s[record.id] - record.at_s if record.id in effects_s else None,
            verdicts.get(record.id, ""),
        )
        for record, action in with_content(records, ActionContent)
    )


def _healthy_after_s(points: Sequence[Point], start_s: float, end_s: float) -> float | None:
    between = [point for point in points if start_s < point.at_s <= end_s]
    late = [number for number, point in enumerate(between) if point.behind]
    if between and not late:
        return 0.0
    # Only the next batch shows that it has caught up.
    return between[late[-1] + 1].at_s - start_s if late and late[-1] + 1 < len(between) else None
