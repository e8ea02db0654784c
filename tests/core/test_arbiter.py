"""Which of several proposals is taken, and what the others are told."""

from __future__ import annotations

from collections.abc import Sequence

from homeostat.core.arbiter import InOrderArbiter, RankedArbiter, Refusal, Refused
from homeostat.core.configuration import PARALLELISM, Knob, Patch
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.guards import GuardContext
from homeostat.core.topology import Component, Topology
from homeostat.core.view import View
from homeostat.testing import view_of

SHAPE = Topology(
    (
        Component("clicks", "source", Knob(PARALLELISM, "clicks"), query="clicks"),
        Component("orders", "source", Knob(PARALLELISM, "orders"), query="orders"),
    )
)
CONTEXT = GuardContext(view_of((), topology=SHAPE, now_s=1000.0), standing_since_s={("slow", "clicks"): 650.0})


def proposal(
    kind: str,
    component: str = "clicks",
    *,
    cause: str = "a cause",
    probability: float = 0.9,
    benefit: float = 0.5,
    cost: float = 0.0,
    reversible: bool = True,
) -> Proposal:
    because = (Diagnosis(cause, component, probability),)
    patch = Patch({Knob(PARALLELISM, component or "clicks"): 2})
    return Proposal(kind, because, patch, component, benefit=benefit, cost=cost, reversible=reversible)


def passes(proposal: Proposal) -> Proposal | Refusal:
    return proposal


def equally(proposal: Proposal) -> float:
    return 0.5


def test_the_largest_expected_net_benefit_goes_first() -> None:
    cheap = proposal("cheap", benefit=0.4)
    dear = proposal("dear", benefit=0.5, cost=0.2)
    choice = RankedArbiter().choose([dear, cheap], CONTEXT, equally, passes)
    assert choice.chosen == (cheap,)
    assert choice.rejected == ((dear, Refusal("cheap goes first")),)


def test_what_worked_before_goes_first() -> None:
    proved, failed = proposal("proved"), proposal("failed")
    choice = RankedArbiter().choose([failed, proved], CONTEXT, lambda p: 0.9 if p is proved else 0.1, passes)
    assert choice.chosen == (proved,)


def test_one_action_for_each_query_and_none_beside_one_on_the_application() -> None:
    clicks, orders, whole = proposal("first"), proposal("second", "orders"), proposal("third", "")
    choice = InOrderArbiter().choose([clicks, orders, whole], CONTEXT, equally, passes)
    assert choice.chosen == (clicks, orders)
    assert choice.rejected == ((whole, Refusal("first goes first")),)
    choice = InOrderArbiter().choose([whole, clicks, orders], CONTEXT, equally, passes)
    assert choice.chosen == (whole,)


def test_the_next_one_is_taken_where_the_first_may_not() -> None:
    best, next_best = proposal("best", benefit=0.9), proposal("next best")
    choice = RankedArbiter().choose(
        [next_best, best], CONTEXT, equally, lambda p: Refusal("memory", "it failed") if p is best else p
    )
    assert choice.chosen == (next_best,)
    assert choice.rejected == ((best, Refusal("memory", "it failed")),)


def test_an_unsure_diagnosis_waits_and_after_a_while_the_cheapest_reversible_action_is_tried() -> None:
    lately = proposal("scale", probability=0.5)
    long_ago = proposal("tweak", cause="slow", probability=0.4, cost=0.01)
    for_good = proposal("replace", cause="slow", probability=0.5, reversible=False)
    choice = RankedArbiter(act_above=0.6, patience_s=300.0).choose([lately, for_good], CONTEXT, equally, passes)
    assert choice.chosen == ()
    assert {str(refusal) for _, refusal in choice.rejected} == {"gathering evidence: probability 0.50 is below 0.60"}
    choice = RankedArbiter(0.6, 300.0).choose([lately, for_good, long_ago], CONTEXT, equally, passes)
    assert choice.chosen == (long_ago,)
    choice = RankedArbiter(0.6, 400.0).choose([long_ago], CONTEXT, equally, passes)
    assert choice.chosen == ()


def test_in_order_means_in_order() -> None:
    first, better = proposal("first", benefit=0.1), proposal("better", benefit=0.9)
    assert InOrderArbiter().choose([first, better], CONTEXT, equally, passes).chosen == (first,)


class TakesTwo:
    """Makes a plan of the first two remedies."""

    def compose(self, view: View, remedies: Sequence[Proposal]) -> tuple[Proposal, tuple[Refused, ...]]:
        plan = Proposal("plan", remedies[0].because, component=remedies[0].component, parts=tuple(remedies[:2]))
        return plan, tuple((each, Refusal("not needed")) for each in remedies[2:])


def test_the_remedies_of_a_scope_that_are_allowed_become_one_plan() -> None:
    best, refused, second, third = (
        proposal(name, benefit=b) for name, b in zip("abcd", (0.9, 0.8, 0.7, 0.6), strict=True)
    )
    elsewhere = proposal("e", "orders")

    def check(proposal: Proposal) -> Proposal | Refusal:
        return Refusal("bounds") if proposal is refused else proposal

    arbiter = RankedArbiter(composer=TakesTwo())
    choice = arbiter.choose([third, elsewhere, second, refused, best], CONTEXT, equally, check)
    assert [plan.parts for plan in choice.chosen] == [(best, second), (elsewhere,)]
    assert choice.rejected == ((refused, Refusal("bounds")), (third, Refusal("not needed")))
