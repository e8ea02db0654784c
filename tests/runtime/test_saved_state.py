"""The part of the loop's state that survives a restart."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.calibration import JudgedCause
from homeostat.core.loop_state import State
from homeostat.core.memory import ActionKey, Context, MemoryEntry
from homeostat.core.trust import Trust
from homeostat.runtime.saved_state import restore_state, state_json
from homeostat.store.codec import dump, load

numbers = st.floats(allow_nan=False) | st.just(math.inf)


contexts = st.builds(
    Context,
    arrival_per_s=st.floats(0.0, 1e9),
    values=st.dictionaries(st.text(max_size=5), st.integers(0, 9) | numbers, max_size=3),
    plan=st.text(max_size=3),
    hosts=st.frozensets(st.text(max_size=3), max_size=3),
)
entries = st.builds(
    MemoryEntry,
    key=st.builds(ActionKey, st.text(max_size=3), st.text(max_size=3), st.text(max_size=3)),
    verdict=st.sampled_from(["helped", "failed", "harmful", "shrunk"]),
    at_s=st.floats(0.0, 1e9),
    context=contexts,
    values_before=st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=3),
    hosts_before=st.frozensets(st.text(max_size=3), max_size=3),
)


counters = st.dictionaries(st.text("abc", min_size=1), st.integers(0, 99))


@pytest.mark.slow
@given(st.lists(entries, max_size=4), st.integers(0, 9), st.text(max_size=5), counters)
def test_what_is_remembered_survives_being_written_down(
    memory: list[MemoryEntry], earned: int, paused: str, counted: dict[str, int]
) -> None:
    state = State(memory=tuple(memory), earned=earned, paused=paused, numbers=counted)
    again = restore_state(State(), load(dump(state_json(state)))).state
    assert again == replace(State(), memory=state.memory, earned=earned, paused=paused, numbers=counted)


def test_a_load_that_was_unknown_stays_unknown() -> None:
    entry = MemoryEntry(ActionKey("a", "b", "c"), "failed", 1.0, Context(math.nan))
    (kept,) = restore_state(State(), load(dump(state_json(State(memory=(entry,)))))).state.memory
    assert math.isnan(kept.context.arrival_per_s)


@pytest.mark.parametrize("value", [None, [], "", 3])
def test_a_state_that_is_none_is_a_fresh_start(value: object) -> None:
    assert restore_state(State(), value).state == State()  # type: ignore[arg-type]


ENTRY = MemoryEntry(ActionKey("a", "b", "c"), "failed", 1.0, Context(5.0))
STATE = State(
    memory=(ENTRY, ENTRY),
    earned=2,
    paused="by Ada",
    numbers={"a": 3},
    trust={"count": Trust(0.1, 2, 0.3)},
    judged={"cause": (JudgedCause(0.9, True),)},
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("numbers", [1]),
        ("numbers", {"a": "three"}),
        ("numbers", {"a": -1}),
        ("numbers", {"a": math.inf}),
        ("earned", "two"),
        ("earned", None),
        ("paused", 5),
        ("memory", {"a": 1}),
        ("trust", [1]),
        ("judged", [1]),
    ],
)
def test_a_malformed_field_is_left_out_and_the_others_are_not(field: str, value: object) -> None:
    state, problems, lost = restore_state(State(), {**state_json(STATE), field: value})  # type: ignore[dict-item]
    assert lost == {field}
    assert len(problems) == 1
    assert problems[0].startswith(field)
    assert state == replace(STATE, **{field: getattr(State(), field)})


@pytest.mark.parametrize(
    "broken",
    [
        5,
        {},
        {"key": ["a", "b"]},
        {"verdict": "splendid"},
        {"at_s": "noon"},
        {"values": [1]},
        {"hosts": "h"},
        {"arrival_per_s": "many"},
    ],
)
def test_a_malformed_entry_is_left_out_and_the_others_are_not(broken: Any) -> None:
    saved = state_json(STATE)
    assert isinstance(saved, dict)
    assert isinstance(saved["memory"], list)
    entry = saved["memory"][0]
    assert isinstance(entry, dict)
    saved["memory"][0] = {**entry, **broken} if broken and isinstance(broken, dict) else broken
    saved["trust"] = {"count": [0.1, 2, 0.3], "other": ["x", 2], "third": [1]}
    saved["judged"] = {"cause": [[0.9, True]], "other": [[1.5, True]], "third": [[0.5]]}
    state, problems, lost = restore_state(State(), saved)
    assert (state, lost) == (replace(STATE, memory=(ENTRY,)), frozenset())
    assert [problem.split(" (")[0] for problem in problems] == [
        "memory, entry 1",
        "trust, other",
        "trust, third",
        "judged, other",
        "judged, third",
    ]
