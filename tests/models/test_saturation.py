"""Dataflows: Caladrius' saturation points, keyed shares, DS2's true rates."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.models.saturation import FlowModel, KeyShares, Operator, flow_model
from homeostat.testing import instances, observations, view_of


def chain(*operators: Operator) -> FlowModel:
    return FlowModel(operators, {operators[0].name: 1.0})


def operator(name: str, rate_per_s: float, *inputs: str, selectivity: float = 1.0, count: int = 1) -> Operator:
    return Operator(name, inputs, count, rate_per_s, selectivity)


def test_the_worked_example_of_ds2() -> None:
    """Target 40 rec/s; o1's true rate is 10, it emits ten for each; o2's true rate is 200: ×4 and ×2."""
    source = operator("source", 1000.0)
    model = chain(source, operator("o1", 10.0, "source", selectivity=10.0), operator("o2", 200.0, "o1"))
    offered = model.offered_rates(40.0)
    assert {o.name: o.fewest(offered[o.name]) for o in model.operators[1:]} == {"o1": 4, "o2": 2}


def test_the_worked_example_of_ds2_from_what_was_measured() -> None:
    tasks = {
        "source": instances(100.0, 0.1),
        "o1": instances(100.0, 10.0, rows_out=1000.0),
        "o2": instances(1000.0, 5.0),
    }
    model = flow_model(view_of(observations(8, tasks, arrival_per_s=40.0)))
    assert model is not None
    offered = model.offered_rates(40.0)
    assert {o.name: o.fewest(offered[o.name]) for o in model.operators[1:]} == {"o1": 4, "o2": 2}


def test_throughput_is_linear_up_to_the_first_saturation_point_and_flat_beyond() -> None:
    model = chain(
        operator("lines", 1000.0), operator("split", 100.0, "lines", count=3), operator("sink", 400.0, "split")
    )
    taken = [model.predict(rate).throughput_per_s for rate in (100.0, 300.0, 500.0)]
    assert taken == [100.0, 300.0, 300.0]
    prediction = model.predict(500.0)
    assert (prediction.bottleneck, prediction.saturation_per_s, prediction.stable) == ("split", 300.0, False)
    then = model.predict(500.0, {"split": 5})
    assert (then.bottleneck, then.throughput_per_s) == ("sink", 400.0)


def test_what_is_just_enough_but_for_rounding_is_enough() -> None:
    model = chain(operator("lines", 100.0 * (1 - 1e-9)))
    assert model.operators[0].fewest(2_000.0) == 20
    assert model.predict(2_000.0, {"lines": 20}).stable


def test_the_largest_share_of_a_keyed_component_saturates_first() -> None:
    keyed = Operator("count", (), 4, 100.0, 1.0, KeyShares(4, 1.25))
    assert keyed.saturation_per_s(4) == pytest.approx(320.0)
    assert keyed.saturation_per_s(8) < 8 * 100.0
    assert KeyShares(4, 1.2).with_instances(16) > 1.2
    assert KeyShares(4, 1.2).with_instances(2) < 1.2
    assert KeyShares(2, 1.4).with_instances(1000) <= 1.5


def test_the_spread_of_all_shares_tells_more_than_the_largest_one() -> None:
    """100,000 keys on 28 instances: their shares spread by 1.7 %, be the largest out by twice or thrice that."""
    lucky, unlucky = (KeyShares(28, imbalance, 0.0167).with_instances(30) for imbalance in (1.03, 1.05))
    assert lucky == unlucky == pytest.approx(1.035, abs=0.002)
    assert KeyShares(28, 1.05).with_instances(30) > unlucky


def test_one_share_further_out_than_by_chance_counts_for_all() -> None:
    assert KeyShares(28, 1.2, 0.04).with_instances(30) == KeyShares(28, 1.2).with_instances(30)


def test_a_hot_key_keeps_its_share() -> None:
    hot = Operator("count", (), 4, 100.0, 1.0, KeyShares(4, 2.0))
    assert hot.saturation_per_s(4) == pytest.approx(hot.saturation_per_s(40)) == pytest.approx(200.0)
    assert hot.fewest(1000.0) == 10


def test_having_seen_a_number_beats_the_formula() -> None:
    operator = Operator("count", (), 4, 100.0, 1.0, KeyShares(4, 1.1), {5: 380.0})
    assert operator.saturation_per_s(5) == 380.0
    assert operator.fewest(390.0) == 6


class Lookups(dict[int, float]):
    """Measured capacities that count how many numbers of instances are tried."""

    count = 0

    def __contains__(self, key: object) -> bool:
        self.count += 1
        return super().__contains__(key)


def one_by_one(operator: Operator, offered_per_s: float) -> int:
    """The plain search, as a reference."""
    count = max(1, math.ceil(offered_per_s / operator.rate_per_s - 1e-6))
    while operator.saturation_per_s(count) < offered_per_s * (1 - 1e-6):
        count += 1
    return count


@given(
    rate_per_s=st.floats(0.5, 500.0),
    offered_per_s=st.floats(0.0, 20_000.0),
    shares=st.builds(KeyShares, st.integers(1, 40), st.floats(1.0, 1.5), st.floats(0.0, 0.3)),
    measured=st.dictionaries(st.integers(1, 60), st.floats(0.0, 20_000.0), max_size=5),
)
def test_the_fewest_instances_are_those_of_a_search_one_by_one(
    rate_per_s: float, offered_per_s: float, shares: KeyShares, measured: dict[int, float]
) -> None:
    keyed = Operator("count", (), 4, rate_per_s, 1.0, shares, measured)
    assert keyed.fewest(offered_per_s) == one_by_one(keyed, offered_per_s)


def test_any_load_needs_few_steps_to_find_the_fewest_instances() -> None:
    lookups = Lookups({9: 700.0})
    keyed = Operator("count", (), 8, 100.0, 1.0, KeyShares(8, 1.4), lookups)
    assert keyed.fewest(1e12) == pytest.approx(1.5e10, rel=1e-3)
    assert lookups.count < 100


def test_how_uneven_keys_are_is_unknown_from_one_instance() -> None:
    model = chain(operator("lines", 1000.0), Operator("count", ("lines",), 1, 100.0, 1.0, KeyShares(1, 1.0)))
    assert model.predict(100.0).unknown == ()
    assert "unknown" in model.predict(100.0, {"count": 4}).unknown[0]


def test_more_instances_than_were_ever_seen_are_said_to_be_unknown() -> None:
    model = chain(operator("lines", 1000.0), replace(operator("split", 100.0, "lines", count=2), most=4))
    assert model.predict(100.0, {"split": 4}).unknown == ()
    assert "split never ran with so many instances" in model.predict(100.0, {"split": 5}).unknown[0]


def test_nothing_measured_is_no_model() -> None:
    tasks = {"source": instances(0.0, 0.0), "sink": instances(0.0, 0.0)}
    assert flow_model(view_of(observations(8, tasks, arrival_per_s=0.0))) is None
