"""Which instance gets which share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.sim.routing import largest_share, shares, turn_at
from homeostat.sim.scenario.spec import ComponentSpec

SHUFFLED = ComponentSpec("split", inputs=("lines",))
KEYED = ComponentSpec("count", inputs=("split",), keyed=True, keys=10_000)


def test_shuffled_rows_are_dealt_out_evenly_whatever_the_keys_do() -> None:
    assert shares(SHUFFLED, 4).tolist() == [0.25] * 4
    assert shares(SHUFFLED, 4, spread=2, hot_share=0.7, stride=4).tolist() == [0.25] * 4


@given(
    parallelism=st.integers(1, 60),
    spread=st.integers(1, 80),
    hot_share=st.floats(0.0, 1.0),
    stride=st.integers(0, 12),
    zipf=st.floats(0.0, 2.0),
    keys=st.integers(1, 200),
)
def test_shares_add_up_to_the_whole(
    parallelism: int, spread: int, hot_share: float, stride: int, zipf: float, keys: int
) -> None:
    spec = ComponentSpec("count", keyed=True, keys=keys, zipf=zipf)
    dealt = shares(spec, parallelism, spread, hot_share, stride)
    assert len(dealt) == parallelism
    assert (dealt >= 0).all()
    assert dealt.sum() == pytest.approx(1.0)


def test_many_equal_keys_spread_well_and_few_leave_instances_empty() -> None:
    assert shares(KEYED, 10).max() < 0.12
    few = shares(ComponentSpec("count", keyed=True, keys=3), 10)
    assert np.count_nonzero(few) <= 3


def test_frequent_keys_load_some_instances_more() -> None:
    zipf = ComponentSpec("count", keyed=True, keys=10_000, zipf=1.1)
    assert shares(zipf, 10).max() > 1.5 * shares(KEYED, 10).max()


def test_in_another_turn_other_instances_have_the_frequent_keys() -> None:
    spec = ComponentSpec("count", inputs=("lines",), keyed=True, keys=50, zipf=1.5, turn_s=60.0)
    assert [turn_at(spec, t_s) for t_s in (0.0, 59.0, 60.0, 200.0)] == [0, 0, 1, 3]
    busiest = {int(shares(spec, 8, hot_share=0.5, turn=turn).argmax()) for turn in range(20)}
    assert len(busiest) > 4
    assert shares(spec, 8, turn=3).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("hot_share", [0.2, 0.5, 0.7])
def test_a_hot_key_stays_on_one_instance_at_any_parallelism(hot_share: float) -> None:
    for parallelism in (2, 8, 64):
        dealt = np.sort(shares(KEYED, parallelism, hot_share=hot_share))
        rest = (1 - hot_share) / parallelism
        assert dealt[-1] == pytest.approx(hot_share + rest, rel=0.1)
        assert dealt[-2] < 1.3 * rest


def test_spreading_a_hot_key_divides_its_load() -> None:
    largest = [shares(KEYED, 16, spread, hot_share=0.7).max() for spread in (1, 2, 4, 8, 16)]
    assert largest == sorted(largest, reverse=True)
    assert largest[2] == pytest.approx(0.7 / 4 + 0.3 / 16, rel=0.1)
    assert shares(KEYED, 16, 16, hot_share=0.7).tolist() == pytest.approx([1 / 16] * 16)


def test_a_stride_leaves_instances_empty_where_the_parallelism_shares_a_factor_with_it() -> None:
    assert np.count_nonzero(shares(KEYED, 8, stride=4)) == 2
    assert np.count_nonzero(shares(KEYED, 8, stride=6)) == 4
    assert shares(KEYED, 9, stride=4).max() < 1.05 / 9
    assert shares(KEYED, 8, spread=2, stride=4).max() < 1.2 / 8


def test_the_same_question_gets_the_same_read_only_answer() -> None:
    first = shares(KEYED, 12, hot_share=0.3)
    assert shares(KEYED, 12, hot_share=0.3) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1.0
    assert largest_share(KEYED, 12) == shares(KEYED, 12).max()


def test_ten_thousand_instances_are_no_trouble() -> None:
    spec = ComponentSpec("count", keyed=True, keys=100_000, maximum=10_000)
    dealt = shares(spec, 10_000, spread=3, hot_share=0.1)
    assert dealt.sum() == pytest.approx(1.0)
    assert dealt.max() == pytest.approx(0.1 / 3, rel=0.05)
