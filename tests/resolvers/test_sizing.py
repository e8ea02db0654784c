"""How many instances a load needs. tests/resolvers/test_scale.py has what is proposed from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.configuration import PARALLELISM, Knob
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.objective import Objective
from homeostat.core.symptoms import PRESSURE
from homeostat.detectors.pressure import PressureEvidence
from homeostat.models.batch_model import RECENT
from homeostat.resolvers.sizing import Need, Sizing, since_onset
from support.stages import batches, stage

SPLIT = Knob(PARALLELISM, "split")


def split_needs(
    arrival_per_s: float, pending_rows: float = 0.0, catch_up_s: float = 600.0, objective: Objective | None = None
) -> float:
    needs = Sizing(catch_up_s).needs(stage(arrival_per_s, pending_rows=pending_rows, objective=objective))
    return next(need.exact for need in needs if need.component == "split")


def test_a_steady_load_needs_its_rate_over_that_of_one_instance() -> None:
    """An instance processes 100 rows/s."""
    assert split_needs(400.0) == pytest.approx(4.0, rel=0.05)


def test_a_backlog_needs_more_the_sooner_it_must_be_gone() -> None:
    assert split_needs(400.0) < split_needs(400.0, 60_000.0) < split_needs(400.0, 60_000.0, catch_up_s=300.0)
    assert split_needs(400.0, 60_000.0, objective=Objective(catch_up_s=300.0)) == split_needs(
        400.0, 60_000.0, catch_up_s=300.0
    )


def test_instances_are_whole_and_rounding_errors_add_none() -> None:
    assert [Need("split", SPLIT, 1, exact).instances for exact in (0.0, 3.0000000001, 3.1)] == [1, 3, 4]


def test_the_load_is_averaged_since_it_has_been_what_it_is() -> None:
    def pressed(count: float) -> Diagnosis:
        return Diagnosis("", symptoms=(Symptom(PRESSURE, evidence=PressureEvidence(observations_since_onset=count)),))

    assert [since_onset([pressed(count)], 60) for count in (1.0, 10.0, 100.0)] == [1, 10, 60]
    assert since_onset([Diagnosis("")], 60) == RECENT


@pytest.mark.parametrize(("trigger_s", "waiting_rows"), [(10.0, 590.0), (0.0, 480.0)])
def test_the_rows_that_arrived_during_one_batch_are_no_backlog(trigger_s: float, waiting_rows: float) -> None:
    here = batches(60.0)

    def is_behind(pending_rows: float) -> bool:
        history = tuple(replace(digest, trigger_s=trigger_s, pending_rows=pending_rows) for digest in here.history)
        return Sizing().is_behind(replace(here, history=history))

    assert not is_behind(waiting_rows)
    assert is_behind(3 * waiting_rows)
