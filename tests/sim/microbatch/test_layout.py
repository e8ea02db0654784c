"""The knobs of a micro-batch scenario follow from its components."""

from __future__ import annotations

from homeostat.core.configuration import PARALLELISM, SOURCE_PARTITIONS, SPREAD, Knob
from homeostat.sim.microbatch.layout import ROWS_KNOB, STATE_KNOB, TRIGGER_KNOB, layout, partitions_knob
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
