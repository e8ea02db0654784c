"""A manager's view of the present as it was left in the log: what has not its shape is not shown."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from homeostat.core.errors import StoreError
from homeostat.runtime.present import MATRICES, PRESENT
from homeostat.store.protocol import Store

Text = Annotated[str, Field(max_length=2_000)]
Number = Annotated[float, Field(allow_inf_nan=False)]
_Shape = TypeVar("_Shape", bound=BaseModel)


class _Shown(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Standing(_Shown):
    id: Text
    what: Text
    component: Text = ""
    since_s: Number = 0.0


class Action(_Shown):
    id: Text
    text: Text
    state: Text = ""


class Node(_Shown):
    name: Annotated[str, Field(min_length=1, max_length=2_000)]
    kind: Text = ""
    query: Text = ""
    inputs: list[Text] = []
    instances: int = 0
    rows_per_s: Number | None = None
    capacity_per_s: Number | None = None
    busy: Number | None = None
    pressured: Number | None = None
    pending_rows: Number | None = None


class Matrix(_Shown):
    workers: list[Text]
    instances: int
    cells: list[list[Number | None]]


class Matrices(_Shown):
    components: dict[Text, Matrix] = {}


class Present(_Shown):
    at_s: Number | None = None
    policy: Text = ""
    resolvers: list[Text] = []
    mode: Text = ""
    earned: int = 0
    paused: Text = ""
    objective: dict[Text, Number] = {}
    observed: dict[Text, Number] = {}
    desired: dict[Text, Number] = {}
    conditions: list[Text] = []
    symptoms: list[Standing] = []
    diagnoses: list[Standing] = []
    active: list[Action] = []
    advised: list[Action] = []
    components: list[Node] = []


def present(store: Store, run: str) -> Present:
    return _loaded(store, run, PRESENT, Present)


def matrices(store: Store, run: str) -> Matrices:
    return _loaded(store, run, MATRICES, Matrices)


def _loaded(store: Store, run: str, key: str, shape: type[_Shape]) -> _Shape:
    try:
        return shape.model_validate(store.load_state(run, key) or {})
    except (StoreError, ValidationError):
        return shape()
