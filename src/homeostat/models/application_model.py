"""One model of an application for every question: what a configuration would do at a rate, on either kind of engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    ROWS_PER_TRIGGER,
    TRIGGER_S,
    Capabilities,
    Configuration,
    Knob,
    Restart,
    SetLive,
    diff,
)
from homeostat.core.objective import Objective
from homeostat.core.observation import NAN
from homeostat.core.topology import Topology
from homeostat.core.view import View
from homeostat.models.batch_replay import BatchModel, Setup
from homeostat.models.capacity import backlog_rows, level, replays
from homeostat.models.model_fitting import batch_model
from homeostat.models.noise import fit
from homeostat.models.performance import Performance, Range, catch_up_s, predict, unseen_executors
from homeostat.models.saturation import FlowModel, flow_model


@dataclass(frozen=True, slots=True)
class Predicted:
    """A configuration at a rate. What an engine does not have is NaN: a dataflow has no batches, of so many `rows`.

    `limit` says what no further instance would help against, `unknown` what had to be assumed.
    """

    configuration: Configuration
    rate_per_s: float
    throughput_per_s: float
    saturation_per_s: Range
    stable: bool
    batch_s: Range | None = None
    latency_s: Mapping[str, float] = field(default_factory=dict)
    lag_s: float = NAN
    most_per_s: float = NAN
    rows: float = NAN
    limit: str = ""
    parts_s: Mapping[str, float] = field(default_factory=dict)
    utilisation: Mapping[str, float] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApplicationModel:
    """All that is needed to answer what-if questions, taken at one moment.

    `arrival_per_s` is the load then, `variation` the standard deviation of its logarithm, `backlog_rows` what waits at
    the sources. Not `replays`: what is not taken at once is lost. `errors` is how far predictions about a component
    have been off so far, in ln.
    """

    at_s: float
    topology: Topology
    configuration: Configuration
    capabilities: Capabilities
    objective: Objective
    performance: BatchModel | FlowModel
    arrival_per_s: float
    variation: float = 0.0
    backlog_rows: float = 0.0
    replays: bool = True
    errors: Mapping[str, float] = field(default_factory=dict)

    def predict(self, configuration: Configuration, rate_per_s: float) -> Predicted:
        """Everything about it."""
        if isinstance(self.performance, FlowModel):
            found = _flow(self.performance, self.instances(configuration), configuration, rate_per_s)
            return replace(found, unknown=(*found.unknown, *_unpredicted(self.objective)))
        batches = predict(self.performance, rate_per_s, self.setup(configuration), self.variation)
        return _batches(batches, configuration)

    def catch_up_s(self, configuration: Configuration, rate_per_s: float, backlog_rows: float) -> float:
        """How long until a backlog is gone; infinite if it never is."""
        if isinstance(self.performance, BatchModel):
            return catch_up_s(self.performance, rate_per_s, self.setup(configuration), backlog_rows)
        spare_per_s = self.predict(configuration, rate_per_s).most_per_s - rate_per_s
        if backlog_rows <= 0:
            return 0.0
        return backlog_rows / spare_per_s if spare_per_s > 0 else math.inf

    def pause_s(self, configuration: Configuration) -> float:
        """Until all of it is up; restarts are merged into one."""
        return self._taken_s(configuration, SetLive, Restart)

    def behind_rows(self, configuration: Configuration, rate_per_s: float) -> float:
        """What waits once the configuration is up: what waits now, and what arrives while nothing is taken."""
        return self.backlog_rows + rate_per_s * self.restart_s(configuration) if self.replays else 0.0

    def restart_s(self, configuration: Configuration) -> float:
        """How long nothing is taken on the way there."""
        return self._taken_s(configuration, Restart)

    def _taken_s(self, configuration: Configuration, *kinds: type[SetLive | Restart]) -> float:
        """By all steps to a configuration that are of these kinds."""
        steps, knobs = diff(self.configuration, configuration, self.capabilities), self.capabilities.knobs
        chosen = (step for step in steps if isinstance(step, SetLive | Restart) and isinstance(step, kinds))
        return sum(max(knobs[knob].apply_s for knob in step.values) for step in chosen)

    def instances(self, configuration: Configuration) -> dict[str, int]:
        """Of each component that has a number of its own."""
        scaled = (component for component in self.topology if component.scaled_by in configuration.values)
        return {component.name: int(configuration[component.scaled_by]) for component in scaled}

    def setup(self, configuration: Configuration) -> Setup:
        """The configuration as a batch sees it."""
        assert isinstance(self.performance, BatchModel)
        now = self.performance.setup
        values = configuration.values
        bounds = [float(value) for knob, value in values.items() if knob.kind == ROWS_PER_TRIGGER]
        triggers_s = [float(value) for knob, value in values.items() if knob.kind == TRIGGER_S]
        return Setup(
            executors=max(1, int(values.get(EXECUTORS_KNOB, now.executors))),
            trigger_s=max(triggers_s, default=now.trigger_s),
            rows_bound=sum(bounds) if bounds else now.rows_bound,
            partitions=self._partitions(configuration),
        )

    def partition_knobs(self) -> dict[Knob, tuple[str, ...]]:
        """Those that cut stages into tasks, with the stages they cut."""
        found: dict[Knob, tuple[str, ...]] = {}
        for component in self.topology:
            if component.partitions is not None and component.partitions in self.capabilities.knobs:
                found[component.partitions] = (*found.get(component.partitions, ()), component.name)
        return found

    def _partitions(self, configuration: Configuration) -> dict[str, int]:
        """Of the stages whose knob is set to something else than now; the others stay as they were seen."""
        return {
            name: int(configuration[knob])
            for knob, names in self.partition_knobs().items()
            if knob in configuration.values and configuration[knob] != self.configuration.values.get(knob)
            for name in names
        }


def application_model(view: View) -> ApplicationModel | None:
    """None until enough was seen."""
    performance = batch_model(view) if view.micro_batch else flow_model(view)
    arrivals = view.flow("arrival_per_s")
    rate = level(arrivals)
    if performance is None or not math.isfinite(rate):
        return None
    waiting = backlog_rows(view)
    return ApplicationModel(
        at_s=view.now_s,
        topology=view.topology,
        configuration=view.configuration,
        capabilities=view.capabilities,
        objective=view.objective,
        performance=performance,
        arrival_per_s=rate,
        variation=fit(np.log(arrivals[arrivals > 0])).sigma,
        backlog_rows=_behind(waiting, rate, performance) if math.isfinite(waiting) else 0.0,
        replays=replays(view),
        errors={name: trust.off for name, trust in view.trust.items()},
    )


def unseen(view: View, instances: Mapping[str, int]) -> tuple[str, ...]:
    """What sizing components for so many instances, or executors, takes for granted."""
    if not view.micro_batch:
        flow = flow_model(view)
        return tuple(flow.unseen(instances)) if flow is not None else ()
    batches = batch_model(view)
    return tuple(unseen_executors(batches, max(instances.values()))) if batches is not None else ()


def _behind(waiting: float, rate_per_s: float, performance: BatchModel | FlowModel) -> float:
    """What waits beyond the rows of one batch, which always wait when one ends."""
    if isinstance(performance, FlowModel):
        return waiting
    return max(0.0, waiting - rate_per_s * max(performance.setup.trigger_s, 1.0))


def _batches(found: Performance, configuration: Configuration) -> Predicted:
    path = found.critical
    limit = (
        f"beyond {path.executors} executors a batch stays at {path.seconds:.1f} s, most of it {path.blame}: {path.why}"
    )
    return Predicted(
        configuration=configuration,
        rate_per_s=found.rate_per_s,
        throughput_per_s=found.throughput_per_s,
        saturation_per_s=found.saturation_per_s,
        stable=found.stable,
        batch_s=found.batch_s,
        latency_s=found.latency_s,
        lag_s=found.lag_s,
        most_per_s=found.most_per_s,
        rows=found.rows,
        limit=limit,
        parts_s=path.parts_s,
        unknown=found.unknown,
    )


def _unpredicted(objective: Objective) -> Iterator[str]:
    """What is asked of a dataflow and cannot be told."""
    wanted = {"latency": objective.latency_p95_s, "lag": objective.lag_s}
    for name in (name for name, limit_s in wanted.items() if limit_s is not None):
        yield f"the {name} of a dataflow: only how much it takes is predicted"


def _flow(model: FlowModel, counts: Mapping[str, int], configuration: Configuration, rate_per_s: float) -> Predicted:
    found = model.predict(rate_per_s, counts)
    bottleneck = next((o for o in model.operators if o.name == found.bottleneck), None)
    off = 1.28 * bottleneck.error if bottleneck is not None else 0.0
    saturation = found.saturation_per_s
    return Predicted(
        configuration=configuration,
        rate_per_s=rate_per_s,
        throughput_per_s=found.throughput_per_s,
        saturation_per_s=Range(saturation * float(np.exp(-off)), saturation, saturation * float(np.exp(off))),
        stable=found.stable,
        most_per_s=saturation,
        limit=f"{found.bottleneck} saturates first" if found.bottleneck else "",
        utilisation=found.utilisation,
        unknown=found.unknown,
    )
