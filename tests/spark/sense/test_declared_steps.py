"""The names that a pipeline gives to its steps."""

from __future__ import annotations

from homeostat.spark.sense.declared_steps import NO_STEPS, DeclaredSteps, combine_name


def test_steps_keep_the_order_of_the_calls() -> None:
    steps = NO_STEPS.with_repartition("split").with_watch("sessions").with_repartition("join").with_watch("clicks")
    assert steps == DeclaredSteps(("split", "join"), watches=("sessions", "clicks"))
    assert DeclaredSteps() == NO_STEPS


def test_a_spread_over_several_instances_adds_a_repartition_for_its_combining_stage() -> None:
    assert NO_STEPS.with_spread("count", 1) == DeclaredSteps(spreads=("count",))
    spread = NO_STEPS.with_spread("count", 4)
    assert spread == DeclaredSteps((combine_name("count"),), spreads=("count",))


def test_a_rebalance_over_several_instances_is_a_repartition_of_its_own_name() -> None:
    assert NO_STEPS.with_rebalance("lines", 1) == DeclaredSteps(rebalances=("lines",))
    assert NO_STEPS.with_rebalance("lines", 4) == DeclaredSteps(("lines",), rebalances=("lines",))
