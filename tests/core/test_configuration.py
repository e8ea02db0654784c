"""Desired values, the steps between two configurations, and what they cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.configuration import (
    EXECUTORS,
    EXECUTORS_KNOB,
    KNOB_KINDS,
    PARALLELISM,
    TRIGGER_S,
    Capabilities,
    Configuration,
    Knob,
    KnobSpec,
    Patch,
    Replace,
    Restart,
    SetLive,
    Value,
    diff,
)

KNOBS = [Knob(kind, scope) for kind in KNOB_KINDS for scope in ("a", "b.c")]
values = st.dictionaries(st.sampled_from(KNOBS), st.integers(1, 9))
workers = st.frozensets(st.sampled_from(["w-1", "w-2", "w-3"]))
configurations = st.builds(Configuration, values, workers)
patches = st.builds(Patch, values, workers)


@pytest.mark.slow
@given(configurations, patches)
def test_a_patch_applied_twice_is_a_patch_applied_once(before: Configuration, patch: Patch) -> None:
    after = before.patched(patch)
    assert after.patched(patch) == after
    assert not after.effective_part(patch)
    assert before.patched(before.effective_part(patch)) == after


@given(configurations)
def test_a_configuration_survives_being_written_down(configuration: Configuration) -> None:
    assert Configuration.from_json(configuration.as_json(), configuration.retired) == configuration


@pytest.mark.slow
@given(configurations, configurations, st.sets(st.sampled_from(KNOBS)), st.sets(st.sampled_from(KNOBS)))
def test_the_steps_lead_from_what_runs_to_what_is_wanted_as_far_as_the_engine_can(
    observed: Configuration, desired: Configuration, live: set[Knob], slow: set[Knob]
) -> None:
    knobs = {knob: KnobSpec(live=knob in live) for knob in live | slow}
    steps = diff(observed, desired, Capabilities(knobs, can_replace=True))
    assert [type(step) for step in steps] == [
        kind for kind in (SetLive, Replace, Restart) if any(isinstance(step, kind) for step in steps)
    ], "live ones first, and all restarts in one"
    reached: dict[Knob, Value] = dict(observed.values)
    retired = observed.retired
    for step in steps:
        if isinstance(step, Replace):
            retired |= step.workers
        else:
            assert all(observed.values.get(knob) != value for knob, value in step.values.items()), "a step for nothing"
            reached |= step.values
    assert all(reached[knob] == value for knob, value in desired.values.items() if knob in knobs)
    assert desired.retired <= retired
    assert diff(Configuration(reached, retired), desired, Capabilities(knobs, can_replace=True)) == ()


def test_a_knob_knows_its_query_and_its_step() -> None:
    split = Knob.of_step(PARALLELISM, "words", "split")
    assert (split.query, split.step) == ("words", "split")
    assert Knob.parse(str(split)) == split
    assert (Knob(TRIGGER_S, "words").query, Knob(TRIGGER_S, "words").step) == ("words", "")


def test_a_worker_that_is_gone_is_not_replaced_again() -> None:
    configuration = Configuration(retired=frozenset({"w-1"}))
    again = configuration.patched(Patch(retire=frozenset({"w-1"})))
    assert diff(configuration, again, Capabilities(can_replace=True)) == ()
    assert diff(Configuration(), again, Capabilities(can_replace=True)) == (Replace(frozenset({"w-1"})),)
    assert diff(Configuration(), again, Capabilities()) == ()


def test_a_configuration_cannot_be_changed_behind_its_back() -> None:
    given_values: dict[Knob, Value] = {Knob(EXECUTORS, "app"): 2}
    configuration = Configuration(given_values)
    given_values[Knob(EXECUTORS, "app")] = 99
    assert configuration[Knob(EXECUTORS, "app")] == 2


def test_only_what_has_a_price_is_paid_for() -> None:
    knobs = {
        Knob(PARALLELISM, "a"): KnobSpec(cost=1.0),
        Knob(EXECUTORS, "app"): KnobSpec(cost=4.0),
        Knob(TRIGGER_S, "main"): KnobSpec(),
    }
    configuration = Configuration({Knob(PARALLELISM, "a"): 3, Knob(EXECUTORS, "app"): 2, Knob(TRIGGER_S, "main"): 60})
    assert Capabilities(knobs).cost(configuration) == 11.0


def test_a_knob_is_read_as_it_is_written() -> None:
    assert str(Knob(PARALLELISM, "count")) == "parallelism.count"
    assert Knob.parse("parallelism.count.by.word") == Knob(PARALLELISM, "count.by.word")


def test_a_knob_that_is_not_there_has_no_value_but_the_one_that_the_caller_chooses() -> None:
    nothing = Configuration()

    with pytest.raises(KeyError):
        nothing[EXECUTORS_KNOB]
    assert (nothing.get(EXECUTORS_KNOB, 0), nothing.get(EXECUTORS_KNOB, 7)) == (0, 7)
