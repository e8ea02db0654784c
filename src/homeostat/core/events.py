"""What goes into a step (events) and what comes out of it (commands)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from homeostat.core.configuration import Capabilities, Configuration, Knob, Step, Value
from homeostat.core.observation import Observation
from homeostat.core.topology import Topology


@dataclass(frozen=True, slots=True)
class Observed:
    """A batch or interval was measured."""

    observation: Observation


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A batch that runs since `since_s` and has not ended: what is seen of it meanwhile."""

    run: str
    batch: int
    since_s: float
    at_s: float
    component: str = ""
    tasks_done: int = 0
    tasks: int = 0
    pending_rows: float = float("nan")


@dataclass(frozen=True, slots=True)
class Receipt:
    """The effect of a command was observed, or its time limit passed without one.

    `configuration` is what the engine runs now, whichever of the two it was. `warning` is what a person should know
    although it took effect.
    """

    command_id: str
    at_s: float
    configuration: Configuration
    applied: bool = True
    detail: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something of ours failed (a sensor, say); it is logged and the loop goes on."""

    where: str
    error: str
    at_s: float


@dataclass(frozen=True, slots=True)
class EngineChanged:
    """What the engine is and runs, at the start and whenever it changes without our doing."""

    topology: Topology
    configuration: Configuration
    capabilities: Capabilities
    at_s: float
    reason: str = "start"


OperatorCommand = Literal["pause", "resume", "approve", "revert", "apply", "resolve"]


@dataclass(frozen=True, slots=True)
class Operator:
    """A person's word: it is logged with who and why. `target` names an advice, an action or a resolver, `values` the
    knobs to apply, `order` the record that the word came in."""

    command: OperatorCommand
    by: str
    why: str = ""
    target: str = ""
    values: Mapping[Knob, Value] = field(default_factory=dict)
    order: str = ""


Event = Observed | UnderWay | Receipt | Failure | EngineChanged | Operator


@dataclass(frozen=True, slots=True)
class Apply:
    """Bring the engine to `desired`, by these steps, within the time limit. Repeating it is harmless."""

    id: str
    at_s: float
    desired: Configuration
    steps: tuple[Step, ...]
    time_limit_s: float
    because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notify:
    """Tell a person."""

    id: str
    at_s: float
    title: str
    component: str
    message: str
    because: tuple[str, ...] = field(default=())


Command = Apply | Notify
