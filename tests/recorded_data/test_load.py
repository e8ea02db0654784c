"""The limit on rates is one at which single rows still count."""

from __future__ import annotations

import numpy as np

from homeostat.recorded_data.load import FASTEST_PER_S, Load


def test_single_rows_still_count_at_the_fastest_rate() -> None:
    assert FASTEST_PER_S + 1 != FASTEST_PER_S


def test_a_load_has_one_source_unless_it_names_several() -> None:
    load = Load("load.csv", np.array([0.0, 1.0]), np.array([5.0, 6.0]))
    assert (load.notes, dict(load.sources)) == ((), {})
