"""A model that is written into the log and read again predicts the same, whatever was learned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.configuration import EXECUTORS_KNOB, Knob, Patch
from homeostat.core.topology import Topology
from homeostat.lab.scenario_model import from_scenario
from homeostat.models.application_model import ApplicationModel
from homeostat.models.batch_replay import BatchModel
from homeostat.models.model_json import from_json, to_json
from homeostat.models.task_cost_model import Slowing
from homeostat.store import codec
from support.living import BATCHES


@pytest.fixture(scope="module")
def model() -> ApplicationModel:
    return from_scenario(replace(BATCHES, duration_s=600.0))


def read_again(model: ApplicationModel) -> ApplicationModel:
    again = from_json(codec.load(codec.dump(to_json(model))))
    assert again is not None
    return again


def test_a_model_that_has_learned_what_more_executors_cost_predicts_the_same(model: ApplicationModel) -> None:
    """Every run whose executors change learns this, so every demonstration writes such a model."""
    assert isinstance(model.performance, BatchModel)
    stages = [
        replace(stage, cost=replace(stage.cost, slowing=Slowing(0.9, 0.4), up_to_executors=8.0))
        for stage in model.performance.stages
    ]
    slowed = replace(model, performance=replace(model.performance, stages=tuple(stages)))
    again = read_again(slowed)
    assert isinstance(again.performance, BatchModel)
    assert [stage.cost for stage in again.performance.stages] == [stage.cost for stage in stages]
    more = model.configuration.patched(Patch({EXECUTORS_KNOB: 8}))
    predicted, expected = again.predict(more, 1_500.0).batch_s, slowed.predict(more, 1_500.0).batch_s
    assert predicted is not None
    assert expected is not None
    assert predicted.middle == pytest.approx(expected.middle, rel=1e-3)


def test_the_topology_is_read_as_it_was_written(model: ApplicationModel) -> None:
    first, *rest = model.topology.components
    spread = replace(first, spread=Knob("combine", "main"), unspread="no operator", watched="keys")
    odd = replace(model, topology=Topology((spread, *rest)))
    assert read_again(odd).topology == odd.topology


def test_a_model_of_another_version_is_none() -> None:
    assert from_json({"format": 0}) is None
    assert from_json([1]) is None
