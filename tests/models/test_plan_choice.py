"""The cheapest configuration that holds the objective, and why the others lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    Configuration,
    Patch,
)
from homeostat.core.objective import Objective
from homeostat.lab.bench import planning_time
from homeostat.models.application_model import ApplicationModel
from homeostat.models.plan_choice import plan
from homeostat.models.planning_question import Goal, Question, Steady
from support.batch_plans import STATE, TRIGGER, batches, chosen_values


def test_as_many_executors_as_the_load_needs_and_no_more() -> None:
    # 48 tasks in whole waves: 2,000 rows/s are 20 s of work, for which 3 slots take 6.7 s, 4 slots 5 s.
    assert chosen_values(plan(batches()))[EXECUTORS_KNOB] == 3
    assert plan(batches()).patch.values == {}
    more = plan(batches(), arrivals=Steady(6_000.0))
    assert chosen_values(more)[EXECUTORS_KNOB] == 7
    fewer = plan(batches(), arrivals=Steady(500.0))
    assert chosen_values(fewer)[EXECUTORS_KNOB] == 1


def test_every_candidate_that_lost_says_why() -> None:
    chosen_plan = plan(batches(), arrivals=Steady(6_000.0))
    reasons = {int(c.configuration[EXECUTORS_KNOB]): c.lost for c in chosen_plan.candidates}
    assert reasons[7] == ""
    assert "processes 3,000 of 6,000 rows/s" in reasons[3]
    assert "batches take longer than the trigger" in reasons[6] or "processes" in reasons[6]
    assert "costs" in reasons[8]


def test_a_restart_that_makes_rows_late_for_longer_than_they_may_be_is_not_worth_an_executor() -> None:
    # 3 executors take 2,900 rows/s within a trigger of 16 s, not of 10 s, but a restart takes minutes to make up for.
    objective = Objective(latency_p95_s=32.0)
    long_run, short_run = (
        plan(batches(objective), arrivals=Steady(2_900.0), goal=Goal(horizon_s=horizon_s))
        for horizon_s in (24 * 3_600.0, 60.0)
    )
    assert long_run.chosen is not None
    assert long_run.chosen.late_s > 5.0
    assert chosen_values(long_run) == {EXECUTORS_KNOB: 3, STATE: 48, TRIGGER: 16.0}
    assert chosen_values(short_run) == {EXECUTORS_KNOB: 4, STATE: 48, TRIGGER: 10.0}
    lost = [each.lost for each in short_run.candidates if each.configuration == long_run.chosen.configuration]
    assert lost[0].startswith("would meet the objective, but the restart would delay rows for")


def test_where_nothing_holds_the_closest_is_reported_with_what_is_wrong() -> None:
    chosen_plan = plan(batches(Objective(cost_limit=4.0)), arrivals=Steady(6_000.0))
    assert chosen_plan.chosen is None
    assert chosen_plan.best.cost <= 4
    assert chosen_plan.best.lost


@dataclass(frozen=True, slots=True)
class Thrifty:
    """Asks what the model thinks of fewer executors, and proposes the fewest that keep up."""

    name: str = "thrifty"

    def propose(self, question: Question) -> Iterator[Configuration]:
        for executors in range(1, 41):
            tried = question.model.configuration.patched(Patch({EXECUTORS_KNOB: executors}))
            if question.predict(tried).stable:
                yield tried
                return


def test_a_scheduler_of_ones_own_proposes_and_is_judged_like_ours() -> None:
    chosen_plan = plan(batches(), arrivals=Steady(6_000.0), proposers=[Thrifty()])
    theirs = [c for c in chosen_plan.candidates if c.proposer == "thrifty"]
    assert len(theirs) == 1
    assert theirs[0].predicted.stable


class Nameless:
    """First asks for more than there can be, then fails."""

    def propose(self, question: Question) -> Iterator[Configuration]:
        yield question.model.configuration.patched(Patch({EXECUTORS_KNOB: 5}))
        yield question.model.configuration.patched(Patch({EXECUTORS_KNOB: 99}))
        raise LookupError("no more\nideas")


def test_what_was_proposed_in_vain_is_reported_and_the_others_go_on() -> None:
    broken: Any = Nameless()
    chosen_plan = plan(batches(), arrivals=Steady(6_000.0), proposers=[broken, Thrifty()])
    assert [(each.proposer, each.why) for each in chosen_plan.refused] == [
        ("Nameless", "executors.app = 99 is outside its bounds 1 to 40"),
        ("Nameless", "raised LookupError: no more ideas"),
    ]
    assert {"Nameless", "thrifty"} <= {each.proposer for each in chosen_plan.candidates}
    assert chosen_values(chosen_plan)[EXECUTORS_KNOB] == 7


@pytest.mark.parametrize(
    "model", [planning_time.dataflow(50, 200), planning_time.batches(50, 200)], ids=["dataflow", "batches"]
)
def test_fifty_components_with_ten_thousand_instances_can_be_planned_for(model: ApplicationModel) -> None:
    """How long that takes is for `homeostat bench control` to tell."""
    chosen_plan = plan(model)
    assert chosen_plan.chosen is not None
