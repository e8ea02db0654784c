"""A simulated engine that works like Spark Structured Streaming: batch by batch, tasks on shared slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import floor, inf

import numpy as np

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    SPREAD,
    Configuration,
    Knob,
    Patch,
    Replace,
    Restart,
    Step,
    Value,
    diff,
)
from homeostat.core.errors import ConfigError
from homeostat.core.events import Apply, EngineChanged, Event, Observed
from homeostat.core.observation import NAN, IntArray
from homeostat.sim.faults import Faults
from homeostat.sim.microbatch.agenda import Agenda
from homeostat.sim.microbatch.batches import Batch, Stage
from homeostat.sim.microbatch.commands import MicrobatchCommands
from homeostat.sim.microbatch.executors import Executor, Executors
from homeostat.sim.microbatch.layout import (
    ROWS_KNOB,
    TRIGGER_KNOB,
    has_state,
    layout,
    partitions_knob,
)
from homeostat.sim.microbatch.offsets import Offsets
from homeostat.sim.microbatch.reports import Finished, observation
from homeostat.sim.microbatch.scheduling import NOWHERE
from homeostat.sim.microbatch.slowness import Slowness
from homeostat.sim.microbatch.stages import Routing, busy_executors, needed_executors, stage_rows, work
from homeostat.sim.routing import heaviest_key, turn_at
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Scenario
from homeostat.sim.streams import stream
from homeostat.sim.truth import TruthSample
from homeostat.sim.workload import Workload

# What comes first when several things fall on the same moment.
CLUSTER, PROGRESS, NEXT_BATCH, TIME_LIMIT = range(4)
SHORTEST_DRIVER_S, POLL_S, IDLE_POLL_S = 0.001, 0.01, 1.0
NO_TRIGGER_INTERVAL_S = 10.0


class Microbatch:
    """One query on one simulated cluster, from time 0. `truth` holds what really happened, batch by batch."""

    def __init__(self, scenario: Scenario, seed: int | None = None) -> None:
        if not isinstance(scenario.engine, MicrobatchSpec):
            raise ConfigError("the scenario is not for the micro-batch engine", where=scenario.name)
        self._scenario, self._spec = scenario, scenario.engine
        self._seed = scenario.seed if seed is None else seed
        self._layout = layout(scenario, self._spec)
        self._values: dict[Knob, Value] = dict(self._layout.values)
        self._faults = Faults(
            scenario.faults,
            components=(*self._layout.topology.names, "app"),
            hosts=tuple(f"host-{number}" for number in range(self._spec.hosts)),
        )
        self._workload = Workload(scenario.workload, self._seed)
        self._offsets = Offsets(self._workload, tuple(c.name for c in self._layout.topology.sources))
        self._slowness = Slowness(scenario.service_noise, self._spec, self._seed)
        self._agenda = Agenda()
        self._events: list[Event] = []
        self._commands = MicrobatchCommands(self, self._events.append, self._remind)
        self._executors = Executors(self._spec, self._faults, self._executor_asked_for)
        self._before = self._executors.target, self._values
        self._replacing = False
        self._lost: list[Executor] = []
        self._homes: dict[str, IntArray] = {}
        self._batch: Batch | None = None
        self._number = 0
        self._run = 0
        self._redo: tuple[Mapping[str, int], float] | None = None
        self._restarting: Restart | None = None
        self._seen_s, self._seen_rows = 0.0, 0
        self.truth: list[TruthSample] = []
        for fault in self._faults.specs:
            self._expect(fault)
        self._agenda.at(0.0, NEXT_BATCH, self._start_batch, may_lapse=True)

    @property
    def now_s(self) -> float:
        return self._agenda.now_s

    def describe(self) -> EngineChanged:
        return self._description("start")

    def wait(self, until_s: float) -> Sequence[Event]:
        self._agenda.run(until_s)
        events = tuple(self._events)
        self._events.clear()
        return events

    def apply(self, command: Apply) -> None:
        self._commands.accept(command)

    def close(self) -> None:
        """Nothing to release."""

    def faulty_workers(self) -> frozenset[str]:
        return self._executors.faulty(self.now_s)

    # Carrying out commands

    def configuration(self) -> Configuration:
        executors: dict[Knob, Value] = {EXECUTORS_KNOB: len(self._executors.up(self.now_s))}
        return Configuration({**executors, **self._values}, self._executors.retired())

    def refusal(self, desired: Configuration) -> str:
        return self._layout.capabilities.refusal(desired)

    def steps_to(self, desired: Configuration) -> tuple[Step, ...]:
        observed = self.configuration()
        if not self._executors.settled(self.now_s):
            # What is on its way counts as well: the number up may be the one desired, and about to change.
            observed = observed.patched(Patch({EXECUTORS_KNOB: 0}))
        return diff(observed, desired, self._layout.capabilities)

    def begin(self, step: Step) -> None:
        self._before = self._executors.target, self._values
        if isinstance(step, Replace):
            present = {executor.id for executor in self._executors.members}
            self._replacing = bool(step.workers & present)
            self._executors.asked_to_go |= step.workers
        else:
            self._executors.target = int(step.values.get(EXECUTORS_KNOB, self._executors.target))
        if isinstance(step, Restart):
            self._stop_query(step)
        elif not isinstance(step, Replace):
            self._set(step.values)
        self._adjust_executors()

    def took_effect(self, step: Step) -> bool:
        if isinstance(step, Replace):
            return not self._replacing or self._executors.settled(self.now_s)
        if isinstance(step, Restart) and self._restarting is not None:
            return False
        return EXECUTORS_KNOB not in step.values or self._executors.settled(self.now_s)

    def call_off(self, step: Step) -> str:
        (before, self._values), now_s = self._before, self.now_s
        if isinstance(step, Replace):
            self._executors.call_off(before, step.workers, now_s)
            how_far = "the fresh executors are not up, or the batch under way needs the old ones"
        elif isinstance(step, Restart) and self._restarting is not None:
            self._restarting = Restart({})
            self._executors.call_off(before, (), now_s)
            how_far = "the query is still stopped"
        else:
            wanted, up = int(step.values[EXECUTORS_KNOB]), len(self._executors.up(now_s))
            self._executors.call_off(max(before, min(up, wanted)) if wanted > before else before, (), now_s)
            how_far = f"{up} executors are up instead of {wanted}"
        self._adjust_executors()
        return how_far

    def _set(self, values: Mapping[Knob, Value]) -> None:
        changed = {knob: value for knob, value in values.items() if knob != EXECUTORS_KNOB}
        self._values = {**self._values, **changed}

    def _stop_query(self, step: Restart) -> None:
        if self._batch is not None and not self._batch.idle:
            self._redo = (self._batch.taken, self._batch.slowness)
        self._batch = None
        self._lost = []
        self._restarting = step
        self._agenda.forget()
        self._agenda.at(self.now_s + self._spec.restart_s, PROGRESS, self._start_query, may_lapse=True)

    def _start_query(self) -> None:
        if self._restarting is not None:
            self._set(self._restarting.values)
        self._restarting = None
        self._run += 1
        for executor in self._executors.up(self.now_s):
            executor.fresh = False
        self._agenda.at(self.now_s, NEXT_BATCH, self._start_batch, may_lapse=True)
        self._commands.carry_on()

    def _remind(self, at_s: float, do: Callable[[], None]) -> None:
        self._agenda.at(at_s, TIME_LIMIT, do)

    # Executors that come and go

    def _executor_asked_for(self, executor: Executor) -> None:
        self._agenda.at(executor.up_s, CLUSTER, lambda: self._executor_up(executor))

    def _executor_up(self, executor: Executor) -> None:
        if executor not in self._executors.members:
            return
        self._adjust_executors()
        if executor.stands_in_for:
            self._events.append(self._description(f"{executor.id} is up for {executor.stands_in_for}"))
        self._commands.carry_on()

    def _adjust_executors(self) -> None:
        self._executors.settle(self.now_s)
        if self._batch is None:
            self._executors.remove_drained(self.now_s)
        self._plan_stage()

    def _expect(self, fault: FaultSpec) -> None:
        begins = {"slow-instance": self._slow_down, "crash": self._crash, "stuck-sink": self._sink_stuck}
        if fault.kind in begins:
            self._agenda.at(fault.at_s, CLUSTER, lambda: begins[fault.kind](fault))

    def _slow_down(self, fault: FaultSpec) -> None:
        self._executors.slow_down(fault, self.now_s)
        self._plan_stage()

    def _crash(self, fault: FaultSpec) -> None:
        back_s = fault.until_s if fault.until_s < inf else self.now_s + self._spec.executor_start_s
        executor = self._executors.crash(fault.instance, self.now_s, back_s)
        if executor is None:
            return
        if self._batch is not None:
            self._lost.append(executor)
            if self._batch.in_stage:
                self._batch.lose(executor.number, self.now_s)
        self._adjust_executors()
        self._events.append(self._description(f"{executor.id} on {executor.host} was lost"))
        self._commands.carry_on()

    def _description(self, reason: str) -> EngineChanged:
        shape, capabilities = self._layout.topology, self._layout.capabilities
        return EngineChanged(shape, self.configuration(), capabilities, self.now_s, reason)

    # A batch

    def _start_batch(self) -> None:
        if self._redo is not None:
            (taken, slowness), self._redo = self._redo, None
        else:
            taken = self._offsets.admit(self._values.get(ROWS_KNOB, inf), self.now_s)
            slowness = self._slowness.next_batch()
        components = self._scenario.components
        rows = stage_rows(components, taken, {each.name: self._routing(each).partitions for each in components})
        driver_s = max(SHORTEST_DRIVER_S, self._spec.driver_s * self._slowness.driver(self._number))
        self._batch = batch = Batch(self._number, taken, rows, self.now_s, driver_s, slowness)
        self._later(batch.driver_s, self._finish_batch if batch.idle else self._start_stage)

    def _later(self, seconds: float, do: Callable[[Batch], None]) -> None:
        """Go on with this batch, unless a restart or a new plan comes between."""
        batch = self._batch
        if batch is not None:
            self._agenda.at(self.now_s + seconds, PROGRESS, lambda: do(batch), may_lapse=True)

    def _start_stage(self, batch: Batch) -> None:
        component = self._scenario.components[len(batch.stages)]
        hot_share = self._faults.hot_share(component.name, self.now_s)
        stride = self._faults.stride(component.name, self.now_s)
        routing = replace(
            self._routing(component), hot_share=hot_share, stride=stride, turn=turn_at(component, self.now_s)
        )
        busy = busy_executors(len(self._executors.usable(self.now_s)), routing.partitions, self._spec.slots)
        planned = work(component, batch.rows[component.name], routing, busy, self._spec.combine_overhead)
        noise = batch.slowness * self._slowness.tasks(component.name, batch.number, routing.partitions)
        stage = Stage(
            component,
            replace(planned, seconds=planned.seconds * noise),
            started_s=self.now_s,
            wait_until_s=self.now_s + self._spec.locality_wait_s,
            homes=self._home(component, routing.partitions) if has_state(component) else None,
            is_sink=not self._layout.topology.downstream(component.name),
            largest_key=max(hot_share, (1.0 - hot_share) * heaviest_key(component)) if component.keyed else NAN,
        )
        batch.stages.append(stage)
        batch.in_stage = True
        self._plan_stage()
        for fault in self._faults.active("stuck-sink", self.now_s):
            self._sink_stuck(fault)

    def _plan_stage(self) -> None:
        """Place what has not started of the stage under way on the executors there are now."""
        batch, now_s = self._batch, self.now_s
        if batch is None or not batch.in_stage:
            return
        end_s = batch.plan(
            now_s, lambda busy, earliest_s: self._executors.free_slots(busy, earliest_s, batch.number, now_s)
        )
        self._expect_end_of_stage(end_s)

    def _expect_end_of_stage(self, end_s: float) -> None:
        self._agenda.forget()
        self._later(end_s - self.now_s, self._finish_stage)

    def _sink_stuck(self, fault: FaultSpec) -> None:
        batch = self._batch
        if batch is not None and batch.in_stage:
            stage = batch.stages[-1]
            if stage.is_sink and fault.component in ("", stage.spec.name):
                self._expect_end_of_stage(batch.freeze(self.now_s, fault.until_s))

    def _finish_stage(self, batch: Batch) -> None:
        stage = batch.stages[-1]
        if stage.homes is not None:
            self._homes[stage.spec.name] = stage.placement.executor
        batch.in_stage = False
        if len(batch.stages) < len(self._scenario.components):
            self._start_stage(batch)
        else:
            batch.added_s = self.now_s
            self._later(self._spec.commit_s, self._finish_batch)

    def _finish_batch(self, batch: Batch) -> None:
        self._offsets.commit(batch.taken)
        self._report(batch)
        for stage in batch.stages:
            worked = set(np.unique(stage.placement.executor).tolist())
            for executor in self._executors.members:
                executor.fresh = executor.fresh and executor.number not in worked
        self._batch = None
        self._lost = []
        self._number += 1
        self._agenda.at(self._next_start_s(batch), NEXT_BATCH, self._start_batch, may_lapse=True)
        self._adjust_executors()
        self._commands.carry_on()

    def _next_start_s(self, batch: Batch) -> float:
        """The next multiple of the trigger interval after the batch's start, or at once when that is past."""
        interval_s = self._values[TRIGGER_KNOB]
        if interval_s > 0:
            next_s = (floor(batch.started_s / interval_s + 1e-9) + 1) * interval_s
        else:
            next_s = batch.started_s + (IDLE_POLL_S if batch.idle else POLL_S)
        return max(self.now_s, next_s)

    def _routing(self, component: ComponentSpec) -> Routing:
        partitions = int(self._values[partitions_knob(component)])
        return Routing(partitions, int(self._values.get(Knob(SPREAD, component.name), 1)))

    def _home(self, component: ComponentSpec, partitions: int) -> IntArray:
        known = self._homes.get(component.name)
        if known is not None and len(known) == partitions:
            return known
        return np.full(partitions, NOWHERE, dtype=np.int64)

    # What is seen of it, and what really was

    def _report(self, batch: Batch) -> None:
        now_s, executors = self.now_s, self._executors
        latest = self._offsets.latest(now_s)
        finished = Finished(
            batch,
            at_s=now_s,
            span_s=now_s - self._seen_s,
            trigger_s=float(self._values[TRIGGER_KNOB]),
            arrived_rows=latest - self._seen_rows,
            pending_rows={source: latest - done for source, done in self._offsets.committed.items()},
        )
        self._seen_s, self._seen_rows = now_s, latest
        dead = {executor.id: executor for executor in [*self._lost, *executors.lost(now_s)]}
        seen = observation(finished, executors.up(now_s), tuple(dead.values()), self._spec.slots, f"run-{self._run}")
        if self._faults.garbles(now_s):
            seen = self._faults.garble(seen, now_s, stream(self._seed, "garble", str(batch.number)))
        self._events.append(Observed(seen))
        self.truth.append(
            TruthSample(
                now_s,
                finished.span_s,
                finished.arrival_per_s,
                finished.taken_per_s,
                float(sum(finished.pending_rows.values())),
                finished.kept_up(self._scenario.objective),
                self.configuration().values,
                self.needed(self._workload.mean_per_s(self.now_s)),
            )
        )

    def needed(self, load_per_s: float) -> dict[Knob, int]:
        """The fewest executors whose batches of this load end within the trigger interval."""
        components = self._scenario.components
        executors = needed_executors(
            components,
            self._spec,
            tuple(self._routing(component) for component in components),
            float(f"{load_per_s:.3g}"),
            float(self._values[TRIGGER_KNOB]) or NO_TRIGGER_INTERVAL_S,
        )
        return {EXECUTORS_KNOB: executors}
