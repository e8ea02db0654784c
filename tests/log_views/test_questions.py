"""Questions to a model: which knobs they set, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.configuration import EXECUTORS, EXECUTORS_KNOB
from homeostat.core.errors import ConfigError
from homeostat.lab.scenario_model import from_scenario
from homeostat.log_views import questions
from homeostat.models.application_model import ApplicationModel
from homeostat.models.plan_choice import plan
from homeostat.models.planning_question import Goal, Steady
from support.living import BATCHES


@pytest.fixture(scope="module")
def model() -> ApplicationModel:
    return from_scenario(replace(BATCHES, duration_s=400.0))


def test_a_question_sets_every_knob_of_a_kind_or_a_single_one(model: ApplicationModel) -> None:
    values = questions.every(model, EXECUTORS, 8, "executors") | questions.single(model, "parallelism.count", 4, "set")
    configuration = questions.with_changes(model, values)
    assert configuration.as_json()["executors.app"] == 8
    assert configuration.as_json()["parallelism.count"] == 4


def test_what_the_application_does_not_have_is_refused_with_what_it_has(model: ApplicationModel) -> None:
    with pytest.raises(ConfigError, match=r"there is no knob 'parallelism.nothing'.*use one of executors.app"):
        questions.single(model, "parallelism.nothing", 4, "set")
    with pytest.raises(ConfigError, match="this application has no knob for nothing"):
        questions.every(model, "nothing", 4, "set")
    with pytest.raises(ConfigError, match="outside its bounds"):
        questions.with_changes(model, {EXECUTORS_KNOB: 31})


def test_only_the_parts_of_the_objective_that_are_given_are_replaced(model: ApplicationModel) -> None:
    changed_model = questions.with_objective(model, lag_s=20.0, cost_limit=None)
    assert changed_model.objective == replace(model.objective, lag_s=20.0)


def test_without_a_history_the_load_is_assumed_to_stay(model: ApplicationModel) -> None:
    arrivals, sentence = questions.coming(model, Goal(), None)
    assert isinstance(arrivals, Steady)
    assert sentence == "The load is assumed to stay constant."


def test_the_present_configuration_is_always_among_the_candidates_shown(model: ApplicationModel) -> None:
    chosen = plan(replace(model, arrival_per_s=3_000.0))
    candidates = questions.first_candidates(chosen, 2)
    assert len(candidates) == 2
    assert "no change" in [questions.changes(chosen, each) for each in candidates]
