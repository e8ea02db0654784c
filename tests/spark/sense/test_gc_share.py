"""Garbage collection of the driver, from a sum that is updated now and then."""

from __future__ import annotations

import math

from homeostat.spark.sense.gc_share import GcShare


def test_too_little_is_unknown_and_more_is_a_share_of_the_batch() -> None:
    share = GcShare()
    assert math.isnan(share.seconds_of(10.0))
    share.note(0.0, 5.0)
    share.note(10.0, 6.0)
    assert math.isnan(share.seconds_of(10.0))
    share.note(20.0, 6.0)
    assert share.seconds_of(10.0) == 0.5


def test_old_sums_and_those_of_another_driver_are_forgotten() -> None:
    share = GcShare()
    for at_s in range(0, 200, 10):
        share.note(float(at_s), 100.0 if at_s < 100 else 101.0)
    assert share.seconds_of(10.0) == 0.0
    share.note(200.0, 1.0)
    assert math.isnan(share.seconds_of(10.0))
    share.note(210.0, math.nan)
    assert math.isnan(share.seconds_of(10.0))
