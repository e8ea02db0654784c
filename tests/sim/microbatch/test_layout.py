"""The knobs of a micro-batch scenario follow from its components."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.configuration import PARALLELISM, SOURCE_PARTITIONS, SPREAD, Knob, KnobSpec
from homeostat.sim.microbatch.layout import (
    ASYNC_KNOB,
    CHANGELOG_KNOB,
    ROWS_KNOB,
    STATE_KNOB,
    TRIGGER_KNOB,
    layout,
    partitions_knob,
)
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec
from support.models import scenario


def test_state_partitions_are_one_knob_and_a_keyed_stage_can_be_spread() -> None:
    spec = MicrobatchSpec(executors=2)
    values = layout(scenario(), spec).values
    assert values == {TRIGGER_KNOB: 10.0, Knob(SOURCE_PARTITIONS, "lines"): 2, STATE_KNOB: 4, Knob(SPREAD, "count"): 1}
    assert partitions_knob(ComponentSpec("map", inputs=("lines",))) == Knob(PARALLELISM, "map")


def test_a_limit_on_rows_is_a_knob_only_if_it_is_set() -> None:
    limited = layout(scenario(), MicrobatchSpec(executors=2, rows_per_trigger=500.0))
    assert limited.values[ROWS_KNOB] == 500
    assert ROWS_KNOB not in layout(scenario(), MicrobatchSpec(executors=2)).capabilities.knobs


def test_limits_change_without_a_restart_only_where_the_scenario_allows_it() -> None:
    for live in (False, True):
        spec = MicrobatchSpec(executors=2, rows_per_trigger=500.0, live_limits=live)
        knobs = layout(scenario(), spec).capabilities.knobs
        for knob in (ROWS_KNOB, TRIGGER_KNOB):
            assert (knobs[knob].live, knobs[knob].apply_s) == (live, 0.0 if live else spec.restart_s)


def test_changelogs_need_state_and_asynchronous_progress_needs_that_there_is_none() -> None:
    both = MicrobatchSpec(executors=2, changelog_commit=0.3, async_progress=True)
    with_state = scenario()
    without_state = replace(with_state, components=tuple(replace(c, stateful=False) for c in with_state.components))
    for knob_layout, possible, impossible in (
        (layout(with_state, both), CHANGELOG_KNOB, ASYNC_KNOB),
        (layout(without_state, both), ASYNC_KNOB, CHANGELOG_KNOB),
    ):
        assert knob_layout.values[possible] == 0
        assert knob_layout.capabilities.knobs[possible] == KnobSpec(0, 1, live=False, apply_s=both.restart_s)
        assert impossible not in knob_layout.values
