"""Knobs, configurations, patches, and the steps from one configuration to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

Value = int | float

PARALLELISM = "parallelism"
EXECUTORS = "executors"
STATE_PARTITIONS = "state_partitions"
SOURCE_PARTITIONS = "source_partitions"
ROWS_PER_TRIGGER = "rows_per_trigger"
TRIGGER_S = "trigger_s"
SPREAD = "spread"
# These are on (1) or off (0). A restart of the query switches them.
CHANGELOG_CHECKPOINTING = "changelog_checkpointing"
ASYNC_PROGRESS = "async_progress"
SWITCHES = (CHANGELOG_CHECKPOINTING, ASYNC_PROGRESS)
# A batch may take this many times the rows that the objective needs. More leaves more room to catch up; less keeps
# batches short. A choice.
ADMISSION_ROOM = 2.0
KNOB_KINDS = (
    PARALLELISM,
    EXECUTORS,
    STATE_PARTITIONS,
    SOURCE_PARTITIONS,
    ROWS_PER_TRIGGER,
    TRIGGER_S,
    SPREAD,
    *SWITCHES,
)


class Knob(NamedTuple):
    """One thing that can be set: `parallelism.count`, `executors.app`.

    On Spark the scope of a knob is a query, or `query/step` for one step of it.
    """

    kind: str
    scope: str

    @classmethod
    def of_step(cls, kind: str, query: str, step: str) -> Knob:
        return cls(kind, f"{query}/{step}")

    @property
    def query(self) -> str:
        return self.scope.partition("/")[0]

    @property
    def step(self) -> str:
        """Empty if the knob is about the whole query."""
        return self.scope.partition("/")[2]

    def __str__(self) -> str:
        return f"{self.kind}.{self.scope}"

    @classmethod
    def parse(cls, text: str) -> Knob:
        kind, _, scope = text.partition(".")
        return cls(kind, scope)


EXECUTORS_KNOB = Knob(EXECUTORS, "app")


def _frozen(values: Mapping[Knob, Value]) -> Mapping[Knob, Value]:
    return MappingProxyType(dict(values))


@dataclass(frozen=True, slots=True)
class Patch:
    """Desired values, never deltas, so that applying one twice is harmless.

    `retire` names workers to remove; new workers take over their work.
    """

    values: Mapping[Knob, Value] = field(default_factory=dict)
    retire: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _frozen(self.values))

    def __bool__(self) -> bool:
        return bool(self.values) or bool(self.retire)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The value of every knob, and the workers that have been retired."""

    values: Mapping[Knob, Value] = field(default_factory=dict)
    retired: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _frozen(self.values))

    def __getitem__(self, knob: Knob) -> Value:
        return self.values[knob]

    def get(self, knob: Knob, default: Value) -> Value:
        """Return the value of a knob, or the default that the caller gives if there is no such knob."""
        return self.values.get(knob, default)

    def patched(self, patch: Patch) -> Configuration:
        return Configuration({**self.values, **patch.values}, self.retired | patch.retire)

    def effective_part(self, patch: Patch) -> Patch:
        """The part of the patch that would change something."""
        values = {knob: value for knob, value in patch.values.items() if self.values.get(knob) != value}
        return Patch(values, patch.retire - self.retired)

    def as_json(self) -> dict[str, Value]:
        return {str(knob): value for knob, value in sorted(self.values.items())}

    @classmethod
    def from_json(cls, values: Mapping[str, Value], retired: Iterable[str] = ()) -> Configuration:
        return cls({Knob.parse(name): value for name, value in values.items()}, frozenset(retired))


@dataclass(frozen=True, slots=True)
class KnobSpec:
    """What this engine can do with a knob. `cost` is what one unit costs, counted in instances.

    `promise` is the trigger interval that the user chose, or the longest one that the user allows. Only a latency
    objective allows a longer one.
    """

    minimum: Value = 1
    # Where nothing else limits a knob: above any real setting, but a wrong plan still has a bound. A choice.
    maximum: Value = 1_000_000
    live: bool = True
    apply_s: float = 0.0
    cost: float = 0.0
    promise: Value | None = None

    def clip(self, value: Value) -> Value:
        return min(max(value, self.minimum), self.maximum)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the engine can do here; `notes` holds the reason for everything it cannot.

    If `replays` is False, sources drop rows that are not read at once, so that there is no backlog after a pause.
    """

    knobs: Mapping[Knob, KnobSpec] = field(default_factory=dict)
    can_replace: bool = False
    replace_s: float = 0.0
    notes: Mapping[str, str] = field(default_factory=dict)
    replays: bool = True

    def refusal(self, desired: Configuration) -> str:
        """Why this configuration cannot run; empty if it can. Knobs that the engine does not have are ignored."""
        for knob, value in sorted(desired.values.items()):
            spec = self.knobs.get(knob)
            if spec is None:
                continue
            if not spec.minimum <= value <= spec.maximum:
                return f"{knob} = {value:g} is outside its bounds {spec.minimum:g} to {spec.maximum:g}"
            if knob.kind != TRIGGER_S and value != int(value):
                return f"{knob} = {value:g} is not a whole number"
        return ""

    def cost(self, configuration: Configuration) -> float:
        """Instances paid for."""
        return sum(spec.cost * configuration.get(knob, 0) for knob, spec in self.knobs.items())


@dataclass(frozen=True, slots=True)
class SetLive:
    """Change knobs without a pause."""

    values: Mapping[Knob, Value]


@dataclass(frozen=True, slots=True)
class Replace:
    """Drain these workers and start new ones in their place."""

    workers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Restart:
    """Stop, change all of these at once, start again."""

    values: Mapping[Knob, Value]


Step = SetLive | Replace | Restart


def diff(observed: Configuration, desired: Configuration, capabilities: Capabilities) -> tuple[Step, ...]:
    """The steps from one configuration to another: live ones first, all restarts merged into one.

    A knob that the engine does not have is left out.
    """
    live: dict[Knob, Value] = {}
    restart: dict[Knob, Value] = {}
    for knob, value in sorted(desired.values.items()):
        spec = capabilities.knobs.get(knob)
        if spec is not None and observed.values.get(knob) != value:
            (live if spec.live else restart)[knob] = value
    steps: list[Step] = []
    if live:
        steps.append(SetLive(live))
    leaving = desired.retired - observed.retired
    if leaving and capabilities.can_replace:
        steps.append(Replace(leaving))
    if restart:
        steps.append(Restart(restart))
    return tuple(steps)
