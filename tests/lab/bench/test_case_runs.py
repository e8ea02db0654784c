"""A simulated run as it was seen and as it was."""

from __future__ import annotations

from homeostat.core.time_causes import SINK_BOUND
from homeostat.lab.bench.case_runs import is_right, play
from homeostat.lab.bench.diagnosis_cases import draw_case
from homeostat.policies import registry


def test_a_played_run_says_what_was_named_and_what_was_true() -> None:
    run = play(draw_case(5, ("slow-sink",)), registry.build("provisioning"))
    acting = run.labels.acting(run.truth[-1])
    assert is_right(SINK_BOUND, "", acting)
    assert any(diagnosis.cause == SINK_BOUND for diagnosis in run.cycles[-1].diagnoses)
    assert not is_right(SINK_BOUND, "", run.labels.acting(run.truth[0])), "the fault begins later"
