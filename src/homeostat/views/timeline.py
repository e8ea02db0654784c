"""What became of an application over time: its batches, what changed around it, what was done, how well it fared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeostat.core.records import ACTION, OUTCOME, RECEIPT, Record

# Rows that wait at the end of a batch arrived while it ran, one trigger's worth; twice that has been left behind.
LATE_TRIGGERS = 2.0


@dataclass(frozen=True, slots=True)
class Point:
    """One batch that ended at `at_s`: the load then, the rows taken per second since the batch before, what waits."""

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
    """Something that was done to the application from outside."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """`healthy_after_s` a change: 0 if it never fell behind, None if it was behind till the next one or the end, or if
    no batch ended by then."""

    change: Change
    healthy_after_s: float | None


@dataclass(frozen=True, slots=True)
class Deed:
    """An action, from cause to verdict. `took_s` is None if no effect was seen, `verdict` is empty if there is none."""

    id: str
    at_s: float
    kind: str
    text: str
    cause: str
    took_s: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """All times count from when the query was up. `load` holds pairs (from second, rows per second); `differences` tell
    of rows lost or doubled: none, if every one counted once."""

    name: str
    title: str
    duration_s: float
    load: tuple[tuple[float, float], ...]
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    deeds: tuple[Deed, ...]
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
        """How long each batch stands for; nothing is known of one under way at the end but that it goes on."""
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
                    "id": deed.id,
                    "at_s": round(deed.at_s, 1),
                    "action": deed.text,
                    "because": deed.cause,
                    "took_s": None if deed.took_s is None else round(deed.took_s, 1),
                    "verdict": deed.verdict,
                }
                for deed in self.deeds
            ],
        }


def behind(pending_rows: float, arrival_per_s: float, trigger_s: float) -> bool:
    """Whether more waits than arrives in two triggers; what is unknown does not count."""
    return pending_rows > LATE_TRIGGERS * trigger_s * arrival_per_s


def point_of(record: Record, started_s: float, load: Callable[[float], float]) -> Point:
    """From the record of a batch."""
    at_s = record.at_s - started_s
    span_s = known(record.body, "span_s")
    return Point(
        at_s,
        span_s,
        load(at_s),
        known(record.body, "rows") / span_s,
        known(record.body, "pending_rows"),
        int(known(record.body, "workers")),
        known(record.body, "seconds"),
        known(record.body, "trigger_s"),
    )


def deeds_of(records: Sequence[Record], started_s: float) -> tuple[Deed, ...]:
    taken = {r.body["action"]: r.at_s for r in records if r.kind == RECEIPT and r.body.get("applied")}
    verdicts = {r.body["action"]: str(r.body["verdict"]) for r in records if r.kind == OUTCOME}
    return tuple(
        Deed(
            action.id,
            action.at_s - started_s,
            str(action.body.get("kind", "")),
            action.text,
            str(action.body.get("cause", "")),
            taken[action.id] - action.at_s if action.id in taken else None,
            verdicts.get(action.id, ""),
        )
        for action in records
        if action.kind == ACTION
    )


def known(body: Mapping[str, Any], name: str) -> float:
    """A number of a record; NaN where it says none: anyone who can write the log can write anything there."""
    try:
        return float(body[name])
    except (KeyError, TypeError, ValueError, OverflowError):
        return math.nan


def _healthy_after_s(points: Sequence[Point], start_s: float, end_s: float) -> float | None:
    seen = [point for point in points if start_s < point.at_s <= end_s]
    late = [number for number, point in enumerate(seen) if point.behind]
    if seen and not late:
        return 0.0
    # Only the next batch shows that it has caught up.
    return seen[late[-1] + 1].at_s - start_s if late and late[-1] + 1 < len(seen) else None
