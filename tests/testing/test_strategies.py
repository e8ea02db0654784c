"""The strategies draw what a broken sensor might deliver, in order of time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import Phase, find, given, settings

from homeostat.core.observation import Observation
from homeostat.testing import instances, observations
from homeostat.testing.strategies import damaged_observations, garbage

OBSERVED = observations(5, {"lines": instances(10.0, 1.0), "count": instances([5.0, 5.0], 1.0)}, arrival_per_s=1.0)
# Any example will do: a smaller one is not worth looking for.
FIRST_FOUND = settings(max_examples=500, phases=[Phase.generate], database=None)


@settings(max_examples=20)
@given(garbage(["lines", "count"], most=4))
def test_garbage_is_ordered_by_time_and_batch(drawn: tuple[Observation, ...]) -> None:
    assert [one.batch for one in drawn] == list(range(len(drawn)))
    assert all(earlier.at_s < later.at_s for earlier, later in pairwise(drawn))


def test_garbage_has_unknown_components_and_ragged_columns() -> None:
    find(garbage(["lines"], most=4), lambda drawn: any("stranger" in one.tasks for one in drawn), settings=FIRST_FOUND)
    find(garbage(["lines"], most=4), lambda drawn: any(_ragged(one) for one in drawn), settings=FIRST_FOUND)


def _ragged(observation: Observation) -> bool:
    return any(len(sample.rows) != len(sample.run_s) for sample in observation.tasks.values())


@settings(max_examples=30)
@given(damaged_observations(OBSERVED, drop=False))
def test_damage_loses_values_and_keeps_the_rest(drawn: tuple[Observation, ...]) -> None:
    assert len(drawn) == len(OBSERVED)
    for before, after in zip(OBSERVED, drawn, strict=True):
        rows, lost = before.tasks["count"].rows, np.isnan(after.tasks["count"].rows)
        assert (after.tasks["count"].rows[~lost] == rows[~lost]).all()
