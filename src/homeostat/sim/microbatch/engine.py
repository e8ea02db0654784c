"""A simulated engine that works like Spark Structured Streaming: batch by batch, tasks on shared slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, inf

from homeostat.core.configuration import EXECUTORS_KNOB, Knob
from homeostat.core.errors import ConfigError
from homeostat.core.events import Apply, EngineChanged, Event, Observed
from homeostat.core.observation import WorkerLoss
from homeostat.sim.faults import Faults
from homeostat.sim.microbatch.agenda import CLUSTER, TIME_LIMIT, Agenda
from homeostat.sim.microbatch.batch_reports import Finished, observation
from homeostat.sim.microbatch.batches import Batch
from homeostat.sim.microbatch.commands import MicrobatchCommands
from homeostat.sim.microbatch.disturbances import DISTURBING_KINDS, PASSING_KINDS
from homeostat.sim.microbatch.executors import Executor, Executors
from homeostat.sim.microbatch.expected_batches import Application, sufficient_executors
from homeostat.sim.microbatch.layout import TRIGGER_KNOB, layout
from homeostat.sim.microbatch.offsets import Offsets
from homeostat.sim.microbatch.query import Query
from homeostat.sim.microbatch.sensor_readings import Measures
from homeostat.sim.microbatch.slowness import Slowness
from homeostat.sim.microbatch.step_runner import StepRunner
from homeostat.sim.random_streams import stream
from homeostat.sim.scenario.spec import FaultSpec, MicrobatchSpec, Scenario
from homeostat.sim.truth import TruthSample
from homeostat.sim.workload import Workload

# A query without a trigger interval needs enough executors to process the rows of this time within the same time.
# Chosen by hand, equal to the default trigger interval.
NO_TRIGGER_INTERVAL_S = 10.0
# How often the loop looks for events, as in a real application.
LOOKS_EVERY_S = 1.0


class Microbatch:
    """One query on one simulated cluster, from time 0. `truth` holds what really happened, batch by batch."""

    def __init__(self, scenario: Scenario, seed: int | None = None) -> None:
        if not isinstance(scenario.engine, MicrobatchSpec):
            raise ConfigError("the scenario is not for the micro-batch engine", where=scenario.name)
        self._scenario, self._spec = scenario, scenario.engine
        self._seed = scenario.seed if seed is None else seed
        self._layout = layout(scenario, self._spec)
        self._faults = Faults(
            scenario.faults,
            components=(*self._layout.topology.names, "app"),
            hosts=tuple(f"host-{number}" for number in range(self._spec.hosts)),
        )
        self._workload = Workload(scenario.workload, self._seed)
        self._offsets = Offsets(self._workload, tuple(c.name for c in self._layout.topology.sources))
        self._agenda = Agenda()
        self._events: list[Event] = []
        self._executors = Executors(self._spec, self._faults, self._executor_requested)
        self._query = Query(
            scenario.components,
            self._spec,
            self._layout,
            faults=self._faults,
            executors=self._executors,
            agenda=self._agenda,
            offsets=self._offsets,
            slowness=Slowness(scenario.service_noise, self._spec, self._seed),
            on_batch_end=self._report,
            on_progress=self._carry_on,
        )
        self._steps = StepRunner(self._query, self._executors, self._agenda, self._layout.capabilities)
        self._commands = MicrobatchCommands(self._steps, self._events.append, self._remind)
        self._measures = Measures(self._spec, self._faults, self._seed)
        self._losses: list[WorkerLoss] = []
        self._reported_s, self._reported_rows = 0.0, 0
        self.truth: list[TruthSample] = []
        for fault in self._faults.specs:
            self._schedule(fault)
        self._query.start()

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

    def next_event_s(self, until_s: float) -> float:
        """When the loop next sees an event, at the latest `until_s`. The loop looks once a second."""
        self._agenda.run(until_s, enough=lambda: bool(self._events))
        return min(until_s, ceil(self.now_s / LOOKS_EVERY_S) * LOOKS_EVERY_S)

    def apply(self, command: Apply) -> None:
        self._commands.accept(command)

    def close(self) -> None:
        """Nothing to release."""

    def faulty_workers(self) -> frozenset[str]:
        return self._executors.faulty(self.now_s)

    def needed_parallelism(self, load_per_s: float, at_s: float | None = None) -> dict[Knob, int]:
        """The fewest executors with which batches of this load end within the trigger interval.

        If no number is enough: the fewest with which batches are nearly as short as possible. The batches have the
        burden of the moment `at_s`, by default now.
        """
        components = self._scenario.components
        routings = tuple(self._query.routing(component) for component in components)
        executors = sufficient_executors(
            Application(components, self._spec, routings),
            float(f"{load_per_s:.3g}"),
            float(self._query.values[TRIGGER_KNOB]) or NO_TRIGGER_INTERVAL_S,
            self._query.disturbance(self.now_s if at_s is None else at_s, DISTURBING_KINDS - PASSING_KINDS),
        )
        return {EXECUTORS_KNOB: executors}

    def _carry_on(self) -> None:
        self._commands.carry_on()

    def _remind(self, at_s: float, do: Callable[[], None]) -> None:
        self._agenda.at(at_s, TIME_LIMIT, do)

    def _executor_requested(self, executor: Executor) -> None:
        self._agenda.at(executor.up_s, CLUSTER, lambda: self._executor_up(executor))

    def _executor_up(self, executor: Executor) -> None:
        if executor not in self._executors.members:
            return
        self._query.adjust_to_executors()
        if executor.stands_in_for:
            self._events.append(self._description(f"{executor.id} replaces {executor.stands_in_for}"))
        self._commands.carry_on()

    def _schedule(self, fault: FaultSpec) -> None:
        begins = {
            "slow-instance": self._slow_down,
            "crash": self._crash,
            "dying-executors": self._keep_dying,
            "stuck-sink": self._query.hold_up_sink,
        }
        if fault.kind in begins:
            self._agenda.at(fault.at_s, CLUSTER, lambda: begins[fault.kind](fault))

    def _slow_down(self, fault: FaultSpec) -> None:
        self._executors.slow_down(fault, self.now_s)
        self._query.plan_stage()

    def _crash(self, fault: FaultSpec) -> None:
        back_s = fault.until_s if fault.until_s < inf else self.now_s + self._spec.executor_start_s
        self._lose_executor(fault.instance, back_s, fault.reason)

    def _keep_dying(self, fault: FaultSpec) -> None:
        """Another executor dies, and the next one some time later."""
        death = round((self.now_s - fault.at_s) / fault.every_s)
        self._lose_executor(fault.instance + death, self.now_s + self._spec.executor_start_s, fault.reason)
        next_s = fault.at_s + (death + 1) * fault.every_s
        if next_s < fault.until_s:
            self._agenda.at(next_s, CLUSTER, lambda: self._keep_dying(fault))

    def _lose_executor(self, index: int, back_s: float, reason: str) -> None:
        executor = self._executors.crash(index, self.now_s, back_s)
        if executor is None:
            return
        self._losses.append(WorkerLoss(executor.id, executor.host, reason))
        self._query.lose(executor)
        self._query.adjust_to_executors()
        self._events.append(self._description(f"{executor.id} on {executor.host} was lost"))
        self._commands.carry_on()

    def _description(self, reason: str) -> EngineChanged:
        shape, capabilities = self._layout.topology, self._layout.capabilities
        return EngineChanged(shape, self._steps.configuration(), capabilities, self.now_s, reason)

    def _report(self, batch: Batch) -> None:
        """Report the batch as sensors would, and record what really happened."""
        now_s, executors = self.now_s, self._executors
        latest = self._offsets.latest(now_s)
        finished_batch = Finished(
            batch,
            at_s=now_s,
            span_s=now_s - self._reported_s,
            trigger_s=float(self._query.values[TRIGGER_KNOB]),
            arrived_rows=latest - self._reported_rows,
            pending_rows={
                source: latest - committed_rows for source, committed_rows in self._offsets.committed.items()
            },
        )
        self._reported_s, self._reported_rows = now_s, latest
        dead = {
            executor.id: executor for executor in [*self._query.lost_executors, *executors.crashed_executors(now_s)]
        }
        run = f"run-{self._query.restarts}"
        up = executors.up(now_s)
        sample = observation(finished_batch, up, tuple(dead.values()), self._spec.slots, run)
        sample = self._measures.complete(
            sample,
            batch,
            self._query.disturbance(batch.started_s),
            (*up, *dead.values()),
            failures=self._query.failures,
            losses=self._losses,
        )
        self._losses = []
        if self._faults.garbles(now_s):
            sample = self._faults.garble(sample, now_s, stream(self._seed, "garble", str(batch.number)))
        self._events.append(Observed(sample))
        self.truth.append(
            TruthSample(
                now_s,
                finished_batch.span_s,
                finished_batch.arrival_per_s,
                finished_batch.taken_per_s,
                float(sum(finished_batch.pending_rows.values())),
                finished_batch.kept_up(self._scenario.objective),
                self._steps.configuration().values,
                self.needed_parallelism(self._workload.mean_per_s(now_s)),
                self.faulty_workers(),
            )
        )
