"""The present state of a run: the manager writes it into the log's state, and viewers in other processes read it.

Anybody who can write the log's file can write anything there. `from_json` raises ValueError for a value of another
shape; `load_present` and `load_matrices` return an empty value instead.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from homeostat.core.errors import StoreError
from homeostat.core.record_json import JSON
from homeostat.store.protocol import Store

PRESENT = "present"
MATRICES = "matrices"
LONGEST_TEXT = 2_000
_Schema = TypeVar("_Schema")


@dataclass(frozen=True, slots=True)
class StandingFinding:
    """A symptom or a diagnosis that holds now. `what` is the kind of the symptom or the cause of the diagnosis."""

    id: str
    what: str
    component: str = ""
    since_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PresentAction:
    """An action that is under way or being judged, or advice that waits for approval. `state` is empty for advice."""

    id: str
    text: str
    state: str = ""


@dataclass(frozen=True, slots=True)
class PresentComponent:
    """A component with its newest load; None where the engine does not measure it."""

    name: str
    kind: str = ""
    query: str = ""
    inputs: tuple[str, ...] = ()
    instances: int = 0
    rows_per_s: float | None = None
    capacity_per_s: float | None = None
    busy: float | None = None
    pressured: float | None = None
    pending_rows: float | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a component has no name")


@dataclass(frozen=True, slots=True)
class TimeMatrix:
    """Run time of each instance (column) on each worker (row), relative to the stage's median; None if it never ran
    there. There are fewer columns than `instances` where instances are grouped."""

    workers: tuple[str, ...]
    instances: int
    cells: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Matrices:
    """One matrix for each component. Kept apart from `Present` because it is large and only one page shows it."""

    components: Mapping[str, TimeMatrix] = field(default_factory=dict)

    def to_json(self) -> JSON:
        return _encode(self)

    @classmethod
    def from_json(cls, value: JSON) -> Matrices:
        return _decode(cls, value)


@dataclass(frozen=True, slots=True)
class Present:
    """The current observations, goals and actions of the loop. `conditions` are the reasons that blocked actions in the
    last cycle; `paused` is empty unless a person paused regulation; `objective`, `observed` and `desired` leave out
    what is not set.
    """

    at_s: float | None = None
    policy: str = ""
    resolvers: tuple[str, ...] = ()
    mode: str = ""
    earned: int = 0
    paused: str = ""
    objective: Mapping[str, float] = field(default_factory=dict)
    observed: Mapping[str, float] = field(default_factory=dict)
    desired: Mapping[str, float] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    symptoms: tuple[StandingFinding, ...] = ()
    diagnoses: tuple[StandingFinding, ...] = ()
    active: tuple[PresentAction, ...] = ()
    advised: tuple[PresentAction, ...] = ()
    components: tuple[PresentComponent, ...] = ()

    def to_json(self) -> JSON:
        return _encode(self)

    @classmethod
    def from_json(cls, value: JSON) -> Present:
        return _decode(cls, value)


def load_present(store: Store, run: str) -> Present:
    try:
        return Present.from_json(store.load_state(run, PRESENT) or {})
    except (StoreError, ValueError):
        return Present()


def load_matrices(store: Store, run: str) -> Matrices:
    try:
        return Matrices.from_json(store.load_state(run, MATRICES) or {})
    except (StoreError, ValueError):
        return Matrices()


def _encode(value: Any) -> JSON:
    """Like `dataclasses.asdict`, which also copies every number of the matrices, and is several times slower."""
    if is_dataclass(value):
        return {each.name: _encode(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: _encode(each) for name, each in value.items()}
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        return [_encode(each) for each in value]
    return cast(JSON, value)


@cache
def _types(schema: Any) -> Mapping[str, Any]:
    return get_type_hints(schema)


def _decode(schema: type[_Schema], value: JSON) -> _Schema:
    """Unknown keys are ignored, missing ones take their default."""
    if not isinstance(value, dict):
        raise ValueError(f"{schema.__name__} is not a mapping")
    hints = _types(cast(Any, schema))
    names = [each.name for each in fields(cast(Any, schema)) if each.name in value]
    try:
        return schema(**{name: _field(hints[name], value[name]) for name in names})
    except TypeError as error:
        raise ValueError(f"{schema.__name__} is incomplete: {error}") from None


def _field(hint: Any, value: JSON) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        return None if value is None else _field(parts[0], value)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_field(parts[0], each) for each in value)
    if origin is Mapping and isinstance(value, dict):
        return {_field(str, name): _field(parts[1], each) for name, each in value.items()}
    if is_dataclass(hint):
        return _decode(cast(type, hint), value)
    if hint is str and isinstance(value, str) and len(value) <= LONGEST_TEXT:
        return value
    if hint in (int, float) and isinstance(value, int | float) and not isinstance(value, bool):
        return _number(hint, value)
    raise ValueError(f"{str(value)[:40]!r} is not a {getattr(hint, '__name__', hint)}")


def _number(kind: type[int] | type[float], value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("a number is too large") from None
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return kind(value)
