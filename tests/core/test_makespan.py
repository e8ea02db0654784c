"""How long tasks take on slots, and many stages at once as one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.makespan import makespan_s, makespans_s


def test_tasks_start_in_order_each_on_the_slot_that_is_free_first() -> None:
    # 4 | 1 1 1 then 3: the last one begins at 3, behind the three short ones.
    assert makespan_s(np.array([4.0, 1.0, 1.0, 1.0, 3.0]), 2) == 6.0
    # The order matters: the long ones first is shorter.
    assert makespan_s(np.array([4.0, 3.0, 1.0, 1.0, 1.0]), 2) == 5.0
    assert makespan_s(np.array([2.0, 2.0]), 2, (3.0,)) == 6.0
    assert makespan_s(np.empty(0), 4) == 0.0


@given(
    lines=st.integers(1, 5),
    tasks=st.integers(1, 12),
    slots=st.integers(1, 6),
    factors=st.lists(st.sampled_from([1.0, 2.5, 4.0]), max_size=3).map(tuple),
    seed=st.integers(0, 1000),
)
def test_many_stages_at_once_take_exactly_as_long_as_one_by_one(
    lines: int, tasks: int, slots: int, factors: tuple[float, ...], seed: int
) -> None:
    """To the bit, with ties between tasks and between slots."""
    seconds = np.random.default_rng(seed).choice([0.1, 0.2, 0.7, 1.3], (lines, tasks))
    assert makespans_s(seconds, slots, factors).tolist() == [makespan_s(line, slots, factors) for line in seconds]
