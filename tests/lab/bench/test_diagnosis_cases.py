"""Random runs with known faults."""

from __future__ import annotations

import pytest

from homeostat.lab.bench.diagnosis_cases import CLEAN, FAULTS, QUIET_S, TRIGGER_S, draw_case
from homeostat.sim.truth_labels import Labels


def test_the_same_seed_draws_the_same_run_and_another_one_another() -> None:
    assert draw_case(3, ("slow-sink",)) == draw_case(3, ("slow-sink",))
    assert draw_case(3, ("slow-sink",)) != draw_case(4, ("slow-sink",))


@pytest.mark.parametrize("kind", sorted(FAULTS))
def test_every_kind_of_fault_does_something_in_most_draws(kind: str) -> None:
    """It begins after a quiet time, and costs a tenth of the trigger interval unless Spark itself reports it."""
    effects = 0
    for seed in range(10):
        scenario = draw_case(seed, (kind,)).scenario
        labels = Labels(scenario)
        places = [label for label in labels.all if label.fault is not None and label.fault.kind == kind]
        assert all(label.at_s >= QUIET_S for label in places)
        at_s = scenario.duration_s - 1.0
        cost_s = sum(labels.cost_s(label, at_s) for label in places)
        effects += places[0].silent or kind == "task-failures" or cost_s >= 0.1 * TRIGGER_S
    assert effects >= 5


def test_a_clean_run_has_no_fault() -> None:
    kinds = {fault.kind for fault in draw_case(1, (CLEAN,)).scenario.faults}
    assert kinds <= {"metric-gap"}
