"""How long tasks take on a number of slots."""

from __future__ import annotations

import numpy as np

from homeostat.core.makespan import makespan_s


def test_tasks_start_in_order_each_on_the_slot_that_is_free_first() -> None:
    # 4 | 1 1 1 then 3: the last one begins at 3, behind the three short ones.
    assert makespan_s(np.array([4.0, 1.0, 1.0, 1.0, 3.0]), 2) == 6.0
    # The order matters: the long ones first is shorter.
    assert makespan_s(np.array([4.0, 3.0, 1.0, 1.0, 1.0]), 2) == 5.0
    assert makespan_s(np.array([2.0, 2.0]), 2, (3.0,)) == 6.0
    assert makespan_s(np.empty(0), 4) == 0.0
