"""Whether the CPU is taken by others."""

from __future__ import annotations

import pytest

from homeostat.core.observation import NAN, HostSample
from homeostat.models.batch_parts import batch_parts
from homeostat.models.host_use import cpu_is_taken
from support.timed_batches import batch, stage


@pytest.mark.parametrize(
    ("busy", "others", "taken"),
    [
        (0.5, 0.4, True),  # others use much of it, whether or not it is full
        (0.95, 0.15, True),  # it is full, and others use some of it
        (0.5, 0.15, False),
        (0.95, 0.05, False),
        (NAN, NAN, False),
    ],
)
def test_others_take_the_cpu_if_they_use_much_of_it_or_some_of_a_full_host(
    busy: float, others: float, taken: bool
) -> None:
    observed = batch(
        {"read": stage([1.0] * 4, began_s=0.0)},
        seconds=2.0,
        phases_s={"addBatch": 2.0},
        hosts=(HostSample("a", 4.0, busy, others),),
    )
    parts = batch_parts(observed)
    assert parts is not None
    assert cpu_is_taken([(observed, parts)]) is taken
