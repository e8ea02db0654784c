"""How sure detectors must be."""

from __future__ import annotations

from homeostat.detectors.sensitivity import Sensitivity
from homeostat.models.partition_sizes import UnevenPartitions


def test_it_takes_more_to_shrink_than_to_grow() -> None:
    sure = Sensitivity()

    assert sure.shrink_alarm > sure.alarm
    assert sure.shrink_slack > sure.slack


def test_the_sensor_that_reads_keys_uses_the_same_ratio() -> None:
    assert Sensitivity().ratio == UnevenPartitions().ratio
