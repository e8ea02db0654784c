"""What the latest batches lost to one cause, compared with earlier batches."""

from __future__ import annotations

import math

import pytest

from homeostat.core.time_causes import SINK_BOUND
from homeostat.models.loss_series import LossSeries, series_of, times_of
from homeostat.models.recoverable import BatchLosses, batch_losses
from support.timed_batches import slow_sink


def losses(sink_s: float, count: int) -> list[BatchLosses]:
    return [each for observation in slow_sink(sink_s, count) if (each := batch_losses(observation)) is not None]


def sink_series(earlier: list[BatchLosses], least: int = 1) -> LossSeries:
    slow = losses(6.0, 3)
    return series_of(SINK_BOUND, "", slow, earlier, least, times_of(slow), None)


def test_the_share_is_of_the_time_that_a_batch_may_take() -> None:
    series = sink_series([])
    assert series.lost_s.tolist() == pytest.approx([6.0] * 3)
    assert series.share.tolist() == pytest.approx([0.6] * 3)


def test_the_usual_loss_is_that_of_earlier_batches_if_there_are_enough() -> None:
    assert sink_series(losses(0.5, 6), least=5).usual_s == pytest.approx(0.5)
    assert math.isnan(sink_series(losses(0.5, 4), least=5).usual_s)
