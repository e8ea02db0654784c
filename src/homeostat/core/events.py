"""The input of a step (events) and its output (commands)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from homeostat.core.configuration import Capabilities, Configuration, Knob, Step, Value
from homeostat.core.observation import Observation
from homeostat.core.source_sample import SourceSample
from homeostat.core.topology import Topology


@dataclass(frozen=True, slots=True)
class Observed:
    """A batch or interval was measured."""

    observation: Observation


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A batch that began at `since_s` and has not ended, with its progress so far."""

    run: str
    batch: int
    since_s: float
    at_s: float
    component: str = ""
    tasks_done: int = 0
    tasks: int = 0
    pending_rows: float = float("nan")


@dataclass(frozen=True, slots=True)
class SourceSeen:
    """A source reported how many rows wait there, or did not answer."""

    sample: SourceSample


@dataclass(frozen=True, slots=True)
class Receipt:
    """The effect of a command was observed, or its time limit passed without one.

    `configuration` is what the engine runs now, in either case. `warning` is a note for people even though the command
    took effect.
    """

    command_id: str
    at_s: float
    configuration: Configuration
    applied: bool = True
    detail: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A part of Homeostat failed, such as a sensor. The failure is logged and the loop goes on.

    A `harmless` one is only a note: the part did its work, but people should know about it. With `alert`, a person gets
    an alert as well.
    """

    where: str
    error: str
    at_s: float
    harmless: bool = False
    alert: bool = False


@dataclass(frozen=True, slots=True)
class EngineChanged:
    """The engine started, or changed without a command of the loop."""

    topology: Topology
    configuration: Configuration
    capabilities: Capabilities
    at_s: float
    reason: str = "start"


OperatorCommand = Literal["pause", "resume", "approve", "revert", "apply", "resolve"]


@dataclass(frozen=True, slots=True)
class Operator:
    """A command by a person, logged with who and why.

    `target` names the advice, the action or the resolver, `values` the knobs to apply, and `order` the record in which
    the command arrived.
    """

    command: OperatorCommand
    by: str
    why: str = ""
    target: str = ""
    values: Mapping[Knob, Value] = field(default_factory=dict)
    order: str = ""


Event = Observed | UnderWay | SourceSeen | Receipt | Failure | EngineChanged | Operator


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
