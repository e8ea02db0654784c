"""What plug-ins see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from homeostat.core.configuration import Capabilities, Configuration, KnobSpec
from homeostat.core.view import View
from homeostat.testing import blanked, instances, observations, view_of

OBSERVED = observations(6, {"lines": instances(100.0, 1.0), "split": instances([50.0, 50.0], 1.0)}, arrival_per_s=10.0)
VIEW = view_of(OBSERVED)
KNOB = VIEW.topology["split"].scaled_by


def test_the_parallelism_is_what_the_knob_is_set_to() -> None:
    assert VIEW.parallelism("split") == 2


def test_a_component_whose_knob_is_not_reported_has_the_least_that_the_engine_allows() -> None:
    unset = replace(VIEW, configuration=Configuration())

    assert replace(unset, capabilities=Capabilities()).parallelism("split") == 1
    assert replace(unset, capabilities=Capabilities({KNOB: KnobSpec(minimum=3)})).parallelism("split") == 3


def test_the_present_configuration_begins_with_its_epoch() -> None:
    history = (*(replace(digest, epoch=0) for digest in VIEW.history[:4]), *VIEW.history[4:])

    assert [digest.batch for digest in replace(VIEW, history=history).current] == [4, 5]


def test_what_was_not_measured_is_missing() -> None:
    assert VIEW.missing_since(0.0) == ""
    assert view_of(blanked(OBSERVED, "arrival_per_s", last=1)).missing_since(0.0) == "arrival"
    assert view_of(OBSERVED[:2] + OBSERVED[3:]).missing_since(0.0) == "an observation"
    assert VIEW.missing_since(60.0) == "an observation"


def test_instances_that_come_and_go_leave_gaps_in_the_matrix() -> None:
    smaller = observations(1, {"lines": instances(100.0, 1.0), "split": instances([80.0], 1.0)}, start_s=60.0)
    rows = view_of((*OBSERVED, *smaller)).window.tasks("split", "rows")

    assert rows.shape == (7, 2)
    assert np.isnan(rows[-1]).tolist() == [False, True]


def test_a_model_is_computed_once_for_each_view() -> None:
    calls: list[View] = []

    def compute(view: View) -> int:
        calls.append(view)
        return len(calls)

    assert [VIEW.once("model", compute) for _ in range(2)] == [1, 1]


def test_rows_are_not_spread_where_no_knob_says_so() -> None:
    assert VIEW.spread("split") == 1
