"""The running query: batch after batch, stage after stage, replanned whenever executors are added or lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import floor, inf

import numpy as np

from homeostat.core.configuration import EXECUTORS_KNOB, SPREAD, Knob, Restart, Value
from homeostat.core.observation import NAN, Array, IntArray, JobSpan, TaskFailure
from homeostat.sim.faults import Faults
from homeostat.sim.microbatch.agenda import NEXT_BATCH, PROGRESS, Agenda
from homeostat.sim.microbatch.batches import Batch, Stage
from homeostat.sim.microbatch.burdens import Burden, collect_s, driver_delays_s, sink_s, stage_burden
from homeostat.sim.microbatch.disturbances import CALM, DISTURBING_KINDS, Disturbance, disturbance
from homeostat.sim.microbatch.executors import Executor, Executors
from homeostat.sim.microbatch.layout import (
    ASYNC_KNOB,
    CHANGELOG_KNOB,
    ROWS_KNOB,
    TRIGGER_KNOB,
    Layout,
    has_state,
    partitions_knob,
)
from homeostat.sim.microbatch.log_writer import LogWriter
from homeostat.sim.microbatch.offsets import Offsets
from homeostat.sim.microbatch.slowness import Slowness
from homeostat.sim.microbatch.stages import Routing, Work, busy_executors, stage_rows, work
from homeostat.sim.microbatch.task_scheduling import NOWHERE
from homeostat.sim.routing import heaviest_key, turn_at
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec

# Even an idle driver takes some time, so that time moves on between two batches.
SHORTEST_DRIVER_S = 0.001
# Without a trigger interval Spark looks for new rows every 10 ms (spark.sql.streaming.pollingDelay). Here an idle query
# looks once a second: nothing is lost, and a quiet hour takes 3,600 batches instead of 360,000.
POLL_S, IDLE_POLL_S = 0.01, 1.0


class Query:
    """`values` holds all knobs but the executors. `on_batch_end` is called when a batch has committed its rows,
    `on_progress` whenever a running command may continue."""

    def __init__(
        self,
        components: tuple[ComponentSpec, ...],
        spec: MicrobatchSpec,
        layout: Layout,
        *,
        faults: Faults,
        executors: Executors,
        agenda: Agenda,
        offsets: Offsets,
        slowness: Slowness,
        on_batch_end: Callable[[Batch], None],
        on_progress: Callable[[], None],
    ) -> None:
        self._components, self._spec, self._layout = components, spec, layout
        self._faults, self._executors, self._agenda = faults, executors, agenda
        self._offsets, self._slowness = offsets, slowness
        self._on_batch_end, self._on_progress = on_batch_end, on_progress
        self.values: Mapping[Knob, Value] = dict(layout.values)
        self.lost_executors: list[Executor] = []
        self.restarts = 0
        self.restart_under_way: Restart | None = None
        self._batch: Batch | None = None
        self._batch_number = 0
        self._redo: tuple[Mapping[str, int], float] | None = None
        self._homes: dict[str, IntArray] = {}
        self._disturbing = spec.dispatch_s > 0 or any(fault.kind in DISTURBING_KINDS for fault in faults.specs)
        self.failures: list[TaskFailure] = []
        self._log_writer = LogWriter()

    def disturbance(self, t_s: float, kinds: frozenset[str] = DISTURBING_KINDS) -> Disturbance:
        """The burden of the query at this moment."""
        if not self._disturbing:
            return CALM
        now = disturbance(self._faults.among(kinds, t_s), self._components, t_s, self._spec.dispatch_s)
        share = self._spec.changelog_commit
        return now.with_changelog(share) if share is not None and self.values.get(CHANGELOG_KNOB) else now

    def start(self) -> None:
        self._agenda.at(self._agenda.now_s, NEXT_BATCH, self._start_batch, may_lapse=True)

    def set_values(self, values: Mapping[Knob, Value]) -> None:
        changed = {knob: value for knob, value in values.items() if knob != EXECUTORS_KNOB}
        self.values = {**self.values, **changed}

    def restart(self, step: Restart) -> None:
        """Stop now; start again later, with other values and the batch that was under way."""
        if self._batch is not None and not self._batch.idle:
            self._redo = (self._batch.taken_rows, self._batch.slowness)
        self._batch = None
        self.lost_executors = []
        self._log_writer.finish()
        self.restart_under_way = step
        self._agenda.forget()
        self._agenda.at(self._agenda.now_s + self._spec.restart_s, PROGRESS, self._finish_restart, may_lapse=True)

    def _finish_restart(self) -> None:
        if self.restart_under_way is not None:
            self.set_values(self.restart_under_way.values)
        self.restart_under_way = None
        self.restarts += 1
        for executor in self._executors.up(self._agenda.now_s):
            executor.fresh = False
        self.start()
        self._on_progress()

    def lose(self, executor: Executor) -> None:
        if self._batch is not None:
            self.lost_executors.append(executor)
            if self._batch.in_stage:
                self._batch.lose(executor.number, self._agenda.now_s)

    def adjust_to_executors(self) -> None:
        self._executors.settle(self._agenda.now_s)
        if self._batch is None:
            self._executors.remove_drained(self._agenda.now_s)
        self.plan_stage()

    def plan_stage(self) -> None:
        """Place the tasks of the present stage that have not started on the executors that are up now."""
        batch, now_s = self._batch, self._agenda.now_s
        if batch is None or not batch.in_stage:
            return
        end_s = batch.plan(
            now_s, lambda busy, earliest_s: self._executors.free_slots(busy, earliest_s, batch.number, now_s)
        )
        self._expect_end_of_stage(end_s)

    def hold_up_sink(self, fault: FaultSpec) -> None:
        """The sink takes nothing until the fault ends; nothing happens unless the sink's stage is under way."""
        batch = self._batch
        if batch is not None and batch.in_stage:
            stage = batch.stages[-1]
            if stage.is_sink and fault.component in ("", stage.spec.name):
                self._expect_end_of_stage(batch.freeze(self._agenda.now_s, fault.until_s))

    def routing(self, component: ComponentSpec) -> Routing:
        partitions = int(self.values[partitions_knob(component)])
        return Routing(partitions, int(self.values.get(Knob(SPREAD, component.name), 1)))

    def _start_batch(self) -> None:
        now_s = self._agenda.now_s
        if self._redo is not None:
            (taken_rows, slowness), self._redo = self._redo, None
        else:
            taken_rows = self._offsets.admit(self.values.get(ROWS_KNOB, inf), now_s)
            slowness = self._slowness.next_batch()
        partitions = {each.name: self.routing(each).partitions for each in self._components}
        rows = stage_rows(self._components, taken_rows, partitions)
        driver_s = max(SHORTEST_DRIVER_S, self._spec.driver_s * self._slowness.driver(self._batch_number))
        self._batch = batch = Batch(self._batch_number, taken_rows, rows, now_s, driver_s, slowness)
        delays_s = driver_delays_s(self.disturbance(now_s), driver_s, taken_rows)
        if "walCommit" in delays_s:
            delays_s["walCommit"] = self._logging_s(now_s, delays_s["walCommit"])
        batch.delays_s = delays_s
        self._later(batch.planned_s, self._finish_batch if batch.idle else self._start_stage)

    def _later(self, seconds: float, do: Callable[[Batch], None]) -> None:
        """Continue with this batch after this time, unless a restart or a new plan comes first."""
        batch = self._batch
        if batch is not None:
            self._agenda.at(self._agenda.now_s + seconds, PROGRESS, lambda: do(batch), may_lapse=True)

    def _start_stage(self, batch: Batch) -> None:
        component, now_s = self._components[len(batch.stages)], self._agenda.now_s
        hot_share = self._faults.hot_share(component.name, now_s)
        stride = self._faults.stride(component.name, now_s)
        routing = replace(self.routing(component), hot_share=hot_share, stride=stride, turn=turn_at(component, now_s))
        busy = busy_executors(len(self._executors.usable(now_s)), routing.partitions, self._spec.slots)
        rows = batch.rows[component.name] + batch.surplus_rows(component.inputs)
        stage_work = work(component, rows, routing, busy, self._spec.combine_overhead)
        noise = batch.slowness * self._slowness.tasks(component.name, batch.number, routing.partitions)
        stage_work = replace(stage_work, seconds=stage_work.seconds * noise)
        burden = self._burden(component, batch, stage_work, noise)
        if burden is not None:
            stage_work = replace(stage_work, seconds=stage_work.seconds + burden.work_s + burden.gc_s)
        stage = Stage(
            component,
            stage_work,
            started_s=now_s,
            wait_until_s=now_s + self._spec.locality_wait_s,
            homes=self._home(component, routing.partitions) if has_state(component) else None,
            is_sink=not self._layout.topology.downstream(component.name),
            largest_key=max(hot_share, (1.0 - hot_share) * heaviest_key(component)) if component.keyed else NAN,
            burden=burden,
        )
        batch.stages.append(stage)
        batch.in_stage = True
        self.plan_stage()
        for fault in self._faults.active("stuck-sink", now_s):
            self.hold_up_sink(fault)

    def _burden(self, component: ComponentSpec, batch: Batch, stage_work: Work, noise: Array) -> Burden | None:
        now = self.disturbance(self._agenda.now_s)
        if now is CALM:
            return None
        return stage_burden(
            component,
            stage_work,
            noise,
            now,
            slots=self._spec.slots,
            executors=len(self._executors.usable(self._agenda.now_s)),
            rng=self._slowness.attempts(component.name, batch.number, self.restarts),
        )

    def _expect_end_of_stage(self, end_s: float) -> None:
        self._agenda.forget()
        stage = self._batch.stages[-1] if self._batch is not None else None
        if stage is not None and stage.burden is not None and stage.burden.fatal is not None:
            failed_s = float(stage.placement.finish_s[stage.burden.fatal])
            self._later(failed_s - self._agenda.now_s, self._fail)
        else:
            self._later(end_s - self._agenda.now_s, self._finish_stage)

    def _fail(self, batch: Batch) -> None:
        """A task failed for good: the query stops, and starts again with the same batch."""
        self.failures += batch.stages[-1].failures()
        self.restart(Restart({}))

    def _finish_stage(self, batch: Batch) -> None:
        stage = batch.stages[-1]
        self.failures += stage.failures()
        if stage.homes is not None:
            self._homes[stage.spec.name] = stage.placement.executor
        batch.in_stage = False
        if len(batch.stages) < len(self._components):
            self._start_stage(batch)
        else:
            self._hand_over(batch)

    def _hand_over(self, batch: Batch) -> None:
        """The driver collects the results, the sink takes the rows, and the batch is committed."""
        now_s = self._agenda.now_s
        now = self.disturbance(now_s)
        rows_out = sum(float(stage.rows_out.sum()) for stage in batch.stages if stage.is_sink)
        handed_s = now_s + collect_s(now, rows_out)
        batch.added_s = handed_s + sink_s(now, rows_out)
        if now.sink_job:
            began_s, ended_s = handed_s - batch.started_s, batch.added_s - batch.started_s
            batch.other_jobs = (JobSpan(began_s, ended_s, "write of the sink"),)
        commit_s = self._logging_s(batch.added_s, self._spec.commit_s + now.commit_s)
        self._later(batch.added_s - now_s + commit_s, self._finish_batch)

    def _logging_s(self, now_s: float, seconds: float) -> float:
        """How long the batch waits for a write to its logs."""
        return self._log_writer.write(now_s, seconds) if self.values.get(ASYNC_KNOB) else seconds

    def _finish_batch(self, batch: Batch) -> None:
        self._offsets.commit(batch.taken_rows)
        self._on_batch_end(batch)
        for stage in batch.stages:
            executors_used = set(stage.placement.executor.tolist())
            for executor in self._executors.members:
                executor.fresh = executor.fresh and executor.number not in executors_used
        self._batch = None
        self.lost_executors, self.failures = [], []
        self._batch_number += 1
        self._agenda.at(self._next_start_s(batch), NEXT_BATCH, self._start_batch, may_lapse=True)
        self.adjust_to_executors()
        self._on_progress()

    def _next_start_s(self, batch: Batch) -> float:
        """The next multiple of the trigger interval after the batch's start, or now if that is past."""
        interval_s = self.values[TRIGGER_KNOB]
        if interval_s > 0:
            next_s = (floor(batch.started_s / interval_s + 1e-9) + 1) * interval_s
        else:
            next_s = batch.started_s + (IDLE_POLL_S if batch.idle else POLL_S)
        return max(self._agenda.now_s, next_s)

    def _home(self, component: ComponentSpec, partitions: int) -> IntArray:
        """The executor that holds the state of each partition."""
        homes = self._homes.get(component.name)
        if homes is not None and len(homes) == partitions:
            return homes
        return np.full(partitions, NOWHERE, dtype=np.int64)
