"""The schema of the present: what a manager writes is what a viewer reads, and nothing else gets through."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.record_json import JSON
from homeostat.core.records import Record
from homeostat.store.in_memory import MemoryStore
from homeostat.store.present import (
    LONGEST_TEXT,
    MATRICES,
    PRESENT,
    Matrices,
    Present,
    PresentAction,
    PresentComponent,
    StandingFinding,
    TimeMatrix,
    load_matrices,
    load_present,
)

TEXTS = st.text(max_size=20)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
MAYBE = st.none() | NUMBERS
VALUES = st.dictionaries(TEXTS, NUMBERS, max_size=3)


def several(schema: type, **parts: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(st.builds(schema, **parts), max_size=3).map(tuple)


COMPONENTS = several(
    PresentComponent,
    name=st.text(min_size=1, max_size=20),
    kind=TEXTS,
    query=TEXTS,
    inputs=st.lists(TEXTS, max_size=2).map(tuple),
    rows_per_s=MAYBE,
    capacity_per_s=MAYBE,
    busy=MAYBE,
    pressured=MAYBE,
    pending_rows=MAYBE,
)
PRESENTS = st.builds(
    Present,
    at_s=MAYBE,
    policy=TEXTS,
    resolvers=st.lists(TEXTS, max_size=3).map(tuple),
    mode=TEXTS,
    paused=TEXTS,
    objective=VALUES,
    observed=VALUES,
    desired=VALUES,
    conditions=st.lists(TEXTS, max_size=3).map(tuple),
    symptoms=several(StandingFinding, id=TEXTS, what=TEXTS, component=TEXTS, since_s=NUMBERS),
    diagnoses=several(StandingFinding, id=TEXTS, what=TEXTS, component=TEXTS, since_s=NUMBERS),
    active=several(PresentAction, id=TEXTS, text=TEXTS, state=TEXTS),
    advised=several(PresentAction, id=TEXTS, text=TEXTS),
    components=COMPONENTS,
)
CELLS = st.lists(st.lists(MAYBE, max_size=3).map(tuple), max_size=3).map(tuple)
TIMES = st.builds(TimeMatrix, workers=st.lists(TEXTS, max_size=3).map(tuple), instances=st.integers(0, 99), cells=CELLS)


@given(PRESENTS)
def test_a_present_survives_the_round_trip(present: Present) -> None:
    assert Present.from_json(json.loads(json.dumps(present.to_json()))) == present


@given(st.dictionaries(TEXTS, TIMES, max_size=2))
def test_matrices_survive_the_round_trip(components: dict[str, TimeMatrix]) -> None:
    matrices = Matrices(components)
    assert Matrices.from_json(json.loads(json.dumps(matrices.to_json()))) == matrices


def test_unknown_keys_are_ignored_and_missing_ones_take_their_default() -> None:
    assert Present.from_json({"mode": "advise", "of a later version": [1]}) == Present(mode="advise")
    assert Present.from_json({}) == Present()


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ([1, 2], "Present is not a mapping"),
        ({"mode": 3}, "'3' is not a str"),
        ({"mode": "x" * (LONGEST_TEXT + 1)}, "is not a str"),
        ({"earned": True}, "'True' is not a int"),
        ({"at_s": float("nan")}, "a number is not finite"),
        ({"at_s": 10**400}, "a number is too large"),
        ({"objective": {"lag_s": None}}, "'None' is not a float"),
        ({"objective": [1]}, "is not a Mapping"),
        ({"resolvers": "scale-up"}, "'scale-up' is not a tuple"),
        ({"components": [{"name": ""}]}, "a component has no name"),
        ({"components": [{"kind": "source"}]}, "PresentComponent is incomplete"),
        ({"components": [3]}, "PresentComponent is not a mapping"),
        ({"symptoms": [{"id": "s-1"}]}, "StandingFinding is incomplete"),
    ],
)
def test_another_shape_is_refused_and_a_viewer_gets_an_empty_present(value: JSON, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Present.from_json(value)
    store = MemoryStore()
    store.append("run", [Record("s-1", "symptom", 1.0, "")])
    store.save_state("run", PRESENT, value)
    assert load_present(store, "run") == Present()


def test_matrices_of_another_shape_are_empty() -> None:
    store = MemoryStore()
    store.append("run", [Record("s-1", "symptom", 1.0, "")])
    assert load_matrices(store, "run") == Matrices()
    store.save_state("run", MATRICES, {"components": {"count": {"workers": [3]}}})
    assert load_matrices(store, "run") == Matrices()
