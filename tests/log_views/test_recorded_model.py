"""A model fitted to a recorded run knows how the run was set up, and refuses a run that is too short."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.configuration import EXECUTORS_KNOB, TRIGGER_S, Knob
from homeostat.core.errors import ConfigError
from homeostat.log_views.recorded_model import from_recording
from homeostat.recorded_data.batch_limits import trigger_s
from homeostat.recorded_data.run import RecordedRun
from homeostat.spark.outside.logged_run import record
from support.paths import RECORDED


@pytest.fixture(scope="module")
def recorded() -> RecordedRun:
    return record(RECORDED / "wordcount.jsonl")


def test_the_model_has_the_setup_of_the_recorded_run(recorded: RecordedRun) -> None:
    model = from_recording(recorded, "wordcount.jsonl")
    assert model.topology.names == tuple(component.name for component in recorded.components)
    last = recorded.batches[-1]
    up = [each for each in recorded.executors if each.added_s <= last.ended_s and each.removed_s > last.started_s]
    assert model.configuration.values[EXECUTORS_KNOB] == len(up)
    assert model.configuration.values[Knob(TRIGGER_S, recorded.query)] == trigger_s(recorded.batches)
    assert model.arrival_per_s == pytest.approx(250.0, rel=0.2)


def test_a_run_with_too_few_batches_is_refused(recorded: RecordedRun) -> None:
    with pytest.raises(ConfigError) as refused:
        from_recording(replace(recorded, batches=recorded.batches[:1]), "short.jsonl")
    assert refused.value.line == (
        "short.jsonl: has too few batches with rows to fit a model to (use a longer recording or scenario)"
    )
