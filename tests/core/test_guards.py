"""Each guard lets a proposal pass, trims it, or says why not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.configuration import (
    EXECUTORS,
    PARALLELISM,
    SOURCE_PARTITIONS,
    SPREAD,
    TRIGGER_S,
    Capabilities,
    Knob,
    KnobSpec,
    Patch,
)
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.guards import (
    Bounds,
    ConfirmShrink,
    CoolDown,
    CostLimit,
    GuardContext,
    KillSwitch,
    LargestChange,
    MostReplaced,
    OneInFlight,
    Wish,
)
from homeostat.core.objective import Objective
from homeostat.core.topology import Component, Topology
from homeostat.core.view import View
from homeostat.testing import blanked, instances, observations, view_of

SPLIT, COUNT = Knob(PARALLELISM, "split"), Knob(PARALLELISM, "count")
SEEN = observations(
    60,
    {name: instances([100.0] * count, 5.0) for name, count in {"lines": 1, "split": 4, "count": 8}.items()},
    arrival_per_s=10.0,
)


WHOLE = view_of(SEEN)


def view(**changes: object) -> View:
    return replace(WHOLE, **changes)  # type: ignore[arg-type]


def wish(values: dict[Knob, float], *, component: str = "split", gain: float = 1.0) -> Proposal:
    because = (Diagnosis("a cause", component),)
    return Proposal("change", because, Patch(values), component, Prediction(gain, (component,)))


def values(checked: Proposal | str) -> dict[Knob, float]:
    assert isinstance(checked, Proposal), checked
    return dict(checked.patch.values)


def test_a_paused_loop_does_nothing() -> None:
    proposal = wish({SPLIT: 5})
    assert (
        KillSwitch().check(proposal, GuardContext(view(), paused="paused by Ada: release")) == "paused by Ada: release"
    )
    assert KillSwitch().check(proposal, GuardContext(view())) == proposal


def two_queries() -> View:
    shape = [
        Component("clicks", "source", Knob(PARALLELISM, "clicks"), query="clicks"),
        Component("orders", "source", Knob(PARALLELISM, "orders"), query="orders"),
    ]
    return view_of((), topology=Topology(tuple(shape)))


@pytest.mark.parametrize(
    ("held", "component", "free"),
    [
        ("clicks", "clicks", False),
        ("clicks", "orders", True),
        ("clicks", "", False),
        ("app", "orders", False),
        ("app", "", False),
    ],
)
def test_actions_on_one_query_wait_for_each_other_and_those_on_the_application_for_all(
    held: str, component: str, free: bool
) -> None:
    proposal = wish({Knob(PARALLELISM, "orders"): 2}, component=component)
    context = GuardContext(two_queries(), busy={held: "a-1 is under way"}, last_action_s={held: 0.0})
    assert OneInFlight().check(proposal, context) == (proposal if free else "a-1 is under way")
    waits = CoolDown(grow_s=60.0).check(proposal, context)
    assert waits == (proposal if free else "cooling down for another 60 s")


@pytest.mark.parametrize(
    ("value", "after_s", "passes"), [(5, 59, False), (5, 60, True), (3, 299, False), (3, 300, True)]
)
def test_growing_cools_down_a_minute_and_shrinking_five(value: int, after_s: float, passes: bool) -> None:
    proposal = wish({SPLIT: value})
    context = GuardContext(view(now_s=1000.0 + after_s), last_action_s={"main": 1000.0})
    checked = CoolDown(grow_s=60.0, shrink_s=300.0).check(proposal, context)
    assert checked == (proposal if passes else "cooling down for another 1 s")


def test_what_is_beyond_its_bounds_is_trimmed_and_what_cannot_be_is_refused() -> None:
    context = GuardContext(view())
    assert values(Bounds().check(wish({SPLIT: 1_000, COUNT: 0}), context)) == {SPLIT: 100, COUNT: 1}
    assert values(Bounds().check(wish({SPLIT: math.inf}), context)) == {SPLIT: 100}
    assert Bounds().check(wish({Knob(EXECUTORS, "app"): 3}), context) == "this engine has no executors.app"
    assert Bounds().check(wish({SPLIT: math.nan}), context) == "parallelism.split: not a number"
    assert Bounds().check(wish({SPLIT: 4.5}), context) == "parallelism.split: 4.5 is not a whole number"
    at_bound = GuardContext(view(capabilities=Capabilities({SPLIT: KnobSpec(1, 4)})))
    assert Bounds().check(wish({SPLIT: 9}), at_bound) == "parallelism.split is at its limit of 4"
    retire = replace(wish({}), patch=Patch(retire=frozenset({"split-1"})))
    assert Bounds().check(retire, at_bound) == "this engine cannot replace workers"
    assert Bounds().check(retire, context) == retire


def replacing(*workers: str) -> Proposal:
    slow = Diagnosis("a cause", "split", workers=workers)
    return Proposal("replace", (slow,), Patch(retire=frozenset(workers)), "split", Prediction(1.0, ("split",)))


def retired(checked: Proposal | str) -> frozenset[str]:
    assert isinstance(checked, Proposal), checked
    return checked.patch.retire


def test_an_action_replaces_at_most_a_share_of_the_workers_and_first_those_that_are_named_first() -> None:
    context = GuardContext(view())
    workers = context.view.window.latest.workers.ids  # type: ignore[union-attr]
    few, all_of_them = replacing(*workers[:2]), replacing(*reversed(workers))
    assert MostReplaced().check(few, context) == few
    trimmed = MostReplaced(share=0.25).check(all_of_them, context)
    assert retired(trimmed) == frozenset(workers[-(len(workers) // 4) :])
    assert isinstance(trimmed, Proposal)
    assert trimmed.prediction is not None
    assert trimmed.prediction.gain == pytest.approx((len(workers) // 4) / len(workers))
    assert retired(MostReplaced(share=0.0).check(few, context)) == {workers[0]}
    assert MostReplaced().check(wish({SPLIT: 5}), context) == wish({SPLIT: 5})


def test_all_workers_are_never_replaced_at_once() -> None:
    context = GuardContext(view())
    workers = context.view.window.latest.workers.ids  # type: ignore[union-attr]
    assert retired(MostReplaced(share=1.0).check(replacing(*workers), context)) == frozenset(workers[:-1])
    alone = view_of(observations(3, {"lines": instances([100.0], 5.0)}))
    (worker,) = alone.window.latest.workers.ids  # type: ignore[union-attr]
    assert MostReplaced().check(replacing(worker), GuardContext(alone)) == f"{worker}: the only worker"
    assert MostReplaced().check(replacing("7"), GuardContext(view_of(()))) == "the workers are not known"


def test_the_predicted_gain_of_a_trimmed_proposal_is_smaller() -> None:
    checked = LargestChange(grow=2.0).check(wish({SPLIT: 16}, gain=math.log(4.0)), GuardContext(view()))
    assert values(checked) == {SPLIT: 8}
    assert isinstance(checked, Proposal)
    assert checked.prediction is not None
    assert checked.prediction.gain == pytest.approx(math.log(2.0))


@given(
    now=st.integers(1, 50),
    target=st.integers(-5, 500),
    grow=st.floats(1.01, 10.0),
    shrink=st.floats(1.01, 10.0),
    bounds=st.tuples(st.integers(1, 40), st.integers(0, 100)),
)
def test_no_knob_moves_further_than_allowed_nor_out_of_its_bounds(
    now: int, target: int, grow: float, shrink: float, bounds: tuple[int, int]
) -> None:
    spec = KnobSpec(min(bounds[0], now), max(bounds[0] + bounds[1], now), cost=1.0)
    base = view_of(SEEN[:1], values={SPLIT: now}, capabilities=Capabilities({SPLIT: spec}))
    checked = LargestChange(grow, shrink).check(wish({SPLIT: target}), GuardContext(base))
    if isinstance(checked, Proposal):
        after = values(checked)[SPLIT]
        assert isinstance(after, int)
        assert min(now / shrink, now - 1) <= after <= max(now * grow, now + 1)
        assert spec.minimum <= after <= spec.maximum
        assert (after - now) * (target - now) >= 0, "it went the other way"


def test_one_unit_is_always_allowed() -> None:
    context = GuardContext(view())
    assert values(LargestChange(1.01, 1.01).check(wish({SPLIT: 9}), context)) == {SPLIT: 5}
    assert values(LargestChange(1.01, 1.01).check(wish({SPLIT: 1}), context)) == {SPLIT: 3}


def test_tasks_follow_the_executors_that_are_to_run_them_however_many() -> None:
    tasks = Knob(SOURCE_PARTITIONS, "scan")
    here = view_of(SEEN[:1], values={tasks: 1}, capabilities=Capabilities({tasks: KnobSpec(1, 100)}))
    assert values(LargestChange(5.0).check(wish({tasks: 24}), GuardContext(here))) == {tasks: 24}


def test_growth_goes_as_far_as_the_cost_limit_and_no_further() -> None:
    def limited(limit: float, patch: dict[Knob, float]) -> Proposal | str:
        return CostLimit().check(wish(patch), GuardContext(view(objective=Objective(cost_limit=limit))))

    assert values(limited(40.0, {SPLIT: 10_000})) == {SPLIT: 31}, "13 are in use, 4 of them for split"
    assert limited(13.0, {SPLIT: 5}) == "13 instances, 13 are in use"
    assert values(limited(5.0, {SPLIT: 3})) == {SPLIT: 3}, "above the limit, less is better than nothing"
    assert values(limited(5.0, {Knob(SPREAD, "count"): 3})) == {Knob(SPREAD, "count"): 3}, "this costs nothing"


@given(limit=st.floats(1.0, 300.0), split=st.integers(1, 400), count=st.integers(1, 400))
def test_a_plan_never_costs_more_than_the_limit_or_than_what_runs(limit: float, split: int, count: int) -> None:
    here = view(objective=Objective(cost_limit=limit))
    checked = CostLimit().check(wish({SPLIT: split, COUNT: count}), GuardContext(here))
    if isinstance(checked, Proposal):
        cost = here.capabilities.cost(here.configuration.patched(checked.patch))
        assert cost <= max(limit, here.capabilities.cost(here.configuration))


def confirmed(here: View, value: float, since_s: float, largest: float) -> Proposal | str:
    return ConfirmShrink(300.0).check(
        wish({COUNT: value}), GuardContext(here, shrink_wishes={COUNT: Wish(since_s, largest)})
    )


def test_shrinking_is_confirmed_and_goes_only_as_low_as_was_wanted_all_the_time() -> None:
    here = view()
    assert here.now_s == 600.0
    assert ConfirmShrink(300.0).check(wish({COUNT: 4}), GuardContext(here)) == "parallelism.count: not yet confirmed"
    assert confirmed(here, 4, 310.0, 4) == "parallelism.count: confirming for another 10 s"
    assert values(confirmed(here, 4, 300.0, 6)) == {COUNT: 6}
    assert confirmed(here, 4, 300.0, 9) == "parallelism.count is at its limit of 8", "it does not grow by being shrunk"
    grown = wish({COUNT: 20})
    assert ConfirmShrink(300.0).check(grown, GuardContext(here)) == grown


def test_what_is_not_confirmed_holds_up_what_is_for_as_long_again_at_most() -> None:
    both = wish({SPLIT: 2, COUNT: 4})

    def checked(since_s: float) -> Proposal | str:
        wishes = {SPLIT: Wish(590.0, 2), COUNT: Wish(since_s, 4)}
        return ConfirmShrink(250.0).check(both, GuardContext(view(), shrink_wishes=wishes))

    assert checked(110.0) == "parallelism.split: confirming for another 240 s"
    assert values(checked(90.0)) == {COUNT: 4}


@pytest.mark.parametrize("number", [31, 45, 59])
@pytest.mark.parametrize("column", ["rows", "run_s", "pending_rows", "pressured_s", "arrival_per_s"])
def test_a_wish_to_shrink_proves_nothing_if_anything_was_not_measured_meanwhile(column: str, number: int) -> None:
    lost = blanked(SEEN[number : number + 1], column)
    here = view_of([*SEEN[:number], *lost, *SEEN[number + 1 :]])
    assert isinstance(confirmed(here, 4, 300.0, 4), str)
    view_with_gap = view_of([*SEEN[:number], *SEEN[number + 1 :]], now_s=600.0)
    if number < 59:
        assert confirmed(view_with_gap, 4, 300.0, 4) == "parallelism.count: an observation was missing while confirming"


def test_what_is_too_large_for_a_load_that_asks_for_more_elsewhere_is_not_confirmed_but_measured() -> None:
    both = wish({SPLIT: 8, COUNT: 4})
    assert values(ConfirmShrink(300.0).check(both, GuardContext(view()))) == {SPLIT: 8, COUNT: 4}
    for number in (31, 59):
        lost = view_of([*SEEN[:number], *blanked(SEEN[number : number + 1], "rows"), *SEEN[number + 1 :]])
        assert values(ConfirmShrink(300.0).check(both, GuardContext(lost))) == {SPLIT: 8}
    before = view_of([*blanked(SEEN[:10]), *SEEN[10:]])
    assert values(ConfirmShrink(300.0).check(both, GuardContext(before))) == {SPLIT: 8, COUNT: 4}


def test_what_was_missing_before_the_wish_does_not_count() -> None:
    here = view_of([*blanked(SEEN[:30]), *SEEN[30:]])
    assert values(confirmed(here, 4, 300.0, 4)) == {COUNT: 4}


def test_a_knob_that_counts_in_parts_may_have_them() -> None:
    trigger = Knob(TRIGGER_S, "main")
    here = view_of(SEEN, values={trigger: 2.0}, capabilities=Capabilities({trigger: KnobSpec(0, 60)}))
    assert values(Bounds().check(wish({trigger: 2.5}), GuardContext(here))) == {trigger: 2.5}
    assert values(LargestChange(1.2).check(wish({trigger: 2.5}), GuardContext(here))) == {trigger: 2.5}


@settings(max_examples=50)
@given(
    split=st.integers(-10, 1000), count=st.integers(-10, 1000), grow=st.floats(1.1, 10.0), limit=st.floats(1.0, 200.0)
)
def test_all_guards_together_keep_a_proposal_within_all_limits(
    split: int, count: int, grow: float, limit: float
) -> None:
    here = view(objective=Objective(cost_limit=limit))
    context = GuardContext(here, shrink_wishes={SPLIT: Wish(0.0, split), COUNT: Wish(0.0, count)})
    checked: Proposal | str = wish({SPLIT: split, COUNT: count})
    for guard in (KillSwitch(), OneInFlight(), Bounds(), ConfirmShrink(), LargestChange(grow), CostLimit(), CoolDown()):
        if isinstance(checked, Proposal):
            checked = guard.check(checked, context)
    if isinstance(checked, Proposal):
        for knob, value in checked.patch.values.items():
            now = here.configuration[knob]
            assert 1 <= value <= 100
            assert min(now / 2.0, now - 1) <= value <= max(now * grow, now + 1)


def test_a_cause_that_came_up_since_does_not_wait_for_a_verdict_but_a_shrink_does() -> None:
    whole = view()
    scope = GuardContext(whole).scope(wish({SPLIT: 5}))
    judged = GuardContext(whole, busy={scope: "a-1 is being judged"})
    overtaken = replace(judged, overtaken=frozenset({scope}))
    guard, grow, shrink = OneInFlight(may_overtake=True), wish({SPLIT: 5}), wish({SPLIT: 2})
    assert guard.check(grow, judged) == "a-1 is being judged"
    assert guard.check(grow, overtaken) == grow
    assert guard.check(shrink, overtaken) == "a-1 is being judged"
    assert OneInFlight().check(grow, overtaken) == "a-1 is being judged", "the policies of the paper wait"


def test_an_action_for_another_cause_does_not_cool_down_but_a_shrink_does() -> None:
    last_remedy_s = {("main", "one cause"): 1000.0, ("main", "a third cause"): 980.0}
    context = GuardContext(view(now_s=1010.0), last_action_s={"main": 1000.0}, last_remedy_s=last_remedy_s)
    grow, shrink = wish({SPLIT: 5}), wish({SPLIT: 2})
    guard = CoolDown(grow_s=60.0, shrink_s=300.0, by_cause=True)
    other = replace(grow, because=(Diagnosis("another cause"),))
    assert guard.check(other, context) == other
    assert CoolDown(grow_s=60.0).check(other, context) == "cooling down for another 50 s", (
        "the policies of the paper wait"
    )
    assert guard.check(replace(grow, because=()), context) == "cooling down for another 50 s", "its cause is not known"
    third = replace(grow, because=(Diagnosis("a third cause"), Diagnosis("another cause")))
    assert guard.check(third, context) == "cooling down for another 30 s"
    assert guard.check(other, replace(context, busy={"main": "a-1 is being judged"})) == "cooling down for another 50 s"
    same = replace(grow, because=(Diagnosis("one cause"), Diagnosis("another cause")))
    assert guard.check(same, context) == "cooling down for another 50 s"
    shrinking = replace(shrink, because=(Diagnosis("another cause"),))
    assert guard.check(shrinking, context) == "cooling down for another 290 s"
