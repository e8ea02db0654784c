"""The shape of an application: its components and how rows flow between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from homeostat.core.configuration import Knob
from homeostat.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Component:
    """A stage of a query. `scaled_by` is the knob that gives it more capacity.

    If that is a knob of the whole application (executors), `partitions` sets how many tasks the stage has. `spread` is
    the knob that sends the rows of one key to several instances. Without one, `unspread` says why. `watched` is the
    name under which its keys are reported, if any. `joins` says that it brings the rows of a key of several inputs
    together.
    """

    name: str
    kind: Literal["source", "operator"]
    scaled_by: Knob
    inputs: tuple[str, ...] = ()
    query: str = "main"
    keyed: bool = False
    partitions: Knob | None = None
    spread: Knob | None = None
    unspread: str = ""
    watched: str = ""
    joins: bool = False


@dataclass(frozen=True)
class Topology:
    """Components in topological order, sources first. `plan` names the version of the query plan."""

    components: tuple[Component, ...]
    plan: str = ""

    def __post_init__(self) -> None:
        earlier_names: set[str] = set()
        for component in self.components:
            for name in component.inputs:
                if name not in earlier_names:
                    raise ConfigError(
                        f"component {component.name!r} reads {name!r}, which no earlier component provides",
                        fix="list components from the sources to the sinks, without a cycle",
                    )
            if component.name in earlier_names:
                raise ConfigError(f"component {component.name!r} is defined twice")
            earlier_names.add(component.name)

    def __iter__(self) -> Iterator[Component]:
        return iter(self.components)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Component:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Component]:
        return {component.name: component for component in self.components}

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(component.name for component in self.components)

    @cached_property
    def sources(self) -> tuple[Component, ...]:
        return tuple(c for c in self.components if c.kind == "source")

    @cached_property
    def operators(self) -> tuple[Component, ...]:
        return tuple(c for c in self.components if c.kind == "operator")

    @cached_property
    def depth(self) -> dict[str, int]:
        """The longest distance from a source; it is largest for the most downstream component."""
        depth: dict[str, int] = {}
        for component in self.components:
            depth[component.name] = 1 + max((depth[name] for name in component.inputs), default=-1)
        return depth

    def downstream(self, name: str) -> tuple[Component, ...]:
        return tuple(c for c in self.components if name in c.inputs)
