"""A dataflow engine in virtual time: long-running instances, bounded queues, back-pressure to the sources.

It reproduces the setting of the Dhalion paper and does not model Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from homeostat.core.configuration import PARALLELISM, Knob
from homeostat.core.errors import ConfigError
from homeostat.core.events import Apply, EngineChanged, Event, Observed
from homeostat.core.observation import NAN, Array, FlowSample, Observation, TaskSample
from homeostat.sim.dataflow.deployment import Deployment
from homeostat.sim.dataflow.fluid import Stage
from homeostat.sim.dataflow.orders import DataflowCommands
from homeostat.sim.random_streams import Ar1, stream
from homeostat.sim.scenario.components import topology
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, Scenario
from homeostat.sim.truth import TruthSample, is_healthy, loads, smallest_parallelism
from homeostat.sim.workload import Workload

_ROUNDING_S = 1e-9


class Dataflow:
    """The engine of a scenario. Time moves in whole steps, so the calls of `wait` do not affect the result."""

    def __init__(self, scenario: Scenario, seed: int | None = None) -> None:
        self._spec = _check(scenario)
        self._scenario = scenario
        self._seed = scenario.seed if seed is None else seed
        self._topology = topology(scenario.components, lambda spec: Knob(PARALLELISM, spec.name))
        self._check_queues()
        noise = {
            spec.name: Ar1(scenario.service_noise, stream(self._seed, "service", spec.name))
            for spec in scenario.components
        }
        self._deployment = Deployment(scenario.components, self._spec, scenario.faults, noise)
        self._commands = DataflowCommands(self._deployment)
        self._workload = Workload(scenario.workload, self._seed, self._spec.tick_s)
        self._sources = [component.name for component in self._topology.sources]
        self._steps_per_tick = round(self._spec.tick_s / self._spec.step_s)
        self._steps = 0
        self._now_s = 0.0
        self._change_s = self._deployment.next_change_s(0.0)
        self._arrived_rows = 0.0
        self._was_down = False
        self._needed: tuple[float, dict[Knob, int]] = (NAN, {})
        self._outbox: list[Event] = []
        self.truth: list[TruthSample] = []

    @property
    def now_s(self) -> float:
        return self._now_s

    def describe(self) -> EngineChanged:
        deployment = self._deployment
        return EngineChanged(self._topology, deployment.configuration, deployment.capabilities, self._now_s)

    def wait(self, until_s: float) -> Sequence[Event]:
        events, self._outbox = self._outbox, []
        while (self._steps + 1) * self._spec.step_s <= until_s + _ROUNDING_S:
            self._step()
            if self._steps % self._steps_per_tick == 0:
                events.append(Observed(self._end_tick()))
            if not self._commands.idle:
                events += self._commands.poll(self._time_s)
        self._now_s = max(self._now_s, until_s)
        return events

    def next_event_s(self, until_s: float) -> float:
        """When the loop should look for events next. All come at the end of a step, and most at the end of a tick."""
        return until_s

    def apply(self, command: Apply) -> None:
        self._outbox += self._commands.submit(command, self._now_s)

    def close(self) -> None:
        """Nothing to release."""

    def faulty_workers(self) -> frozenset[str]:
        """The processes that are slow or crashed now."""
        return self._deployment.faulty_workers(self._time_s)

    @property
    def _time_s(self) -> float:
        return self._steps * self._spec.step_s

    def _step(self) -> None:
        start_s = self._time_s
        if self._steps % self._steps_per_tick == 0:
            self._deployment.next_tick()
        if start_s + _ROUNDING_S >= self._change_s:
            self._deployment.refresh(start_s + _ROUNDING_S)
            self._change_s = self._deployment.next_change_s(start_s + _ROUNDING_S)
        self._steps += 1
        arrived_rows = self._workload.rows_between(start_s, self._time_s)
        self._arrived_rows += arrived_rows
        if self._deployment.down:
            self._was_down = True
            self._deployment.fluid.stand_still(arrived_rows / len(self._sources))
        else:
            self._deployment.fluid.step(arrived_rows / len(self._sources))

    def _end_tick(self) -> Observation:
        deployment, at_s, span_s = self._deployment, self._time_s, self._spec.tick_s
        fluid = deployment.fluid
        flows = tuple(
            FlowSample(
                source=name,
                rows=fluid.taken_rows[name],
                arrival_per_s=self._arrived_rows / len(self._sources) / span_s,
                pending_rows=fluid.pending_rows[name],
            )
            for name in self._sources
        )
        observation = Observation(
            at_s=at_s,
            span_s=span_s,
            batch=self._steps // self._steps_per_tick - 1,
            flows=flows,
            tasks={name: self._measure(stage) for name, stage in fluid.stages.items()},
            workers=deployment.workers,
        )
        self.truth.append(self._true_sample())
        fluid.taken_rows = dict.fromkeys(fluid.taken_rows, 0.0)
        self._arrived_rows, self._was_down = 0.0, False
        if deployment.faults.garbles(at_s):
            rng = stream(self._seed, "metrics", str(observation.batch))
            observation = deployment.faults.garble(observation, at_s, rng)
        return observation

    def _measure(self, stage: Stage) -> TaskSample:
        stage.settle()
        rows, run_s, pressured_s = stage.rows.copy(), stage.run_s.copy(), stage.pressured_s.copy()
        pending_rows: Array = np.zeros(len(rows)) if stage.is_source else stage.queue.copy()
        stage.clear_measurements()
        if self._was_down:
            pressured_s.fill(NAN)
        crashed = self._deployment.crashed[stage.name]
        if len(crashed):
            for column in (rows, run_s, pending_rows, pressured_s):
                column[crashed] = NAN
        return TaskSample(
            rows=rows,
            run_s=run_s,
            rows_out=rows * stage.selectivity,
            pending_rows=pending_rows,
            pressured_s=pressured_s,
            finish_s=np.full(len(rows), NAN),
            worker=self._deployment.worker_numbers[stage.name],
        )

    def _true_sample(self) -> TruthSample:
        span_s, fluid = self._spec.tick_s, self._deployment.fluid
        taken_rows, pending_rows = sum(fluid.taken_rows.values()), sum(fluid.pending_rows.values())
        healthy = is_healthy(
            arrived_rows=self._arrived_rows,
            taken_rows=taken_rows,
            pending_rows=pending_rows,
            span_s=span_s,
            replayable=self._spec.replayable,
            objective=self._scenario.objective,
        )
        return TruthSample(
            at_s=self._time_s,
            span_s=span_s,
            arrival_per_s=self._arrived_rows / span_s,
            taken_per_s=taken_rows / span_s,
            pending_rows=pending_rows,
            healthy=healthy,
            values=self._deployment.configuration.values,
            needed=self.needed_parallelism(self._workload.mean_per_s(self._time_s - span_s / 2)),
        )

    def needed_parallelism(self, load_per_s: float, at_s: float | None = None) -> dict[Knob, int]:
        """The parallelism that each component needs for this load, or for the part that the objective requires."""
        objective = self._scenario.objective.throughput_per_s
        target_per_s = load_per_s if objective is None else min(load_per_s, objective)
        if self._needed[0] != target_per_s:
            incoming = loads(self._scenario.components, target_per_s)
            self._needed = (
                target_per_s,
                {
                    Knob(PARALLELISM, spec.name): smallest_parallelism(spec, incoming[spec.name])
                    for spec in self._scenario.components
                },
            )
        return self._needed[1]

    def _check_queues(self) -> None:
        def fits(spec: ComponentSpec) -> bool:
            return spec.kind == "source" or spec.queue_s >= self._spec.step_s

        for spec in self._scenario.components:
            if not fits(spec):
                raise ConfigError(
                    f"queue_s ({spec.queue_s:g}) is shorter than a step ({self._spec.step_s:g} s)",
                    where=f"component {spec.name!r}",
                    fix="make queue_s longer or step_s shorter",
                )


def _check(scenario: Scenario) -> DataflowSpec:
    spec = scenario.engine
    where = f"scenario {scenario.name!r}"
    if not isinstance(spec, DataflowSpec):
        raise ConfigError("the scenario is not for the dataflow engine", where=where)
    for name in ("tick_s", "step_s"):
        value: float = getattr(spec, name)
        if not (isfinite(value) and value > 0):
            raise ConfigError(f"{name} must be above 0, not {value:g}", where=where)
    for name in ("redeploy_s", "replace_s"):
        value = getattr(spec, name)
        if not (isfinite(value) and value >= 0):
            raise ConfigError(f"{name} must be 0 or more, not {value:g}", where=where)
    if spec.hosts < 1:
        raise ConfigError(f"hosts must be 1 or more, not {spec.hosts}", where=where)
    if not 0 <= spec.combine_overhead < 1:
        raise ConfigError(
            f"combine_overhead must be at least 0 and below 1, not {spec.combine_overhead:g}", where=where
        )
    steps = spec.tick_s / spec.step_s
    if round(steps) < 1 or abs(steps - round(steps)) > _ROUNDING_S:
        raise ConfigError(
            f"tick_s ({spec.tick_s:g}) is not a multiple of step_s ({spec.step_s:g})",
            where=where,
            fix="change one of them",
        )
    return spec
