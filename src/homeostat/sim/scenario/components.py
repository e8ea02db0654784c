"""From the components of a scenario to a topology, with the checks that both engines share."""

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
    """The shape of these components; one that cannot be simulated is refused."""
    for spec in components:
        _check(spec)
    if not any(spec.kind == "source" for spec in components):
        raise ConfigError("there is no source", where="components", fix='give one component kind = "source"')
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
            )
            for spec in components
        )
    )


def _check(spec: ComponentSpec) -> None:
    def require(condition: bool, what: str, fix: str = "") -> None:
        if not condition:
            raise ConfigError(what, where=f"component {spec.name!r}", fix=fix)

    require(bool(spec.name), "a component has no name")
    require(spec.kind in ("source", "operator"), f"kind = {spec.kind!r} does not exist", "use source or operator")
    if spec.kind == "source":
        require(not spec.inputs, "a source has no inputs", "remove inputs, or make it an operator")
    else:
        require(bool(spec.inputs), "an operator needs inputs", "name the components it reads from")
    positive = isfinite(spec.rate_per_s) and spec.rate_per_s > 0
    require(positive, f"rate_per_s = {spec.rate_per_s:g} is not above 0")
    for name in ("selectivity", "zipf", "task_s", "key_s", "queue_s"):
        value: float = getattr(spec, name)
        require(isfinite(value) and value >= 0, f"{name} = {value:g} is not a number of at least 0")
    for name in ("combining", "crowding"):
        value = getattr(spec, name)
        require(0 <= value <= 1, f"{name} = {value:g} is not between 0 and 1")
    require(spec.turn_s > 0, f"turn_s = {spec.turn_s:g} is not above 0")
    require(spec.keys >= 1, f"keys = {spec.keys} is below 1")
    require(spec.minimum >= 1, f"minimum = {spec.minimum} is below 1")
    within = spec.minimum <= spec.parallelism <= spec.maximum
    require(
        within,
        f"parallelism = {spec.parallelism} is outside its bounds {spec.minimum} to {spec.maximum}",
        "change parallelism, minimum or maximum",
    )
