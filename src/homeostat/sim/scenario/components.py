"""The topology of a scenario's components, with the checks that both engines share."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from homeostat.core.configuration import SPREAD, Knob
from homeostat.core.errors import ConfigError
from homeostat.core.topology import Component, Topology
from homeostat.sim.scenario.spec import ComponentSpec


def topology(
    components: tuple[ComponentSpec, ...],
    scaled_by: Callable[[ComponentSpec], Knob],
    partitions: Callable[[ComponentSpec], Knob | None] = lambda _: None,
) -> Topology:
    """The topology of the components. Raises ConfigError if they cannot be simulated."""
    for spec in components:
        _check(spec)
    if not any(spec.kind == "source" for spec in components):
        raise ConfigError("no component is a source", where="components", fix='set kind = "source" for one component')
    return Topology(
        tuple(
            Component(
                spec.name,
                spec.kind,
                scaled_by(spec),
                spec.inputs,
                keyed=spec.keyed,
                partitions=partitions(spec),
                spread=Knob(SPREAD, spec.name) if spec.keyed else None,
                joins=joins_inputs(spec),
            )
            for spec in components
        )
    )


def joins_inputs(spec: ComponentSpec) -> bool:
    """Whether a component brings the rows of a key together from several inputs."""
    return spec.keyed and len(spec.inputs) > 1


def _check(spec: ComponentSpec) -> None:
    def require(condition: bool, what: str, fix: str = "") -> None:
        if not condition:
            raise ConfigError(what, where=f"component {spec.name!r}", fix=fix)

    require(bool(spec.name), "a component has no name")
    require(spec.kind in ("source", "operator"), f"unknown kind {spec.kind!r}", "use source or operator")
    if spec.kind == "source":
        require(not spec.inputs, "a source cannot have inputs", "remove inputs, or make it an operator")
    else:
        require(bool(spec.inputs), "an operator needs inputs", "name the components it reads from")
    positive = isfinite(spec.rate_per_s) and spec.rate_per_s > 0
    require(positive, f"rate_per_s must be above 0, not {spec.rate_per_s:g}")
    for name in ("selectivity", "zipf", "task_s", "key_s", "queue_s"):
        value: float = getattr(spec, name)
        require(isfinite(value) and value >= 0, f"{name} must be 0 or more, not {value:g}")
    for name in ("combining", "crowding"):
        value = getattr(spec, name)
        require(0 <= value <= 1, f"{name} must be between 0 and 1, not {value:g}")
    require(spec.turn_s > 0, f"turn_s must be above 0, not {spec.turn_s:g}")
    require(spec.keys >= 1, f"keys must be 1 or more, not {spec.keys}")
    require(spec.minimum >= 1, f"minimum must be 1 or more, not {spec.minimum}")
    within = spec.minimum <= spec.parallelism <= spec.maximum
    require(
        within,
        f"parallelism must be between {spec.minimum} and {spec.maximum}, not {spec.parallelism}",
        "change parallelism, minimum or maximum",
    )
