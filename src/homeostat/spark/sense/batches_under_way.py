"""The running batches: when they began, how far they are, and how many rows are waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from homeostat.core.events import Event, UnderWay
from homeostat.core.observation import NAN
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.known_queries import QueryBook, QueryRun
from homeostat.spark.sense.progress import arrived_rows, usual_share
from homeostat.spark.sense.source_watch import SourceWatch
from homeostat.spark.sense.stage_reader import StageReader

_YOUNG_S = 2.0  # a choice: most younger batches are about to end, and looking at one costs the driver requests

# Runs that are read in one look. If there are more, they take turns. A choice: with a look every second, each of 50
# queries is read every 5 s, and a look costs the driver a few dozen requests at most.
_LOOKED_AT = 10


class BatchesUnderWay:
    """`longest` is the running batch that began first."""

    def __init__(
        self,
        queries: QueryBook,
        stages: StageReader,
        guard: GuardedWork,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        steady_s: Callable[[float], float],
        sources: SourceWatch | None = None,
    ) -> None:
        self._sources = sources
        self._queries, self._stages, self._guard = queries, stages, guard
        self._emit, self._clock, self._steady_s = emit, clock, steady_s
        self._latest: dict[str, UnderWay] = {}
        self._next = 0
        self.longest: UnderWay | None = None

    def look(self) -> None:
        old_runs = [
            run for run in self._queries.running() if run.last_s is None or self._clock() - run.last_s >= _YOUNG_S
        ]
        if self._guard.spark_answers and old_runs:
            self._stages.jobs.follow()
        turn = self._in_turn(old_runs)
        running = {run.handle.run_id: batch for run in turn if (batch := self._running(run)) is not None}
        others = {run.handle.run_id for run in old_runs} - {run.handle.run_id for run in turn}
        self._latest = {run_id: batch for run_id, batch in self._latest.items() if run_id in others} | running
        self.longest = min(self._latest.values(), key=lambda batch: batch.since_s, default=None)
        for batch in running.values():
            self._emit(batch)

    def _in_turn(self, runs: Sequence[QueryRun]) -> list[QueryRun]:
        """All of them, or the next ones if there are too many for one look."""
        first = self._next % max(1, len(runs))
        turn = [*runs[first:], *runs[:first]][:_LOOKED_AT]
        self._next = first + len(turn)
        return turn

    def _running(self, run: QueryRun) -> UnderWay | None:
        run_id = run.handle.run_id
        batch = self._stages.jobs.newest_batch(run_id)
        if not self._guard.spark_answers or batch is None or batch <= run.last_batch:
            return self._without_jobs(run)
        run.busy_s = None
        self._queries.learn_plan(run)
        jobs = self._stages.jobs.of_batch(run_id, batch)
        begun_stages = self._stages.begun_stages(jobs)
        names = self._queries.name(run, [stage for stage, _ in begun_stages], whole=False)
        if not begun_stages or batch <= run.last_batch:
            return None  # it has ended in the meantime
        stage, attempt = begun_stages[-1]
        now_s = self._clock()
        return UnderWay(
            run_id,
            batch,
            since_s=min(now_s, self._steady_s(min(job.submitted_s for job in jobs))),
            at_s=now_s,
            component=names.get(stage.id, ""),
            tasks_done=attempt.tasks_done,
            tasks=attempt.tasks,
            pending_rows=self._pending(run),
        )

    def _without_jobs(self, run: QueryRun) -> UnderWay | None:
        """A batch that is still being planned, whose sink hangs before its first job, or that REST does not show."""
        batch = run.next_batch
        if not run.handle.busy() or batch != run.next_batch:
            run.busy_s = None
            return None
        now_s = self._clock()
        run.busy_s = now_s if run.busy_s is None else run.busy_s
        return UnderWay(run.handle.run_id, batch, run.busy_s, now_s, pending_rows=self._pending(run))

    def _pending(self, run: QueryRun) -> float:
        """Rows that have arrived and are in no finished batch."""
        latest = run.query.latest
        if latest is None:
            return NAN

        def watched_end(source: int, at_s: float) -> float:
            return self._sources.end_at(run, source, at_s) if self._sources is not None else NAN

        rows = arrived_rows(run.handle.sources, latest, self._clock(), watched_end)
        shares = run.query.rows_per_offset
        return sum(
            (latest_row - source.end) * shares.get(index, usual_share(source))
            for index, (latest_row, source) in enumerate(zip(rows, latest.sources, strict=True))
        )
