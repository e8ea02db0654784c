"""The topology of a micro-batch scenario, its knobs and their first values."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from homeostat.core.configuration import (
    ASYNC_PROGRESS,
    CHANGELOG_CHECKPOINTING,
    EXECUTORS_KNOB,
    PARALLELISM,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    SPREAD,
    STATE_PARTITIONS,
    TRIGGER_S,
    Capabilities,
    Knob,
    KnobSpec,
    Value,
)
from homeostat.core.errors import ConfigError
from homeostat.core.topology import Topology
from homeostat.sim.scenario.components import topology
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Scenario

STATE_KNOB = Knob(STATE_PARTITIONS, "main")
ROWS_KNOB = Knob(ROWS_PER_TRIGGER, "main")
TRIGGER_KNOB = Knob(TRIGGER_S, "main")
CHANGELOG_KNOB = Knob(CHANGELOG_CHECKPOINTING, "main")
ASYNC_KNOB = Knob(ASYNC_PROGRESS, "main")
# Bounds of what a policy may set. Both are beyond what any scenario needs.
LONGEST_TRIGGER_S = 3600
MOST_ROWS = 10**12


@dataclass(frozen=True, slots=True)
class Layout:
    """`values` holds all knobs but the executors, which the engine counts."""

    topology: Topology
    capabilities: Capabilities
    values: dict[Knob, Value]


def has_state(component: ComponentSpec) -> bool:
    return component.stateful and component.kind == "operator"


def partitions_knob(component: ComponentSpec) -> Knob:
    """The knob that sets how many tasks the component has."""
    if component.kind == "source":
        return Knob(SOURCE_PARTITIONS, component.name)
    return STATE_KNOB if has_state(component) else Knob(PARALLELISM, component.name)


def layout(scenario: Scenario, engine: MicrobatchSpec) -> Layout:
    shape = topology(scenario.components, scaled_by=lambda _: EXECUTORS_KNOB, partitions=partitions_knob)
    _check(scenario, engine)
    restart_s, live = engine.restart_s, engine.live_limits
    limits_s = 0.0 if live else restart_s
    values: dict[Knob, Value] = {TRIGGER_KNOB: engine.trigger_s}
    knobs = {
        EXECUTORS_KNOB: KnobSpec(1, engine.max_executors, apply_s=engine.executor_start_s, cost=1.0),
        TRIGGER_KNOB: KnobSpec(0, max(LONGEST_TRIGGER_S, engine.trigger_s), live=live, apply_s=limits_s),
    }
    if isfinite(engine.rows_per_trigger):
        values[ROWS_KNOB] = int(engine.rows_per_trigger)
        knobs[ROWS_KNOB] = KnobSpec(1, MOST_ROWS, live=live, apply_s=limits_s)
    for component in scenario.components:
        knob, spec = partitions_knob(component), knobs.get(partitions_knob(component))
        values[knob] = component.parallelism
        knobs[knob] = KnobSpec(
            max(component.minimum, spec.minimum if spec else 1),
            min(component.maximum, spec.maximum if spec else component.maximum),
            live=False,
            apply_s=restart_s,
        )
        if component.keyed:
            values[Knob(SPREAD, component.name)] = 1
            knobs[Knob(SPREAD, component.name)] = KnobSpec(1, component.maximum)
    for knob in _switches(scenario, engine):
        values[knob], knobs[knob] = 0, KnobSpec(0, 1, live=False, apply_s=restart_s)
    notes = {} if ROWS_KNOB in knobs else {str(ROWS_KNOB): "the source has no limit on rows per trigger"}
    replace_s = engine.executor_start_s + engine.trigger_s
    return Layout(shape, Capabilities(knobs, can_replace=True, replace_s=replace_s, notes=notes), values)


def _switches(scenario: Scenario, engine: MicrobatchSpec) -> list[Knob]:
    """As in Spark, changelogs need state, and progress is tracked asynchronously only without state."""
    keeps_state = any(has_state(component) for component in scenario.components)
    if keeps_state:
        return [CHANGELOG_KNOB] if engine.changelog_commit is not None else []
    return [ASYNC_KNOB] if engine.async_progress else []


def _check(scenario: Scenario, engine: MicrobatchSpec) -> None:
    _check_engine(engine)
    state = {c.parallelism for c in scenario.components if has_state(c)}
    if len(state) > 1:
        raise ConfigError(
            f"stateful components have different parallelism ({', '.join(map(str, sorted(state)))})",
            where="components",
            fix="use one number for all: a query has a single number of state partitions",
        )
    for fault in scenario.faults:
        if fault.kind in ("slow-instance", "crash") and fault.component not in ("", "app"):
            raise ConfigError(
                f"with micro-batches this fault hits an executor, not the component {fault.component!r}",
                where=f"fault {fault.kind}",
                fix='leave component out or set it to "app"',
            )


def _check_engine(engine: MicrobatchSpec) -> None:
    def require(condition: bool, what: str, fix: str = "") -> None:
        if not condition:
            raise ConfigError(what, where="engine", fix=fix)

    for name in (
        "trigger_s",
        "executor_start_s",
        "locality_wait_s",
        "driver_s",
        "dispatch_s",
        "commit_s",
        "restart_s",
        "combine_overhead",
    ):
        value: float = getattr(engine, name)
        require(isfinite(value) and value >= 0, f"{name} must be 0 or more, not {value:g}")
    for name in ("slots", "hosts", "rows_per_trigger"):
        require(getattr(engine, name) >= 1, f"{name} must be 1 or more, not {getattr(engine, name):g}")
    for name in ("warm_up", "straggler_factor"):
        value = getattr(engine, name)
        require(isfinite(value) and value > 0, f"{name} must be above 0, not {value:g}")
    require(engine.run_sigma >= 0, f"run_sigma must be 0 or more, not {engine.run_sigma:g}")
    share = engine.straggler_share
    require(0 <= share <= 1, f"straggler_share must be between 0 and 1, not {share:g}")
    most = min(engine.max_executors, engine.grant_limit)
    require(
        1 <= engine.executors <= most,
        f"executors must be between 1 and {most}, not {engine.executors}",
        "raise max_executors and grant_limit, or start with fewer",
    )
