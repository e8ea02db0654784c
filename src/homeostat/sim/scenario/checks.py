"""Contradictions between the values of a scenario, checked after each single value was accepted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isfinite

from homeostat.sim.scenario.fault_targets import SOURCE_FAULTS, STATE_FAULTS, concerns
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, FaultSpec, MicrobatchSpec, Scenario
from homeostat.sim.scenario.tables import ScenarioTable
from homeostat.strict.toml_reading import Problem, nearest
from homeostat.strict.units import format_duration

DATAFLOW_KEYS = {"queue_s": "queue"}
MICROBATCH_KEYS = {
    "combining": "combining",
    "task_s": "task",
    "crowding": "crowding",
    "key_s": "key",
    "stateful": "stateful",
}
KEYED_KEYS = {"keys": "keys", "zipf": "zipf", "turn_s": "turn"}
KEYED_FAULTS = ("hot-key", "hash-imbalance")
INSTANCE_FAULTS = ("slow-instance", "crash")
WAITING_FAULTS = ("slow-fetch", "outside-system", "state-store")
# The kinds of fault that both engines have.
COMMON_FAULTS = (*INSTANCE_FAULTS, *KEYED_FAULTS, "slow-host", "stuck-sink", "metric-gap", "garbage-metrics")
# A run with more steps would take days of computing.
MOST_STEPS = 100_000_000
# Spark measures triggers in milliseconds.
SHORTEST_TRIGGER_S = 0.001


def contradictions(table: ScenarioTable, scenario: Scenario) -> Iterator[Problem]:
    """Yield the contradictions. `table` has the values that the user wrote, `scenario` also has every default."""
    yield from _engine(table, scenario)
    yield from _components(table, scenario)
    yield from _workload(scenario)
    for number, fault in enumerate(scenario.faults):
        yield from _fault(("fault", number), fault, scenario)


def _engine(table: ScenarioTable, scenario: Scenario) -> Iterator[Problem]:
    other = "microbatch" if table.engine == "dataflow" else "dataflow"
    if getattr(table, other) is not None:
        fix = f"remove it, or set engine = '{other}'"
        yield Problem((other,), f"[{other}] contradicts engine = '{table.engine}'", fix)
    engine = scenario.engine
    yield from _length(engine.step_s if isinstance(engine, DataflowSpec) else engine.trigger_s, scenario)
    if isinstance(engine, DataflowSpec):
        steps = engine.tick_s / engine.step_s
        if abs(steps - round(steps)) > 1e-9 or round(steps) < 1:
            tick, step = format_duration(engine.tick_s), format_duration(engine.step_s)
            yield Problem(("dataflow",), f"'tick' ({tick}) is not a multiple of 'step' ({step})")
    elif engine.executors > min(engine.max_executors, engine.grant_limit):
        most = min(engine.max_executors, engine.grant_limit)
        what = f"'executors' is {engine.executors}, but at most {most} are allowed"
        yield Problem(("microbatch", "executors"), what, "lower it, or raise 'max_executors' and 'grant_limit'")


def _length(step_s: float, scenario: Scenario) -> Iterator[Problem]:
    """Refuses a run that would take practically forever."""
    if isinstance(scenario.engine, MicrobatchSpec) and 0 < step_s < SHORTEST_TRIGGER_S:
        yield Problem(
            ("microbatch", "trigger"),
            "'trigger' is shorter than 1 ms",
            "use '0 s' to start each batch when the last one ends",
        )
    elif step_s > 0 and scenario.duration_s / step_s > MOST_STEPS:
        steps = f"{scenario.duration_s / step_s:.2g}"
        fix = f"at most {MOST_STEPS:,} steps of {format_duration(step_s)} are allowed"
        yield Problem(("duration",), f"the run would take {steps} steps", fix)


def _components(table: ScenarioTable, scenario: Scenario) -> Iterator[Problem]:
    components = scenario.components
    earlier: set[str] = set()
    for number, spec in enumerate(components):
        if spec.name in earlier:
            yield Problem(("component", number, "name"), f"two components have the name '{spec.name}'")
        yield from _inputs(number, spec, earlier, components)
        yield from _bounds(number, spec)
        yield from _keys_without_effect(number, spec, table, scenario)
        earlier.add(spec.name)
    if not any(spec.kind == "source" for spec in components):
        yield Problem(("component",), "no component is a source", 'set kind = "source" for one component')
    if isinstance(scenario.engine, MicrobatchSpec):
        stateful = {c.parallelism: n for n, c in enumerate(components) if c.stateful and c.kind == "operator"}
        if len(stateful) > 1:
            numbers = " and ".join(str(partitions) for partitions in sorted(stateful))
            what = f"stateful components have different 'parallelism' ({numbers})"
            fix = "use one number for all: a query has a single number of state partitions"
            yield Problem(("component", max(stateful.values()), "parallelism"), what, fix)


def _inputs(
    number: int, spec: ComponentSpec, earlier: set[str], components: tuple[ComponentSpec, ...]
) -> Iterator[Problem]:
    here = ("component", number)
    if spec.kind == "source":
        if spec.inputs:
            fix = "remove 'inputs', or make it an operator"
            yield Problem((*here, "inputs"), f"source '{spec.name}' must not have inputs", fix)
        return
    if not spec.inputs:
        fix = "name the components it reads in 'inputs', or set kind = \"source\""
        yield Problem(here, f"operator '{spec.name}' has no inputs", fix)
    names = [component.name for component in components]
    for position, name in enumerate(spec.inputs):
        path = (*here, "inputs", position)
        if name not in names:
            others = [other for other in names if other != spec.name]
            yield Problem(path, f"'{spec.name}' reads '{name}', which does not exist", nearest(name, others))
        elif name not in earlier:
            what = f"'{spec.name}' reads '{name}', which is not listed before it"
            yield Problem(path, what, "list components from the sources to the sinks, without a cycle")
        elif name in spec.inputs[:position]:
            yield Problem(path, f"'{spec.name}' reads '{name}' twice")


def _bounds(number: int, spec: ComponentSpec) -> Iterator[Problem]:
    if spec.minimum > spec.maximum:
        what = f"'minimum' ({spec.minimum}) is above 'maximum' ({spec.maximum})"
        yield Problem(("component", number, "minimum"), what)
    elif not spec.minimum <= spec.parallelism <= spec.maximum:
        what = (
            f"'parallelism' of '{spec.name}' must be between {spec.minimum} and {spec.maximum}, not {spec.parallelism}"
        )
        fix = "change it, 'minimum' or 'maximum'"
        yield Problem(("component", number, "parallelism"), what, fix)


def _keys_without_effect(
    number: int, spec: ComponentSpec, table: ScenarioTable, scenario: Scenario
) -> Iterator[Problem]:
    keys = table.component[number].model_fields_set
    foreign, engine = MICROBATCH_KEYS, "microbatch"
    if isinstance(scenario.engine, MicrobatchSpec):
        foreign, engine = DATAFLOW_KEYS, "dataflow"
    elif spec.kind == "source" and "queue_s" in keys:
        yield Problem(("component", number, "queue"), "a source cannot have a queue", "remove 'queue'")
    elif spec.kind == "operator" and spec.queue_s < scenario.engine.step_s:
        what = f"'queue' of '{spec.name}' is shorter than a step ({format_duration(scenario.engine.step_s)})"
        yield Problem(("component", number, "queue"), what, "lengthen it, or shorten 'step' in [dataflow]")
    for field, key in foreign.items():
        if field in keys:
            what = f"'{key}' has no effect with engine = '{table.engine}'"
            yield Problem(("component", number, key), what, f"remove it, or set engine = '{engine}'")
    for field, key in KEYED_KEYS.items():
        if field in keys and not spec.keyed:
            what = f"'{key}' has no effect without keyed = true"
            yield Problem(("component", number, key), what, "add keyed = true, or remove it")


def _workload(scenario: Scenario) -> Iterator[Problem]:
    load, end_s = scenario.workload, scenario.duration_s
    if load.steps and load.steps[0][0] != 0:
        yield Problem(("workload", "steps", 0, "at"), "the first step must be at '0 s'")
    for number, (before, after) in enumerate(pairwise(load.steps), start=1):
        if after[0] <= before[0]:
            yield Problem(("workload", "steps", number, "at"), "steps must be sorted by time")
    if load.kind == "ramp" and load.end_s <= load.start_s:
        yield Problem(("workload", "end"), "'end' of the ramp must come after its 'start'")
    if load.kind == "diurnal" and load.to_per_s < load.rate_per_s:
        yield Problem(("workload", "peak"), "'peak' must not be below 'night'")
    for name, times in (("steps", [at for at, _ in load.steps]), ("spikes", [s.at_s for s in load.spikes])):
        for number, at_s in enumerate(times):
            if at_s >= end_s:
                yield _too_late(("workload", name, number, "at"), f"{name}[{number}]", at_s, end_s)


def _fault(here: tuple[str | int, ...], fault: FaultSpec, scenario: Scenario) -> Iterator[Problem]:
    if fault.at_s >= scenario.duration_s:
        yield _too_late((*here, "at"), "the fault", fault.at_s, scenario.duration_s)
    if isfinite(fault.until_s) and fault.until_s <= fault.at_s:
        until, at = format_duration(fault.until_s), format_duration(fault.at_s)
        yield Problem((*here, "until"), f"'until' ({until}) is not after 'at' ({at})")
    if fault.kind not in COMMON_FAULTS:
        yield from _microbatch_fault(here, fault, scenario)
    by_name = {spec.name: spec for spec in scenario.components}
    target = by_name.get(fault.component)
    if fault.kind in INSTANCE_FAULTS and isinstance(scenario.engine, MicrobatchSpec):
        yield from _executor_fault(here, fault, scenario.engine)
    elif fault.component and target is None:
        what = f"unknown component '{fault.component}'"
        yield Problem((*here, "component"), what, nearest(fault.component, list(by_name)))
    elif fault.kind in INSTANCE_FAULTS and target is None:
        yield Problem(here, f"a {fault.kind} fault needs 'component'", f"use one of {', '.join(by_name)}")
    elif fault.kind in INSTANCE_FAULTS and target is not None and fault.instance >= target.parallelism:
        yield _no_instance(here, fault, f"'{target.name}'", target.parallelism)
    elif fault.kind in KEYED_FAULTS and target is not None and not target.keyed:
        what = f"a {fault.kind} fault needs a keyed component, but '{target.name}' is not keyed"
        yield Problem((*here, "component"), what)
    elif fault.kind == "stuck-sink" and any(fault.component in spec.inputs for spec in scenario.components):
        yield Problem((*here, "component"), f"'{fault.component}' is not a sink: other components read from it")
    hosts = [f"host-{number}" for number in range(scenario.engine.hosts)]
    if (fault.kind == "slow-host" or fault.host) and fault.host not in hosts:
        yield Problem((*here, "host"), f"unknown host '{fault.host}'", f"use host-0 to {hosts[-1]}")


def _microbatch_fault(here: tuple[str | int, ...], fault: FaultSpec, scenario: Scenario) -> Iterator[Problem]:
    if isinstance(scenario.engine, DataflowSpec):
        yield Problem((*here, "kind"), f"a {fault.kind} fault has no effect with engine = 'dataflow'", "remove it")
    if fault.kind in WAITING_FAULTS and fault.task_s == fault.row_s == 0:
        yield Problem(
            here, f"a fault of kind '{fault.kind}' needs 'task' or 'row'", "set the time that each task or row waits"
        )
    if fault.kind == "stuck-task" and not isfinite(fault.until_s):
        yield Problem(here, "a stuck-task fault needs 'until'", "set the time at which the task continues")
    hit = [spec for spec in scenario.components if concerns(fault, spec)]
    if fault.kind in STATE_FAULTS and not any(spec.stateful and spec.kind == "operator" for spec in hit):
        yield Problem(here, f"a {fault.kind} fault needs a stateful component", "add stateful = true to an operator")
    elif fault.kind in SOURCE_FAULTS and fault.component and not any(spec.kind == "source" for spec in hit):
        yield Problem((*here, "component"), f"a {fault.kind} fault needs a source")


def _executor_fault(here: tuple[str | int, ...], fault: FaultSpec, engine: MicrobatchSpec) -> Iterator[Problem]:
    if fault.component:
        what = "with micro-batches this fault hits an executor, not a component"
        yield Problem((*here, "component"), what, "remove 'component'")
    elif fault.instance >= engine.executors:
        yield _no_instance(here, fault, "the application", engine.executors)


def _no_instance(here: tuple[str | int, ...], fault: FaultSpec, owner: str, count: int) -> Problem:
    what = f"{owner} has no instance {fault.instance}: it starts with {count}"
    return Problem((*here, "instance"), what, f"use 0 to {count - 1}")


def _too_late(path: tuple[str | int, ...], what: str, at_s: float, end_s: float) -> Problem:
    return Problem(path, f"{what} begins at {format_duration(at_s)}, but the run ends at {format_duration(end_s)}")
