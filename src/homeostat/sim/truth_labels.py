"""The real problems of a simulated application: the causes that correspond to its faults, and the cost of each.

Benchmarks score diagnoses by them. The cost of a fault is the time by which a batch without noise would be shorter
without the fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite

from homeostat.core.causes import (
    ADMISSION_LIMITED,
    DATA_SKEW,
    EXTERNAL,
    HASH_IMBALANCE,
    SLOW_INSTANCE,
    UNBOUNDED_STATE,
    UNDER_PROVISIONED,
)
from homeostat.core.configuration import EXECUTORS_KNOB, SPREAD, Knob, Value
from homeostat.core.errors import ConfigError
from homeostat.core.guards import APPLICATION
from homeostat.core.time_causes import (
    CHECKPOINT_BOUND,
    COSTLY_KEYS,
    DRIVER_BOUND,
    DYING_EXECUTORS,
    FAILING_TASKS,
    GC_BOUND,
    HOST_CONTENTION,
    POISON_ROW,
    RISING_COST,
    SHUFFLE_BOUND,
    SINK_BOUND,
    SKEWED_JOIN,
    SLOW_HOST,
    SMALL_FILES,
    SOURCE_BOUND,
    SPILLING,
    STALLED_WATERMARK,
    STATE_STORE_BOUND,
    TINY_TASKS,
    TOO_FEW_PARTITIONS,
)
from homeostat.sim.microbatch.disturbances import BATCH_KINDS, DISTURBING_KINDS, TASK_KINDS, Disturbance, disturbance
from homeostat.sim.microbatch.engine import NO_TRIGGER_INTERVAL_S
from homeostat.sim.microbatch.expected_batches import Application, expected_batch_s, sufficient_executors
from homeostat.sim.microbatch.layout import ROWS_KNOB, TRIGGER_KNOB, partitions_knob
from homeostat.sim.microbatch.stages import Routing
from homeostat.sim.routing import turn_at
from homeostat.sim.scenario.components import joins_inputs
from homeostat.sim.scenario.fault_targets import concerns
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Scenario
from homeostat.sim.truth import TruthSample
from homeostat.sim.workload import Workload

# A cause that costs less than this share of a batch is not worth naming.
LEAST_SHARE = 0.05
# Batches that take this share of their interval leave little headroom.
NEARLY_FULL = 0.8
# Scaling helps if twice the executors reduce the cost of the fault by this share.
HELPFUL_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Label:
    """A cause that exists at a component (empty: the whole application) from `at_s` until `until_s`.

    `also` holds other causes that are also a right diagnosis. `scaling_helps` is True if the fault costs noticeably
    less with twice the executors. A `silent` cause need not cost any time to be worth naming.
    """

    cause: str
    component: str
    at_s: float = 0.0
    until_s: float = inf
    scaling_helps: bool = False
    also: frozenset[str] = frozenset()
    silent: bool = False
    fault: FaultSpec | None = field(default=None, repr=False)

    def matches(self, cause: str, component: str) -> bool:
        """Whether a diagnosis of this cause at this component (empty: somewhere) is right."""
        anywhere = not component or not self.component
        return (cause == self.cause or cause in self.also) and (anywhere or component == self.component)


@dataclass(frozen=True, slots=True)
class _Meaning:
    cause: str
    also: tuple[str, ...] = ()
    silent: bool = False
    application: bool = False


_MEANINGS: dict[str, _Meaning] = {
    "slow-instance": _Meaning(SLOW_INSTANCE, application=True),
    "slow-host": _Meaning(SLOW_HOST, (SLOW_INSTANCE,), application=True),
    "hot-key": _Meaning(DATA_SKEW),
    "hash-imbalance": _Meaning(HASH_IMBALANCE, (DATA_SKEW,)),
    "stuck-sink": _Meaning(SINK_BOUND, (EXTERNAL,), silent=True),
    "slow-sink": _Meaning(SINK_BOUND, (EXTERNAL,)),
    "slow-commit": _Meaning(CHECKPOINT_BOUND, application=True),
    "slow-planning": _Meaning(DRIVER_BOUND, application=True),
    "slow-scheduling": _Meaning(DRIVER_BOUND, (TINY_TASKS,), application=True),
    "collecting": _Meaning(DRIVER_BOUND, (SINK_BOUND,), application=True),
    "driver-memory": _Meaning(DRIVER_BOUND, (GC_BOUND,), application=True),
    "slow-source": _Meaning(SOURCE_BOUND),
    "small-files": _Meaning(SMALL_FILES, (SOURCE_BOUND,)),
    "slow-fetch": _Meaning(SOURCE_BOUND, (EXTERNAL,)),
    "outside-system": _Meaning(EXTERNAL),
    "slow-network": _Meaning(SHUFFLE_BOUND),
    "contention": _Meaning(HOST_CONTENTION, (SLOW_HOST,), application=True),
    "memory": _Meaning(GC_BOUND),
    "spill": _Meaning(SPILLING),
    "state-store": _Meaning(STATE_STORE_BOUND),
    "growing-state": _Meaning(UNBOUNDED_STATE, (RISING_COST,), silent=True),
    "stalled-watermark": _Meaning(STALLED_WATERMARK, (UNBOUNDED_STATE,), silent=True),
    "rising-cost": _Meaning(RISING_COST),
    "costly-keys": _Meaning(COSTLY_KEYS),
    "skewed-join": _Meaning(SKEWED_JOIN),
    "task-failures": _Meaning(FAILING_TASKS),
    "poison-row": _Meaning(POISON_ROW, (FAILING_TASKS,), silent=True),
    "stuck-task": _Meaning(EXTERNAL),
    "dying-executors": _Meaning(DYING_EXECUTORS, silent=True, application=True),
}

# The topology shows whether a component is a join. In a join, a hot key is a skewed join. Elsewhere, rows that multiply
# are costly rows.
_OTHER_NAMES = {("hot-key", True): frozenset({SKEWED_JOIN}), ("skewed-join", False): frozenset({COSTLY_KEYS})}


class Labels:
    """The labels of one micro-batch scenario, and which of them apply at a given time."""

    def __init__(self, scenario: Scenario, seed: int | None = None) -> None:
        if not isinstance(scenario.engine, MicrobatchSpec):
            raise ConfigError("the scenario is not for the micro-batch engine", where=scenario.name)
        self._scenario, self._engine = scenario, scenario.engine
        self._workload = Workload(scenario.workload, scenario.seed if seed is None else seed)
        self._faults = [part for fault in scenario.faults for part in _parts(fault, scenario.components)]
        self.all = tuple(self._label(fault, place) for fault in self._faults for place in _places(fault, scenario))

    def at(self, t_s: float, values: Mapping[Knob, Value] | None = None) -> tuple[Label, ...]:
        """The labels that apply at this time and are worth naming, with the knobs at these values.

        Knobs that are left out have the value of the scenario. Besides the faults, the configuration itself can be
        wrong: too few executors, too few or too many partitions, or a limit on rows that is below the load.
        """
        knobs = values or {}
        standing = [label for label in self.all if label.at_s <= t_s < label.until_s]
        whole_s = self._batch_s(t_s, knobs)
        labels = [
            label
            for label in standing
            if label.silent or whole_s - self._batch_s(t_s, knobs, without=label.fault) >= LEAST_SHARE * whole_s
        ]
        return (*labels, *self._misconfigured(t_s, knobs))

    def standing(self, sample: TruthSample) -> tuple[Label, ...]:
        """The labels that applied in this batch. A fault of workers that were all replaced no longer applies."""
        labels_now = self.at(sample.at_s, sample.values)
        if sample.faulty_workers:
            return labels_now
        return tuple(label for label in labels_now if label.fault is None or not _hits_workers(label.fault))

    def acting(self, sample: TruthSample) -> tuple[Label, ...]:
        """The labels that applied in this batch, and those of active faults that were not worth naming."""
        now = [label for label in self.all if label.at_s <= sample.at_s < label.until_s]
        by_workers = [label for label in now if label.fault is not None and _hits_workers(label.fault)]
        ended = by_workers if not sample.faulty_workers else []
        standing = self.standing(sample)
        others = [label for label in now if label not in ended and label not in standing]
        # A state that the watermark does not empty makes each row more expensive.
        dearer = [Label(RISING_COST, label.component) for label in now if label.cause == STALLED_WATERMARK]
        return (*standing, *others, *dearer, *self._nearly_short(sample))

    def _nearly_short(self, sample: TruthSample) -> list[Label]:
        """Batches that nearly fill their interval have too few executors for a policy that plans headroom."""
        batch_s, interval_s = self._batch_s(sample.at_s, sample.values), self._interval_s(sample.values)
        doubled = {**sample.values, EXECUTORS_KNOB: 2 * self._executors(sample.values)}
        gained_s = batch_s - self._batch_s(sample.at_s, doubled)
        nearly = batch_s >= NEARLY_FULL * interval_s and gained_s >= LEAST_SHARE * batch_s
        return [Label(UNDER_PROVISIONED, "", scaling_helps=True)] if nearly else []

    def is_short_without_faults(self, sample: TruthSample) -> bool:
        """Whether batches would take longer than their interval even if there were no fault."""
        return self._batch_s(sample.at_s, sample.values, faultless=True) > self._interval_s(sample.values)

    def cost_s(self, label: Label, t_s: float, values: Mapping[Knob, Value] | None = None) -> float:
        """How much shorter a batch without noise would be without this fault."""
        knobs = values or {}
        return self._batch_s(t_s, knobs) - self._batch_s(t_s, knobs, without=label.fault)

    def _label(self, fault: FaultSpec, component: str) -> Label:
        meaning = _MEANINGS[fault.kind]
        joins = any(c.name == component and joins_inputs(c) for c in self._scenario.components)
        label = Label(
            meaning.cause,
            component,
            fault.at_s,
            fault.until_s,
            also=frozenset(meaning.also) | _OTHER_NAMES.get((fault.kind, joins), frozenset()),
            silent=meaning.silent,
            fault=fault,
        )
        end_s = min(fault.until_s, self._scenario.duration_s)
        middle_s = (fault.at_s + end_s) / 2 if isfinite(end_s) else fault.at_s
        cost_s = self.cost_s(label, middle_s)
        doubled_s = self.cost_s(label, middle_s, {EXECUTORS_KNOB: 2 * self._engine.executors})
        return replace(label, scaling_helps=cost_s > 0 and doubled_s <= (1.0 - HELPFUL_SHARE) * cost_s)

    def _misconfigured(self, t_s: float, values: Mapping[Knob, Value]) -> Iterable[Label]:
        rows, interval_s = self._arriving_rows(t_s, values), self._interval_s(values)
        limit_rows = values.get(ROWS_KNOB, self._engine.rows_per_trigger)
        whole_s = self._batch_s(t_s, values)
        if limit_rows < (1.0 - LEAST_SHARE) * rows and whole_s < interval_s:
            yield Label(ADMISSION_LIMITED, "")
        executors = self._executors(values)
        if whole_s > interval_s >= self._batch_s(t_s, {**values, EXECUTORS_KNOB: self._sufficient(t_s, values)}):
            yield Label(UNDER_PROVISIONED, "", scaling_helps=True)
        for component in self._scenario.components:
            knob = partitions_knob(component)
            partitions = int(values.get(knob, component.parallelism))
            slots = executors * self._engine.slots
            more_s = self._batch_s(t_s, {**values, knob: slots})
            fewer_s = self._batch_s(t_s, {**values, knob: max(slots, partitions // 2)})
            if partitions < slots and whole_s - more_s >= LEAST_SHARE * whole_s:
                yield Label(TOO_FEW_PARTITIONS, component.name)
            elif partitions > slots and whole_s - fewer_s >= LEAST_SHARE * whole_s:
                doubled = {**values, EXECUTORS_KNOB: 2 * executors}
                doubled_s = self._batch_s(t_s, doubled) - self._batch_s(
                    t_s, {**doubled, knob: max(slots, partitions // 2)}
                )
                helps = doubled_s <= (1.0 - HELPFUL_SHARE) * (whole_s - fewer_s)
                yield Label(TINY_TASKS, component.name, scaling_helps=helps)

    def _sufficient(self, t_s: float, values: Mapping[Knob, Value]) -> int:
        faults = self._active(t_s)
        now = self._disturbance(faults, t_s)
        rate_per_s = float(f"{self._workload.mean_per_s(t_s):.3g}")
        return sufficient_executors(self._application(faults, t_s, values), rate_per_s, self._interval_s(values), now)

    def _batch_s(
        self, t_s: float, values: Mapping[Knob, Value], without: FaultSpec | None = None, faultless: bool = False
    ) -> float:
        faults = [] if faultless else [fault for fault in self._active(t_s) if fault is not without]
        now = self._disturbance(faults, t_s)
        limit_rows = values.get(ROWS_KNOB, self._engine.rows_per_trigger)
        return expected_batch_s(
            self._application(faults, t_s, values),
            min(limit_rows, self._arriving_rows(t_s, values)),
            self._executors(values),
            now,
            self._slowness(faults, self._executors(values)),
        )

    def _disturbance(self, faults: Iterable[FaultSpec], t_s: float) -> Disturbance:
        disturbing_faults = [fault for fault in faults if fault.kind in DISTURBING_KINDS]
        return disturbance(disturbing_faults, self._scenario.components, t_s, self._engine.dispatch_s)

    def _active(self, t_s: float) -> list[FaultSpec]:
        return [fault for fault in self._faults if fault.at_s <= t_s < fault.until_s]

    def _application(self, faults: Iterable[FaultSpec], t_s: float, values: Mapping[Knob, Value]) -> Application:
        components = self._scenario.components
        routings = tuple(_routing(component, tuple(faults), t_s, values) for component in components)
        return Application(components, self._engine, routings)

    def _slowness(self, faults: Iterable[FaultSpec], executors: int) -> dict[int, float]:
        slowness = dict.fromkeys(range(executors), 1.0)
        for fault in faults:
            for number in slowness:
                on_host = fault.kind == "slow-host" and fault.host == f"host-{number % self._engine.hosts}"
                if on_host or (fault.kind == "slow-instance" and number == fault.instance % executors):
                    slowness[number] *= fault.factor
        return slowness

    def _executors(self, values: Mapping[Knob, Value]) -> int:
        return int(values.get(EXECUTORS_KNOB, self._engine.executors))

    def _interval_s(self, values: Mapping[Knob, Value]) -> float:
        return float(values.get(TRIGGER_KNOB, self._engine.trigger_s)) or NO_TRIGGER_INTERVAL_S

    def _arriving_rows(self, t_s: float, values: Mapping[Knob, Value]) -> float:
        return self._workload.mean_per_s(t_s) * self._interval_s(values)


def _hits_workers(fault: FaultSpec) -> bool:
    """Whether the fault is over when its workers are replaced."""
    return fault.kind == "slow-instance" or bool(fault.host)


def labels(scenario: Scenario) -> tuple[Label, ...]:
    """The causes that correspond to the faults of a micro-batch scenario."""
    return Labels(scenario).all


def _routing(
    component: ComponentSpec, faults: tuple[FaultSpec, ...], t_s: float, values: Mapping[Knob, Value]
) -> Routing:
    here = [fault for fault in faults if fault.component in ("", component.name)]
    return Routing(
        int(values.get(partitions_knob(component), component.parallelism)),
        int(values.get(Knob(SPREAD, component.name), 1)),
        max((fault.share for fault in here if fault.kind == "hot-key"), default=0.0),
        max((fault.stride for fault in here if fault.kind == "hash-imbalance"), default=0),
        turn_at(component, t_s),
    )


def _parts(fault: FaultSpec, components: tuple[ComponentSpec, ...]) -> list[FaultSpec]:
    """A fault that hits the tasks of several components, as one fault at each of them."""
    if fault.component or fault.kind not in TASK_KINDS or fault.kind in BATCH_KINDS:
        return [fault]
    return [replace(fault, component=component.name) for component in components if concerns(fault, component)]


def _places(fault: FaultSpec, scenario: Scenario) -> list[str]:
    """The components at which the cause of a fault exists; none for a fault without a cause."""
    meaning, components = _MEANINGS.get(fault.kind), scenario.components
    if meaning is None:
        return []
    if fault.component and fault.component != APPLICATION:
        return [fault.component]
    if meaning.application:
        return [""]
    if fault.kind in ("slow-sink", "stuck-sink"):
        inputs = {name for component in components for name in component.inputs}
        return [component.name for component in components if component.name not in inputs]
    if fault.kind == "slow-source":
        return [component.name for component in components if component.kind == "source"]
    return [component.name for component in components if concerns(fault, component)]
