"""The part of the loop's state that survives a restart."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.loop_state import State
from homeostat.core.memory import ActionKey, Context, MemoryEntry
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
    again = restore_state(State(), load(dump(state_json(state))))
    assert again == replace(State(), memory=state.memory, earned=earned, paused=paused, numbers=counted)


def test_a_load_that_was_unknown_stays_unknown() -> None:
    entry = MemoryEntry(ActionKey("a", "b", "c"), "failed", 1.0, Context(math.nan))
    (kept,) = restore_state(State(), load(dump(state_json(State(memory=(entry,)))))).memory
    assert math.isnan(kept.context.arrival_per_s)


@pytest.mark.parametrize("value", [None, [], "", 3])
def test_a_state_that_is_none_is_a_fresh_start(value: object) -> None:
    assert restore_state(State(), value) == State()  # type: ignore[arg-type]
