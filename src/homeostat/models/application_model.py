"""The model of an application on either kind of engine: predicts how a configuration would perform at a rate."""

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

# Standard deviations between the median and the 90th percentile of a normal distribution.
_INTERVAL_SIGMAS = 1.28
# A batch without a trigger interval counts as this long when its rows are compared with a backlog. A choice.
_LEAST_PERIOD_S = 1.0


@dataclass(frozen=True, slots=True)
class Predicted:
    """The prediction for a configuration at a rate. Values that an engine does not have keep their defaults: a dataflow
    has no batches.

    `rows` is the size of a batch. `limit` names the part that limits the performance, `unknown` the assumptions.
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
    """Everything needed to answer what-if questions at the moment `at_s`.

    `arrival_per_s` is the load at that moment, `variation` the standard deviation of its logarithm, `backlog_rows` the
    number of rows that wait at the sources. `replays` is False if the source loses rows that are not processed at once.
    `errors` is how far the predictions for each component have been off so far (0.1 is about 10 %).
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
        """Predict everything the model knows about a configuration at a rate."""
        if isinstance(self.performance, FlowModel):
            prediction = _flow(self.performance, self.instances(configuration), configuration, rate_per_s)
            return replace(prediction, unknown=(*prediction.unknown, *_unpredictable(self.objective)))
        batches = predict(self.performance, rate_per_s, self.setup(configuration), self.variation)
        return _batches(batches, configuration)

    def catch_up_s(self, configuration: Configuration, rate_per_s: float, backlog_rows: float) -> float:
        """Return how long it takes to work off a backlog; infinite if it never ends."""
        if isinstance(self.performance, BatchModel):
            return catch_up_s(self.performance, rate_per_s, self.setup(configuration), backlog_rows)
        spare_per_s = self.predict(configuration, rate_per_s).most_per_s - rate_per_s
        if backlog_rows <= 0:
            return 0.0
        return backlog_rows / spare_per_s if spare_per_s > 0 else math.inf

    def pause_s(self, configuration: Configuration) -> float:
        """Return how long applying the configuration takes. Restarts are merged into one."""
        return self._steps_s(configuration, SetLive, Restart)

    def behind_rows(self, configuration: Configuration, rate_per_s: float) -> float:
        """Return how many rows wait once the configuration is applied: those that wait now, and those that arrive until
        then."""
        return self.backlog_rows + rate_per_s * self.restart_s(configuration) if self.replays else 0.0

    def restart_s(self, configuration: Configuration) -> float:
        """Return how long no rows are processed while the configuration is applied."""
        return self._steps_s(configuration, Restart)

    def _steps_s(self, configuration: Configuration, *kinds: type[SetLive | Restart]) -> float:
        """The time of all steps of these kinds that lead to a configuration."""
        steps, knobs = diff(self.configuration, configuration, self.capabilities), self.capabilities.knobs
        steps_of_kind = (step for step in steps if isinstance(step, SetLive | Restart) and isinstance(step, kinds))
        return sum(max(knobs[knob].apply_s for knob in step.values) for step in steps_of_kind)

    def instances(self, configuration: Configuration) -> dict[str, int]:
        """Return the instances of each component that has its own scaling knob."""
        scaled_components = (component for component in self.topology if component.scaled_by in configuration.values)
        return {component.name: int(configuration[component.scaled_by]) for component in scaled_components}

    def setup(self, configuration: Configuration) -> Setup:
        """Return the part of the configuration on which the duration of a batch depends."""
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
        """Return the knobs that set the number of tasks, each with the stages that it applies to."""
        stages_by_knob: dict[Knob, tuple[str, ...]] = {}
        for component in self.topology:
            if component.partitions is not None and component.partitions in self.capabilities.knobs:
                stages_by_knob[component.partitions] = (*stages_by_knob.get(component.partitions, ()), component.name)
        return stages_by_knob

    def _partitions(self, configuration: Configuration) -> dict[str, int]:
        """Partitions of the stages whose knob differs from its present value; other stages keep theirs."""
        return {
            name: int(configuration[knob])
            for knob, names in self.partition_knobs().items()
            if knob in configuration.values and configuration[knob] != self.configuration.values.get(knob)
            for name in names
        }


def application_model(view: View) -> ApplicationModel | None:
    """Return the model of a view; None until there are enough observations."""
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
        backlog_rows=beyond_one_batch(performance, waiting, rate) if math.isfinite(waiting) else 0.0,
        replays=replays(view),
        errors={name: trust.off for name, trust in view.trust.items()},
    )


def beyond_one_batch(performance: BatchModel | FlowModel, waiting_rows: float, rate_per_s: float) -> float:
    """Return the backlog without the rows of one batch, which always wait when a batch ends."""
    if isinstance(performance, FlowModel):
        return waiting_rows
    return max(0.0, waiting_rows - rate_per_s * max(performance.setup.trigger_s, _LEAST_PERIOD_S))


def size_assumptions(view: View, instances: Mapping[str, int]) -> tuple[str, ...]:
    """Return the assumptions of a prediction for these numbers of instances or executors."""
    if not view.micro_batch:
        flow = flow_model(view)
        return tuple(flow.assumptions(instances)) if flow is not None else ()
    batches = batch_model(view)
    return tuple(unseen_executors(batches, max(instances.values()))) if batches is not None else ()


def _batches(performance: Performance, configuration: Configuration) -> Predicted:
    path = performance.critical
    limit = (
        f"with more than {path.executors} executors a batch still takes {path.seconds:.1f} s, "
        f"most of it {path.blame}: {path.why}"
    )
    return Predicted(
        configuration=configuration,
        rate_per_s=performance.rate_per_s,
        throughput_per_s=performance.throughput_per_s,
        saturation_per_s=performance.saturation_per_s,
        stable=performance.stable,
        batch_s=performance.batch_s,
        latency_s=performance.latency_s,
        lag_s=performance.lag_s,
        most_per_s=performance.most_per_s,
        rows=performance.rows,
        limit=limit,
        parts_s=path.parts_s,
        unknown=performance.unknown,
    )


def _unpredictable(objective: Objective) -> Iterator[str]:
    """The parts of the objective that cannot be predicted for a dataflow."""
    limits_s = {"latency": objective.latency_p95_s, "lag": objective.lag_s}
    for name in (name for name, limit_s in limits_s.items() if limit_s is not None):
        yield f"the {name} of a dataflow cannot be predicted, only its throughput"


def _flow(model: FlowModel, counts: Mapping[str, int], configuration: Configuration, rate_per_s: float) -> Predicted:
    performance = model.predict(rate_per_s, counts)
    bottleneck = next((o for o in model.operators if o.name == performance.bottleneck), None)
    margin = _INTERVAL_SIGMAS * bottleneck.error if bottleneck is not None else 0.0
    saturation = performance.saturation_per_s
    return Predicted(
        configuration=configuration,
        rate_per_s=rate_per_s,
        throughput_per_s=performance.throughput_per_s,
        saturation_per_s=Range(saturation * float(np.exp(-margin)), saturation, saturation * float(np.exp(margin))),
        stable=performance.stable,
        most_per_s=saturation,
        limit=f"{performance.bottleneck} saturates first" if performance.bottleneck else "",
        utilisation=performance.utilisation,
        unknown=performance.unknown,
    )
