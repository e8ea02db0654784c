"""Which remedies become one plan, which are left out and why, and what the plan is expected to gain."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.actions import ADJUST_SKEW, PLAN, REPLACE, SCALE_DOWN, SCALE_UP
from homeostat.core.causes import DATA_SKEW, HASH_IMBALANCE, OVER_PROVISIONED, SLOW_INSTANCE, UNDER_PROVISIONED
from homeostat.core.configuration import (
    CHANGELOG_CHECKPOINTING,
    EXECUTORS_KNOB,
    SPREAD,
    STATE_PARTITIONS,
    Capabilities,
    Configuration,
    Knob,
    KnobSpec,
    Patch,
)
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.sentences import change_sentence
from homeostat.core.view import View
from homeostat.resolvers.one_plan import OnePlan
from homeostat.testing import view_of
from support.stages import batches

SPREAD_SPLIT, STATE = Knob(SPREAD, "split"), Knob(STATE_PARTITIONS, "main")
CHANGELOG = Knob(CHANGELOG_CHECKPOINTING, "main")


def remedy(kind: str, cause: str, patch: Patch, component: str = "split", cost: float = 0.0) -> Proposal:
    return Proposal(
        kind, (Diagnosis(cause, component),), patch, component, Prediction(0.5, (component,), kind), cost=cost
    )


GROW = remedy(SCALE_UP, UNDER_PROVISIONED, Patch({EXECUTORS_KNOB: 4}))
DEAL = remedy(ADJUST_SKEW, DATA_SKEW, Patch({SPREAD_SPLIT: 2}))
RECUT = remedy(ADJUST_SKEW, HASH_IMBALANCE, Patch({STATE: 13}), cost=0.1)
SWAP = remedy(REPLACE, SLOW_INSTANCE, Patch(retire=frozenset({"e-1"})))


def view() -> View:
    knobs = {
        EXECUTORS_KNOB: KnobSpec(1, 10, cost=1.0),
        SPREAD_SPLIT: KnobSpec(1, 10),
        STATE: KnobSpec(1, 100, live=False, apply_s=30.0),
        CHANGELOG: KnobSpec(0, 1, live=False, apply_s=30.0),
    }
    configuration = Configuration({EXECUTORS_KNOB: 2, SPREAD_SPLIT: 1, STATE: 8})
    return replace(view_of(()), configuration=configuration, capabilities=Capabilities(knobs))


def test_remedies_for_different_causes_are_one_plan() -> None:
    plan, left_out = OnePlan().compose(view(), [GROW, SWAP, DEAL])
    assert not left_out
    assert plan.kind == PLAN
    assert plan.patch == Patch({EXECUTORS_KNOB: 4, SPREAD_SPLIT: 2}, frozenset({"e-1"}))
    assert [part.kind for part in plan.parts] == [SCALE_UP, REPLACE, ADJUST_SKEW]
    assert [d.cause for d in plan.because] == [UNDER_PROVISIONED, SLOW_INSTANCE, DATA_SKEW]
    assert plan.prediction is not None
    assert plan.prediction.touched == ("split",)


def test_a_single_remedy_stays_what_it_is() -> None:
    assert OnePlan().compose(view(), [GROW]) == (GROW, ())


def test_a_second_remedy_for_the_same_rows_is_left_out_and_the_plan_says_so() -> None:
    plan, left_out = OnePlan().compose(view(), [DEAL, GROW, RECUT])
    assert [(each.kind, str(reason)) for each, reason in left_out] == [
        (ADJUST_SKEW, "not needed: adjust-skew (spread.split = 2) evens out the same rows")
    ]
    assert change_sentence(plan) == (
        "plan: adjust-skew: spread.split = 2; scale-up: executors.app = 4. "
        "Without adjust-skew of split: adjust-skew (spread.split = 2) evens out the same rows"
    )


def test_nothing_shrinks_while_something_is_mended() -> None:
    shrink = remedy(SCALE_DOWN, OVER_PROVISIONED, Patch({EXECUTORS_KNOB: 1}))
    plan, ((refused, reason),) = OnePlan().compose(view(), [DEAL, shrink])
    assert (plan, refused) == (DEAL, shrink)
    assert reason.ground == "adjust-skew goes first"


def test_what_a_better_remedy_sets_is_set_once() -> None:
    other = remedy("retune", UNDER_PROVISIONED, Patch({EXECUTORS_KNOB: 6}))
    plan, left_out = OnePlan().compose(view(), [GROW, other])
    assert plan == GROW
    assert [reason.detail for _, reason in left_out] == ["scale-up of split sets executors.app"]


def test_all_that_needs_a_restart_pays_for_one() -> None:
    other = remedy("switch-on", "another cause", Patch({CHANGELOG: 1}), component="", cost=0.1)
    plan, _ = OnePlan().compose(view(), [RECUT, other, GROW])
    assert plan.patch.values == {STATE: 13, CHANGELOG: 1, EXECUTORS_KNOB: 4}
    assert plan.cost == RECUT.cost


def test_rows_that_are_dealt_to_every_slot_also_reach_those_of_new_executors() -> None:
    measured = batches(120.0)
    executors = int(measured.configuration[EXECUTORS_KNOB])
    knobs = {**measured.capabilities.knobs, SPREAD_SPLIT: KnobSpec(1, 1000)}
    measured = replace(measured, capabilities=Capabilities(knobs))
    grow = remedy(SCALE_UP, UNDER_PROVISIONED, Patch({EXECUTORS_KNOB: 2 * executors}))
    deal = remedy(ADJUST_SKEW, DATA_SKEW, Patch({SPREAD_SPLIT: executors}))
    plan, _ = OnePlan().compose(measured, [deal, grow])
    assert plan.patch.values[SPREAD_SPLIT] == 2 * executors


def test_rows_that_are_already_distributed_also_reach_new_executors() -> None:
    measured = batches(120.0)
    executors = int(measured.configuration[EXECUTORS_KNOB])
    knobs = {**measured.capabilities.knobs, SPREAD_SPLIT: KnobSpec(1, 1000)}
    distributed = Configuration({**measured.configuration.values, SPREAD_SPLIT: executors})
    measured = replace(measured, capabilities=Capabilities(knobs), configuration=distributed)
    grow = remedy(SCALE_UP, UNDER_PROVISIONED, Patch({EXECUTORS_KNOB: 2 * executors}))
    plan, _ = OnePlan().compose(measured, [grow])
    assert plan.kind == SCALE_UP
    assert plan.patch.values == {EXECUTORS_KNOB: 2 * executors, SPREAD_SPLIT: 2 * executors}
