"""Changes a running query without a restart, and checks whether its batches show the change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from homeostat.core.configuration import ROWS_PER_TRIGGER, TRIGGER_S, Value
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.live_effects import BATCHES, SeenBatch, Sign, rows_sign, trigger_sign, verdict
from homeostat.spark.act.live_limits import LiveLimits, more_waits, rows_of
from homeostat.spark.act.live_trigger import LiveTrigger
from homeostat.spark.act.query_errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from homeostat.checkpoint.metadata import Checkpoint
    from homeostat.spark.act.query_run import QueryRun

LIVE_KINDS = {ROWS_PER_TRIGGER: "rows per trigger", TRIGGER_S: "trigger interval"}
_NOT_RUNNING = "the query is not running"


class LiveKnobs:
    """The knobs of one query that can change while it runs, over all of its runs."""

    def __init__(self, spark: SparkSession, run: QueryRun, *, shared: bool) -> None:
        self._spark, self._run, self._shared = spark, run, shared
        self._without_effect: dict[str, str] = {}
        self._known_run, self._renewed_run = "", ""
        self._limits: LiveLimits | None = None
        self._trigger: LiveTrigger | None = None
        self._full_batch = math.nan

    def refusal(self, kind: str) -> str:
        """Why this knob cannot change in the present run; empty if it can."""
        if kind in self._without_effect:
            return self._without_effect[kind]
        if not self._look():
            return _NOT_RUNNING
        assert self._limits is not None
        assert self._trigger is not None
        if kind == TRIGGER_S:
            return self._trigger.refusal
        if not self._limits.refusal and not self._limits.counts_rows and math.isnan(self._full_batch):
            return "the number of rows per file is unknown until a batch has processed rows"
        return self._limits.refusal

    @property
    def rows(self) -> int | None:
        """The limit that the run started with, in rows; None without a limit, or until a batch shows how many rows it
        allows."""
        if self.refusal(ROWS_PER_TRIGGER):
            return None
        assert self._limits is not None
        return self._limits.rows if self._limits.counts_rows else round(self._full_batch)

    @property
    def interval_s(self) -> float:
        return self._trigger.interval_s if self._look() and self._trigger is not None else math.nan

    def renew_limit(self, rows: int) -> None:
        """Set this limit in a new run, once its sources are known. Does nothing if the run already has the limit."""
        if self.refusal(ROWS_PER_TRIGGER) or self._renewed_run == self._known_run:
            return
        assert self._limits is not None
        if self.rows != rows:
            self._limits.change(rows, self._full_batch)
        self._renewed_run = self._known_run

    def change(self, values: Mapping[str, Value], before: Mapping[str, Value], deadline: Deadline) -> str:
        """Change the values of these kinds of knobs, and wait until batches show the change. If they do not, undo it.

        `before` has the present values, as far as they are known. Returns a remark for the receipt.
        """
        last = self._run.last_batch()[0]
        watch = _Watch(self._run, last + 1 if self._run.idle else last + 2)
        changes = {kind: self._set(kind, value, before.get(kind)) for kind, value in values.items()}
        watch.sources = self._limits.adjusted if self._limits is not None else frozenset()
        try:
            watch.wait({kind: signs for kind, (signs, _) in changes.items()}, deadline)
        except BaseException:
            for _, undo in changes.values():
                undo()
            raise
        signs = {kind: read(watch) for kind, (read, _) in changes.items()}
        unseen = [kind for kind in values if not watch.settled(signs[kind]) or verdict(signs[kind]) is Sign.OLD]
        if not unseen:
            return _remark(values, signs)
        for _, undo in changes.values():
            undo()
        for kind in unseen:
            if verdict(signs[kind]) is Sign.OLD:
                self._without_effect[kind] = "a change without a restart had no effect"
        words = " and ".join(LIVE_KINDS[kind] for kind in unseen)
        raise QueryError(f"no batch shows an effect of the new {words}")

    def pause(self, checkpoint: Checkpoint, deadline: Deadline) -> bool:
        """Let the current batch end and no other begin. Returns whether every batch that has begun is committed.

        If that is not possible, or takes too long, batches continue as before.
        """
        try:
            if not self._look() or self._limits is None or self._limits.pause_refusal:
                return False
            resume = self._limits.pause()
        except Exception:  # private members of Spark: without them, a restart has no pause
            return False

        def is_quiet() -> bool:
            return self._run.between_triggers and not checkpoint.batches().one_is_open

        is_paused = False
        try:
            is_paused = deadline.wait_until(lambda: not self._run.active or is_quiet()) and self._run.active
        finally:
            if not is_paused:
                resume()
        return is_paused

    def _set(self, kind: str, value: Value, before: Value | None) -> tuple[Signs, Callable[[], None]]:
        if reason := self.refusal(kind):
            raise QueryError(f"{LIVE_KINDS[kind]} cannot change without a restart: {reason}")
        assert self._limits is not None
        assert self._trigger is not None
        limits, trigger, full_batch = self._limits, self._trigger, self._full_batch
        if kind == TRIGGER_S:
            old_s = trigger.interval_s
            trigger.change(float(value))
            return lambda watch: watch.trigger_signs(old_s, float(value)), lambda: trigger.change(old_s)

        def undo() -> None:
            limits.reset() if before is None else limits.change(int(before), full_batch)

        old = math.inf if before is None else float(before)
        limits.change(int(value), full_batch)
        return lambda watch: watch.rows_signs(old, float(value)), undo

    def _look(self) -> bool:
        """Read the limits and the trigger of the current run, once per run. Returns whether a run is active."""
        query = self._run.query
        if query is None or not self._run.active:
            return False
        run = str(query.runId)
        if run != self._known_run or self._limits is None or not self._limits.ready:
            self._limits, self._trigger = LiveLimits(self._spark, query, shared=self._shared), LiveTrigger(query)
            self._known_run, self._full_batch = run, math.nan
        if math.isnan(self._full_batch) and not self._limits.refusal and not self._limits.counts_rows:
            rows = [rows_of(progress, self._limits.adjusted) for progress in query.recentProgress]
            self._full_batch = max(rows, default=0.0) or math.nan
        return True


class _Watch:
    """The batches since a change. `first` is the number of the first batch that certainly began after it."""

    def __init__(self, run: QueryRun, first: int) -> None:
        self._run, self._first = run, first
        self.sources: frozenset[str] = frozenset()
        self._batches: dict[int, SeenBatch] = {}
        self._has_nothing_to_do = False

    def wait(self, changes: Mapping[str, Signs], deadline: Deadline) -> None:
        deadline.wait_until(lambda: self._look() and all(self.settled(read(self)) for read in changes.values()))

    def settled(self, signs: list[Sign]) -> bool:
        return self._has_nothing_to_do or verdict(signs) is not Sign.NONE or len(signs) >= BATCHES

    def rows_signs(self, old: float, new: float) -> list[Sign]:
        return [rows_sign(batch, old, new) for batch in self._in_order()]

    def trigger_signs(self, old_s: float, new_s: float) -> list[Sign]:
        return [
            trigger_sign(earlier, later, old_s, new_s)
            for earlier, later in pairwise(self._in_order())
            if later.number == earlier.number + 1
        ]

    def _in_order(self) -> list[SeenBatch]:
        return [self._batches[number] for number in sorted(self._batches)]

    def _look(self) -> bool:
        if not self._run.active:
            raise QueryError(self._run.why_ended())
        progress = self._run.progress
        newest = max(self._batches, default=self._first - 1)
        if progress is not None and int(progress["batchId"]) > newest:
            assert self._run.query is not None
            missed = int(progress["batchId"]) > newest + 1
            for each in self._run.query.recentProgress if missed else (progress,):
                if int(each["batchId"]) >= self._first:
                    self._batches[int(each["batchId"])] = self._seen(each)
        self._has_nothing_to_do = self._run.has_nothing_to_do
        return True

    def _seen(self, progress: Any) -> SeenBatch:
        return SeenBatch(
            int(progress["batchId"]),
            datetime.fromisoformat(str(progress["timestamp"])).timestamp(),
            float(progress["durationMs"].get("triggerExecution", 0)) / 1000.0,
            rows_of(progress, self.sources),
            more_waits(progress, self.sources),
        )


Signs = Callable[[_Watch], list[Sign]]


def _remark(values: Mapping[str, Value], signs: Mapping[str, list[Sign]]) -> str:
    def said(kinds: list[str], what: str) -> list[str]:
        return [f"{' and '.join(LIVE_KINDS[kind] for kind in kinds)} {what}"] if kinds else []

    confirmed_kinds = [kind for kind in values if verdict(signs[kind]) is Sign.NEW]
    silent = [kind for kind in values if kind not in confirmed_kinds]
    return "; ".join(
        said(confirmed_kinds, "changed without a restart")
        + said(silent, "changed without a restart, but no batch shows it yet")
    )
