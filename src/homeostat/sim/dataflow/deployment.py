"""A deployed dataflow: its configuration, its processes, and the effects of faults on them."""

from __future__ import annotations

import numpy as np

from homeostat.core.configuration import (
    PARALLELISM,
    SPREAD,
    Capabilities,
    Configuration,
    Knob,
    KnobSpec,
    Replace,
    Restart,
    SetLive,
    Value,
    diff,
)
from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array, IntArray, WorkerSample
from homeostat.sim.dataflow.fluid import Fluid
from homeostat.sim.dataflow.processes import Processes
from homeostat.sim.faults import Faults
from homeostat.sim.random_streams import Ar1
from homeostat.sim.routing import shares, turn_at
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, FaultSpec

_INSTANCE_FAULTS = ("slow-instance", "crash")


class Deployment:
    """Stages, processes and knobs: what commands and faults change."""

    def __init__(
        self,
        components: tuple[ComponentSpec, ...],
        engine: DataflowSpec,
        faults: tuple[FaultSpec, ...],
        noise: dict[str, Ar1],
    ) -> None:
        self._components = components
        self._engine = engine
        parallelism = {spec.name: spec.parallelism for spec in components}
        self.processes = Processes(parallelism, engine.hosts)
        self.faults = Faults(faults, tuple(parallelism), self.processes.host_names)
        _check_targets(faults)
        self.capabilities = _capabilities(components, engine)
        values = dict.fromkeys(self.capabilities.knobs, 1)
        values |= {Knob(PARALLELISM, name): count for name, count in parallelism.items()}
        self.configuration = Configuration(values)
        self.down = False
        self.crashed: dict[str, IntArray] = {}
        self._leaving: frozenset[str] = frozenset()
        self._restart: dict[Knob, Value] = {}
        self._before: Configuration = self.configuration
        self._victims: dict[int, str] = {}
        self._noise = noise
        self._factors = dict.fromkeys(parallelism, 1.0)
        self._capacity_rows: dict[str, Array] = {}
        start = {spec.name: self._shares(spec, 0.0) for spec in components}
        self.fluid = Fluid(components, start, engine.step_s, engine.replayable)
        self.refresh(0.0)

    def next_tick(self) -> None:
        """Draw the service times of the tick that begins now."""
        for name, stage in self.fluid.stages.items():
            self._factors[name] = float(self._noise[name].next()[0])
            stage.set_capacity(self._capacity_rows[name] * self._factors[name])

    def next_change_s(self, t_s: float) -> float:
        """The time after `t_s` at which the next fault begins or ends, or new keys replace the old ones."""
        turns_s = [(turn_at(spec, t_s) + 1) * spec.turn_s for spec in self._components]
        return min(self.faults.next_change_s(t_s), *turns_s)

    def refresh(self, t_s: float) -> None:
        """Update capacities, routes and workers to the present configuration and faults."""
        self._choose_victims(t_s)
        for spec in self._components:
            name, stage = spec.name, self.fluid.stages[spec.name]
            dealt = self._shares(spec, t_s)
            if len(dealt) == len(stage.queue):
                stage.route(dealt)
            else:
                stage.resize(dealt)
            healthy = spec.rate_per_s * self._engine.step_s
            if self._spread(name) > 1:
                healthy *= 1 - self._engine.combine_overhead
            slowness = self._slowness(name, t_s)
            self.crashed[name] = np.flatnonzero(np.isinf(slowness))
            for worker in self._leaving:
                if (place := self.processes.find(worker)) and place[0] == name:
                    slowness[place[1]] = np.inf
            self._capacity_rows[name] = healthy / slowness
            stage.set_capacity(self._capacity_rows[name] * self._factors[name])
            stage.stuck = not stage.downstream and self.faults.sink_stuck(t_s, name)
        self._list_workers()

    def faulty_workers(self, t_s: float) -> frozenset[str]:
        """The processes that are slow or crashed now."""
        return frozenset(
            self.processes.id(spec.name, int(instance))
            for spec in self._components
            for instance in np.flatnonzero(self._slowness(spec.name, t_s) > 1)
        )

    def refusal(self, desired: Configuration) -> str:
        """Why this configuration is impossible; empty if it is possible."""
        return self.capabilities.refusal(desired)

    def begin(self, desired: Configuration, now_s: float) -> float:
        """Start a change: live knobs at once, the rest as one outage. Returns the seconds it takes."""
        seconds = 0.0
        self._before = self.configuration
        for step in diff(self.configuration, desired, self.capabilities):
            match step:
                case SetLive(values):
                    self._set(dict(values))
                case Replace(workers):
                    self._leaving = frozenset(w for w in workers if self.processes.find(w))
                    absent = workers - self._leaving
                    self._before = Configuration(self._before.values, self._before.retired | absent)
                    self._set({}, absent)
                    seconds = max(seconds, self._engine.replace_s if self._leaving else 0.0)
                case Restart(values):
                    self._restart = dict(values)
                    self.down = True
                    seconds = max(seconds, self._engine.redeploy_s)
        if seconds <= 0:
            self.finish(now_s)
        else:
            self.refresh(now_s)
        return seconds

    def finish(self, now_s: float) -> None:
        for knob, value in self._restart.items():
            self.processes.resize(knob.scope, int(value))
        for worker in sorted(self._leaving):
            self.processes.replace(worker)
        self._set(self._restart, self._leaving)
        self._end_outage(now_s)

    def abandon(self, now_s: float) -> None:
        self.configuration = self._before
        self._end_outage(now_s)

    def _end_outage(self, now_s: float) -> None:
        self.down, self._leaving, self._restart = False, frozenset(), {}
        self.refresh(now_s)

    def _set(self, values: dict[Knob, Value], retired: frozenset[str] = frozenset()) -> None:
        whole = {knob: int(value) for knob, value in values.items()}
        current = self.configuration
        self.configuration = Configuration({**current.values, **whole}, current.retired | retired)

    def _spread(self, name: str) -> int:
        """Return over how many instances the rows of each key are spread; 1 for a component that cannot spread them."""
        return int(self.configuration.get(Knob(SPREAD, name), 1))

    def _shares(self, spec: ComponentSpec, t_s: float) -> Array:
        return shares(
            spec,
            self.processes.count(spec.name),
            self._spread(spec.name),
            self.faults.hot_share(spec.name, t_s),
            self.faults.stride(spec.name, t_s),
            turn_at(spec, t_s),
        )

    def _choose_victims(self, t_s: float) -> None:
        """A fault of an instance stays with the process that runs it when the fault begins."""
        for number, fault in enumerate(self.faults.specs):
            has_begun = fault.kind in _INSTANCE_FAULTS and fault.at_s <= t_s
            if has_begun and number not in self._victims:
                exists = fault.instance < self.processes.count(fault.component)
                worker = self.processes.id(fault.component, fault.instance) if exists else ""
                self._victims[number] = worker

    def _slowness(self, name: str, t_s: float) -> Array:
        """How many times slower each instance is; infinite if it crashed."""
        hosts = np.array([self.faults.host_factor(host, t_s) for host in self.processes.host_names])
        slowness: Array = hosts[self.processes.hosts(name)]
        for number, worker in self._victims.items():
            fault = self.faults.specs[number]
            place = self.processes.find(worker) if t_s < fault.until_s else None
            if place is not None and place[0] == name:
                slowness[place[1]] *= np.inf if fault.kind == "crash" else fault.factor
        return slowness

    def _list_workers(self) -> None:
        ids: list[str] = []
        hosts: list[str] = []
        down: list[IntArray] = []
        self.worker_numbers: dict[str, IntArray] = {}
        for spec in self._components:
            names = self.processes.ids(spec.name)
            down.append(self.crashed[spec.name] + len(ids))
            self.worker_numbers[spec.name] = np.arange(len(ids), len(ids) + len(names))
            ids += names
            hosts += [self.processes.host_names[host] for host in self.processes.hosts(spec.name)]
        alive = np.ones(len(ids), dtype=np.bool_)
        alive[np.concatenate(down)] = False
        self.workers = WorkerSample(tuple(ids), tuple(hosts), np.ones(len(ids)), alive)


def _capabilities(components: tuple[ComponentSpec, ...], engine: DataflowSpec) -> Capabilities:
    knobs: dict[Knob, KnobSpec] = {}
    for spec in components:
        knobs[Knob(PARALLELISM, spec.name)] = KnobSpec(
            spec.minimum, spec.maximum, live=False, apply_s=engine.redeploy_s, cost=1.0
        )
        if spec.keyed:
            knobs[Knob(SPREAD, spec.name)] = KnobSpec(1, spec.maximum)
    return Capabilities(knobs, can_replace=True, replace_s=engine.replace_s, replays=engine.replayable)


def _check_targets(faults: tuple[FaultSpec, ...]) -> None:
    for number, fault in enumerate(faults, start=1):
        if fault.kind in _INSTANCE_FAULTS and not fault.component:
            raise ConfigError(
                f"a {fault.kind} fault needs a component",
                where=f"fault {number} ({fault.kind})",
                fix="set component",
            )
